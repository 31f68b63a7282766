"""What follows a sign-in: Django writes `last_login` for its own models only."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver

from accounts.models import User
from accounts.services import record_login


@receiver(user_logged_in, sender=User)
def note_sign_in(user: User, **_signal: Any) -> None:
    """Note the time. Raises StaleUser where the account was deleted meanwhile."""
    record_login(user)
