from __future__ import annotations

from django.apps import AppConfig


class AuthConfig(AppConfig):
    """Brings the commands of contrib.auth. Its label leaves "auth" to that app."""

    name = "dynamo.auth"
    label = "dynamo_auth"

    def ready(self) -> None:
        """Tests that override INSTALLED_APPS install apps whose models were imported before."""
        from dynamo.auth.models import AbstractUser

        for model in AbstractUser.__subclasses__():
            model.install()
