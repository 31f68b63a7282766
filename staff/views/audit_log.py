"""The audit log, newest first: of a month, or of one account."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.http import Http404
from django.views.generic import TemplateView

from staff.audit_log import list_actions, month_of, on_account
from staff.views.pages import StaffMixin

_MONTH = re.compile(r"(20\d\d)-(0[1-9]|1[0-2])")
#: A time and a UUID have 69 characters.
_BEFORE_MAX_LENGTH = 100


class _PageOfLog(StaffMixin, TemplateView):
    """Besides the requests of every page, costs 1 request."""

    template_name = "staff/audit_log.html"

    def before(self) -> str | None:
        """The id below which the page begins. Raises Http404 if it is too long to be one."""
        before = self.request.GET.get("before", "")
        if len(before) > _BEFORE_MAX_LENGTH:
            raise Http404
        return before or None


class AuditLogView(_PageOfLog):
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        this_month = month_of(datetime.now(UTC))
        month = self.request.GET.get("month", this_month)
        match = _MONTH.fullmatch(month)
        if match is None:
            raise Http404
        first = date(int(match[1]), int(match[2]), 1)
        return super().get_context_data(
            month=first,
            earlier=(first - timedelta(days=1)).strftime("%Y-%m"),
            later=(first + timedelta(days=31)).strftime("%Y-%m") if month < this_month else None,
            log=list_actions(month, before=self.before()),
            **kwargs,
        )


class AccountAuditLogView(_PageOfLog):
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        log = list_actions(on_account(kwargs["pk"]), before=self.before())
        return super().get_context_data(log=log, **kwargs)
