from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.forms import PasswordConfirmedForm
from dynamo.extending import PARTITION_KEY_MAX_BYTES
from web.kinds import SingleLine

REASON_MAX_LENGTH = 200


class FindForm(forms.Form):
    who = forms.CharField(
        label=_("Find an account"),
        max_length=PARTITION_KEY_MAX_BYTES,
        widget=forms.TextInput(
            attrs={"autocapitalize": "none", "autocomplete": "off", "spellcheck": "false"}
        ),
        help_text=_(
            "By username, email address, primary key, the key of a guard item (userName#bob) or of "
            "a series of invoices."
        ),
    )


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
