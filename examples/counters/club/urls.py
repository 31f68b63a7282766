from django.http import HttpResponse
from django.urls import path

from sequences import next_value


def home(request):
    return HttpResponse(f"Visit {next_value('visits')}")


urlpatterns = [path("", home)]
