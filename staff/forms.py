from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.forms import PasswordConfirmedForm
from web.kinds import SingleLine

REASON_MAX_LENGTH = 200


class BreakLockForm(PasswordConfirmedForm):
    """The reason, the actor's own password, and the `holder` that the page showed.

    A later holder's lock must not be broken.
    """

    field_order = ("reason", "password")

    holder = forms.CharField(widget=forms.HiddenInput, max_length=64)
    reason = forms.CharField(
        label=_("Reason"),
        max_length=REASON_MAX_LENGTH,
        validators=[SingleLine(REASON_MAX_LENGTH).clean],
        help_text=_("Kept in the audit log, which all staff can read."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
