from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_POST

from sequences import next_value


@require_POST
def ticket(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"Ticket {next_value('tickets')}\n")


urlpatterns = [path("tickets/", ticket)]
