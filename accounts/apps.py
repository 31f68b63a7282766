"""The accounts app. Its user class is not a `django.db` model."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"

    def get_model(self, model_name: str, require_ready: bool = True) -> Any:
        """Answer `get_user_model()`, the only model of this app that Django asks for."""
        if model_name.lower() == "user":
            from accounts.models import User  # models load after the app registry

            return User
        return super().get_model(model_name, require_ready)

    def ready(self) -> None:
        from accounts import checks  # noqa: F401 - registers its checks
        from accounts.sessions import visitor  # noqa: F401 - connects its receivers
