"""The site as an app, for what is checked of it as a whole."""

from __future__ import annotations

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Registers the system checks."""

    name = "project"

    def ready(self) -> None:
        """Let `check --deploy` look at the static files."""
        from project import checks  # noqa: F401 - registers its checks
