"""Request ids of forms: a form that is sent twice acts once.

The server draws and signs them, so a client cannot choose an id, and an id expires.
"""

import uuid
from typing import Any, ClassVar

from django import forms
from django.core import signing
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

#: A form can be sent for this long after it was shown.
REQUEST_ID_SECONDS = 24 * 60 * 60


class RequestIdForm(forms.Form):
    """A form with a hidden request id.

    `request_id_salt` names the kind of form, so an id of another kind is rejected.
    `request_id_refused` is the error shown for an id that is invalid or too old.
    """

    request_id = forms.CharField(widget=forms.HiddenInput, required=False)

    request_id_salt: ClassVar[str]
    request_id_refused: ClassVar[Any] = _(
        "This form was open for more than a day, or it is not from this site. Nothing was done. "
        "Send it again."
    )

    @classmethod
    def new_request_id(cls) -> str:
        """A signed request id for one form of this kind."""
        return signing.TimestampSigner(salt=cls.request_id_salt).sign(str(uuid.uuid4()))

    def clean_request_id(self) -> str:
        """The request id without its signature."""
        signer = signing.TimestampSigner(salt=self.request_id_salt)
        try:
            return signer.unsign(self.cleaned_data["request_id"], max_age=REQUEST_ID_SECONDS)
        except signing.BadSignature as error:
            raise ValidationError(self.request_id_refused, code="request_id") from error

    def add_error(self, field: str | None, error: Any) -> None:
        """As Django's. A request id that is refused is renewed."""
        super().add_error(field, error)
        if field == "request_id":
            self.renew_request_id()

    def renew_request_id(self) -> None:
        """Give the bound form a new request id before it is shown again."""
        self.data = dict(self.data.items()) | {"request_id": self.new_request_id()}
