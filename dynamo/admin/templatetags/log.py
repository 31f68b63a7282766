"""The newest entries of the audit log, for the index page."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.admin.templatetags import log as contribs

register = template.Library()


class LogNode(contribs.AdminLogNode):
    """Those of the user, of the entries that the site's `get_log_entries` returns."""

    def render(self, context: Any) -> str:
        entries = context["log_entries"]()
        if self.user is not None:
            by = str(context[self.user].pk)
            entries = [entry for entry in entries if entry.by == by]
        context[self.varname] = entries[: int(self.limit)]
        return ""


@register.tag
def get_admin_log(parser: Any, token: Any) -> LogNode:
    node = contribs.get_admin_log(parser, token)
    return LogNode(node.limit, node.varname, node.user)
