from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class ProjectConfig(AppConfig):
    name = "project"

    def ready(self) -> None:
        # checks registers itself
        from project import checks, logs, metrics, secret_keys  # noqa: F401

        if settings.SECRET_KEY_PARAMETER:
            secret_keys.load()
        if settings.METRICS_TOKEN:
            metrics.listen()
        logs.capture_python_messages()
