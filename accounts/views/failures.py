"""The answer to a form whose token is not today's."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dynamo.exceptions import TableMissing, Unavailable
from dynamo.middleware import unavailable


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form whose token is not today's: said plainly, and nothing was done.

    Signing in draws a new token, so a sign-up or sign-in form that is sent a second time comes
    here. Whoever is signed in already is shown what the first answer showed.
    """
    entrances = {"signup", "login"}
    match = request.resolver_match
    try:
        if match and match.url_name in entrances and request.user.is_authenticated:
            return redirect("profile")
    except (Unavailable, TableMissing) as error:
        # The middleware that says so elsewhere stands around views, and this one is none of them.
        return unavailable(request, error)
    from django.views.csrf import csrf_failure as explain

    return explain(request, reason)
