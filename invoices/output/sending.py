"""Sending an invoice to a customer by email, at most once for each request id.

`invoices.store.sendings` says how that is remembered.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import replace

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from accounts.attributes import is_deliverable
from accounts.limits.attempts import begin_mail_to_others
from accounts.models import User
from dynamo import Busy
from invoices.exceptions import AlreadyVoided, InvoiceError
from invoices.output.mails import deliver, mail_of
from invoices.store.records import Record
from invoices.store.sendings import Sending, claim_sending, known_sending, store_outcome

_REQUEST_ID = re.compile(r"[\w.:#-]{1,100}", re.ASCII)


def send_invoice(
    user: User,
    record: Record,
    to: str,
    message: str = "",
    *,
    request_id: str | None = None,
    client: str | None = None,
) -> Sending:
    """Send the invoice of `record`, which `user` has just read, by email.

    `to` and `message` are clean values of `invoices.output.mails`. `request_id` names this
    sending of this invoice (a random one if none is given). A later call with the same id sends
    nothing and returns what is known about the first one; an id is remembered for two days at
    least. For `client` see `accounts.limits.attempts.begin_mail_to_others`.

    Costs 2 requests and 5 write units for an invoice of up to 1 KB, and those of the limits.

    Raises (nothing was sent):
        AlreadyVoided: the invoice is voided.
        SendingReused: the request id was used for another address.
        TooManySendings: the invoice was sent too often within two days.
        TooManyAttempts: the account or the recipient has reached a limit.
        ValidationError: the account has no confirmed address, or the request id is not allowed.
        Unavailable: the database did not answer. The claim may be made, so the request id is used.
    """
    request_id = str(uuid.uuid4()) if request_id is None else clean_request_id(request_id)
    if known := known_sending(record, request_id, to):
        return known
    check_may_send(user)
    if record.invoice.is_voided:
        raise AlreadyVoided(record.invoice.label, record.invoice.void_reason)
    # First, because it also bounds how many PDFs an account lets be made.
    slots = begin_mail_to_others(user, to, client)
    try:
        mail = mail_of(record.invoice, user, to, message)
        sending, is_first = claim_sending(record, request_id, to)
    except (Busy, InvoiceError):
        slots.was_not_made()
        raise
    if is_first:
        outcome, error = deliver(mail)
        sending = replace(sending, outcome=outcome, error=error)
        store_outcome(record, sending)
    if not is_first or sending.outcome == "failed":
        slots.was_not_made()
    return sending


def clean_request_id(request_id: str) -> str:
    """Return `request_id`. Raises ValidationError if it is not allowed."""
    if not _REQUEST_ID.fullmatch(request_id):
        raise ValidationError("Use up to 100 letters, digits and the characters . : # - _", "id")
    return request_id


def check_may_send(user: User) -> None:
    """Raises ValidationError if customers cannot reply to a confirmed address of the user."""
    if not user.is_confirmed:
        raise ValidationError(
            _("Confirm your email address first. Open your profile to get the link."), "unconfirmed"
        )
    if not is_deliverable(user.email):
        raise ValidationError(
            _("No mail can be sent to your own email address. Change it in your profile."),
            "undeliverable",
        )
