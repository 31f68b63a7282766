from django.http import HttpRequest, HttpResponse
from django.urls import path

from sequences import next_value


def home(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"Visit {next_value('visits')}")


urlpatterns = [path("", home)]
