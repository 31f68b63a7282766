"""Django's reports of a crash, without secrets: the page of development, and what a mail would say.

Two layers. Variables are left out by their names, and all of them where requests to DynamoDB are
made, which carry hashes and session keys; Django does that in production alone. From the finished
report, in development too, the secrets of its request are hidden wherever they stand.
"""

from __future__ import annotations

import re
from types import FrameType
from typing import Any

from django.http import HttpRequest
from django.views.debug import ExceptionReporter, SafeExceptionReporterFilter

from project.hiding import hide

#: Packages through which items and session keys pass.
_STORAGE = {"botocore", "dynamo", "pynamodb", "urllib3"}


class ReporterFilter(SafeExceptionReporterFilter):
    """Django's, which also shows no variable of the packages that talk to DynamoDB.

    Servers put the whole environment into each request's META; Django hides the keys in it by their
    names, but not the mail server's URL, which has a password.
    """

    hidden_settings = re.compile(
        f"{SafeExceptionReporterFilter.hidden_settings.pattern}|EMAIL_URL", re.IGNORECASE
    )

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: FrameType
    ) -> Any:
        """The names and values to be shown of one frame."""
        package = str(tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in _STORAGE and self.is_active(request):
            return [(name, self.cleansed_substitute) for name in tb_frame.f_locals]
        return super().get_traceback_frame_variables(request, tb_frame)


class CrashReporter(ExceptionReporter):
    """Django's, without the secrets of the request."""

    def get_traceback_html(self) -> Any:
        """The report as a page."""
        return hide(super().get_traceback_html(), self.request)

    def get_traceback_text(self) -> Any:
        """The report as text."""
        return hide(super().get_traceback_text(), self.request)
