"""The form that sends an invoice."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from invoices.output.mails import MESSAGE, TO
from web.requestids import RequestIdForm


class SendForm(RequestIdForm):
    """The recipient of an invoice, and the message."""

    request_id_salt = "invoices.sending"
    request_id_refused = _(
        "This form was open for more than a day, or it is not from this site. Nothing was sent. "
        "Send it again."
    )

    to = TO.form_field()
    message = MESSAGE.form_field()
