"""Parts of the pages: actions and fields of forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django import forms
from django.contrib.admin import decorators, widgets
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _, gettext_lazy as djangos_lazy

from dynamo.transactions import Transaction

DELETE = "delete_selected"
REASON, PASSWORD, SEEN = "_reason", "_password", "_seen"
REASON_MAX_LENGTH = 200

OVERTAKEN = _("It was changed after this page was opened, so nothing was done.")
GONE = _("It was deleted after this page was opened.")

Action = Callable[[Any, HttpRequest, Any, Transaction], object]
"""Adds the writes of an action on one item to a transaction, which then gets its log entry."""


def action(
    function: Any = None,
    *,
    permissions: Sequence[str] | None = None,
    description: Any = None,
    dangerous: bool = False,
) -> Any:
    """As contrib's, for a method that is called for each selected item, with its transaction.

        @admin.action(description="Block", permissions=["change"], dangerous=True)
        def block(self, request, obj, write):
            obj.change(is_blocked=True, write=write)

    The transaction also gets the entry in the audit log, and requires that the user still has one
    of the permissions. A dangerous action asks for the password.
    """

    def decorated(made: Any) -> Any:
        made.dangerous = dangerous
        return decorators.action(made, permissions=permissions, description=description)

    return decorated if function is None else decorated(function)


def delete_selected(model_admin: Any, request: HttpRequest, obj: Any, write: Transaction) -> None:
    model_admin.delete_model(request, obj, write)


action(
    delete_selected,
    permissions=["delete"],
    description=djangos_lazy("Delete selected %(verbose_name_plural)s"),
)


class LinesField(forms.CharField):
    """A set of texts, one in each line."""

    widget = widgets.AdminTextareaWidget

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else "\n".join(sorted(value))

    def clean(self, value: Any) -> Any:
        return set(filter(None, map(str.strip, super().clean(value).splitlines()))) or None

    @classmethod
    def can_show(cls, value: Any) -> bool:
        """Whether lines hold this set without loss."""
        return all(text.splitlines() == [text.strip()] for text in value or ())
