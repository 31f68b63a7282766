"""What follows a sign-in and a sign-out: the account notes its sessions."""

from __future__ import annotations

from typing import Any, TypeGuard

from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest

from accounts import sessions, visits
from accounts.models import User


@receiver(user_logged_in, sender=User)
def note_sign_in(user: User, request: HttpRequest | None, **_signal: Any) -> None:
    """Note the time and the session; without a Django session, as with tokens, only the time.

    Raises:
        StaleUser: the account was deleted meanwhile.
    """
    if _has_session(request):
        visits.begin(request, user)
    else:
        sessions.note_sign_in_time(user)


@receiver(user_logged_out, sender=User)
def note_sign_out(user: User, request: HttpRequest | None, **_signal: Any) -> None:
    """Remove the session from those of the account."""
    if _has_session(request) and (ending := visits.session_id(request)):
        sessions.end(user, ending)


def _has_session(request: HttpRequest | None) -> TypeGuard[HttpRequest]:
    return getattr(request, "session", None) is not None
