from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.forms import PasswordConfirmedForm
from web.kinds import SingleLine

REASON_MAX_LENGTH = 200


class ReasonForm(PasswordConfirmedForm):
    """The reason of an action, and the actor's own password."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=REASON_MAX_LENGTH,
        validators=[SingleLine(REASON_MAX_LENGTH).clean],
        help_text=_("Kept in the audit log, which all staff can read."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.order_fields(["reason", "password"])


class BreakLockForm(ReasonForm):
    """`holder` is the one that the page showed: a later holder's lock must not be broken."""

    holder = forms.CharField(widget=forms.HiddenInput, max_length=64)
