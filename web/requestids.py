"""Request ids of forms: drawn and signed by the server, so that a form sent twice acts once.

The signature means that a client cannot choose the id, and that it expires.
"""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django import forms
from django.core import signing
from django.core.exceptions import ValidationError

#: How long after it was shown a form can be sent.
REQUEST_ID_SECONDS = 24 * 60 * 60


def new_request_id(salt: str) -> str:
    """A signed request id for one form. `salt` names the kind of form."""
    return signing.TimestampSigner(salt=salt).sign(str(uuid.uuid4()))


class RequestIdForm(forms.Form):
    """A form with a hidden request id.

    `request_id_salt` names the kind of form, so that the id of another kind is refused.
    `request_id_refused` is the error shown for an id that is not valid or too old.
    """

    request_id = forms.CharField(widget=forms.HiddenInput, required=False)

    request_id_salt: ClassVar[str]
    request_id_refused: ClassVar[Any]

    @classmethod
    def new_request_id(cls) -> str:
        """A signed request id for one form of this kind."""
        return new_request_id(cls.request_id_salt)

    def clean_request_id(self) -> str:
        """The request id without its signature."""
        signer = signing.TimestampSigner(salt=self.request_id_salt)
        try:
            return signer.unsign(self.cleaned_data["request_id"], max_age=REQUEST_ID_SECONDS)
        except signing.BadSignature as error:
            raise ValidationError(self.request_id_refused, code="request_id") from error

    def renew_request_id(self) -> None:
        """Give the bound form a new request id before it is shown again."""
        data = dict(self.data.items())
        data["request_id"] = self.new_request_id()
        self.data = data
