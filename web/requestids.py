"""Request ids of forms: drawn and signed by the server, so that a form sent twice counts once.

Any other id would do for its sender alone; a signed one cannot be made up, and lapses.
"""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django import forms
from django.core import signing
from django.core.exceptions import ValidationError

#: How long a form may lie open.
REQUEST_ID_SECONDS = 24 * 60 * 60


def new_request_id(salt: str) -> str:
    """A request id for one form of the kind `salt`, signed."""
    return signing.TimestampSigner(salt=salt).sign(str(uuid.uuid4()))


class RequestIdForm(forms.Form):
    """A form with a request id, which names what it asks for.

    A subclass says of which kind its ids are, so that no other form's is taken for one of them,
    and what a person reads whose form is too old.
    """

    request_id = forms.CharField(widget=forms.HiddenInput, required=False)

    request_id_salt: ClassVar[str]
    request_id_refused: ClassVar[Any]

    @classmethod
    def new_request_id(cls) -> str:
        """A request id for one form."""
        return new_request_id(cls.request_id_salt)

    def clean_request_id(self) -> str:
        """The request id without its signature."""
        signer = signing.TimestampSigner(salt=self.request_id_salt)
        try:
            return signer.unsign(self.cleaned_data["request_id"], max_age=REQUEST_ID_SECONDS)
        except signing.BadSignature as error:
            raise ValidationError(self.request_id_refused, code="request_id") from error

    def renew_request_id(self) -> None:
        """Let the form, shown again, name something new."""
        data = dict(self.data.items())
        data["request_id"] = self.new_request_id()
        self.data = data
