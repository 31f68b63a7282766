"""What the entry points do before the site answers: WSGI, ASGI and AWS Lambda."""

from __future__ import annotations

import os

import django
from django.conf import settings
from django.urls import reverse
from django.utils import translation

from project.checks import stop_without_static_files


def start() -> None:
    """Set up Django, or end with one line if the site cannot answer any page."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    # Before the middlewares are made: one of them would warn about the missing folder.
    django.setup(set_prefix=False)
    stop_without_static_files()


def load_pages() -> None:
    """Load the code and the data of all pages, except PDFs, so that none has to wait for it.

    For a process that answers many pages: a server's, before it forks and listens, and one whose
    snapshot is taken. A function that AWS Lambda starts because a request is waiting loads only
    what that request needs.
    """
    import phonenumbers  # noqa: F401 - only for its tables

    from web.choices import country_choices, currency_choices

    for language, _name in settings.LANGUAGES:
        with translation.override(language):
            reverse("home")
            country_choices()
            currency_choices()
