"""What follows a sign-in and a sign-out: the account notes its sessions."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest

from accounts import sessions, visits
from accounts.models import User


@receiver(user_logged_in, sender=User)
def note_sign_in(user: User, request: HttpRequest, **_signal: Any) -> None:
    """Note the time and the session. Raises StaleUser where the account was deleted meanwhile."""
    visits.begin(request, user)


@receiver(user_logged_out, sender=User)
def note_sign_out(user: User, request: HttpRequest, **_signal: Any) -> None:
    """Let the session be none of the account's any more."""
    if ending := visits.session_id(request):
        sessions.end(user, ending)
