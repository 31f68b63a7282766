"""The answer to a form whose token is not today's."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.models import User
from accounts.views.pages import signed_in
from dynamo.exceptions import TableMissing, Unavailable
from dynamo.middleware import unavailable


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form whose token is not today's: said plainly, and nothing was done.

    Signing in draws a new token, so a sign-up or sign-in form that is sent a second time comes
    here. Whom it has signed in already is shown what the first answer showed; but not who signed
    in by another form meanwhile, or they would take what they typed here for done.
    """
    match = request.resolver_match
    try:
        if match and _has_signed_in(request, match.url_name):
            return redirect("profile")
    except (Unavailable, TableMissing) as error:
        # The middleware that says so elsewhere stands around views, and this one is none of them.
        return unavailable(request, error)
    from django.views.csrf import csrf_failure as explain

    return explain(request, reason)


def _has_signed_in(request: HttpRequest, url_name: str | None) -> bool:
    """Whether who is signed in has all the names in the sign-up or sign-in form that was sent."""
    if url_name not in {"signup", "login"} or not request.user.is_authenticated:
        return False
    username = request.POST.get("username", "").strip()
    if url_name == "signup":
        typed = {"username": username, "email": request.POST.get("email", "").strip()}
    else:
        typed = {User.attribute_of(username): username}
    held = User.unique.keys_of(signed_in(request))
    try:
        return all(User.unique.key(name, text) == held.get(name) for name, text in typed.items())
    except ValueError:
        return False  # what was typed is no such name
