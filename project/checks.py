"""System checks of the site as a whole, run by `check --deploy`.

project.E001   a static file is not among those that were collected: the site would not start
project.W001   static files were collected from other ones
project.W002   every Host header is accepted
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from project import collected

_COLLECT = "Run manage.py collectstatic --no-input."


@register(Tags.staticfiles, deploy=True)
def check_collected(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """What is wrong with the collected static files. Reads all of them.

    Nothing, where none were collected yet: the check often comes before, and the start says it.
    """
    if collected.are_none():
        return []
    if complaint := collected.complaint():
        return [Error(complaint, hint=_COLLECT, id="project.E001")]
    return [
        Warning(f"{name} is not what was collected.", hint=_COLLECT, id="project.W001")
        for name in collected.outdated()
    ]


@register(Tags.security, deploy=True)
def check_allowed_hosts(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A warning where any name is taken for the site's."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Warning(
            "DJANGO_ALLOWED_HOSTS is *: the site answers under any host name that a request names.",
            hint="List the names of the site.",
            id="project.W002",
        )
    ]
