"""The accounts app: it hands Django a user class that is no `django.db` model."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Answers `get_user_model()` with the PynamoDB class."""

    name = "accounts"

    def get_model(self, model_name: str, require_ready: bool = True) -> Any:
        """The user class for `accounts.User`, which is all that Django asks this app for."""
        if model_name.lower() == "user":
            from accounts.models import User  # models load after the app registry

            return User
        return super().get_model(model_name, require_ready)

    def ready(self) -> None:
        """Listen to sign-ins, and let `check --deploy` look at the settings."""
        from accounts import checks  # noqa: F401 - registers its checks
        from accounts.sessions import visitor  # noqa: F401 - connects its receivers
