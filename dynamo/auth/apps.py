from __future__ import annotations

from django.apps import AppConfig


class AuthConfig(AppConfig):
    """Brings the commands of contrib.auth. Its label leaves "auth" to that app."""

    name = "dynamo.auth"
    label = "dynamo_auth"
