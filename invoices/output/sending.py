"""Sending an invoice to a customer by email, at most once for each request id.

A page stores an entry in the state of the invoice, "waiting", together with the task that sends
the mail. Before the task hands the mail over, the entry becomes "unknown", and then gets its
outcome. A process that is killed in between leaves it unknown, and no other attempt sends the mail.
A waiting entry names its task. Only the task says whether it has failed for good, so that staff may
start it again.

All headers are made of checked values, and the subject is one line, so that a user cannot add a
header or a recipient.
"""

import logging
import re
import smtplib
import unicodedata
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import formataddr, parseaddr
from functools import partial
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext_lazy as _
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path

from accounts.attributes import Email, deliverable_email, is_deliverable
from accounts.emails.mails import mail_connection
from accounts.limits.attempts import begin_mail_to_others
from accounts.models import AbstractAccount, account_model
from dynamo import Busy, Transaction
from dynamo.auth.addresses import clean_email
from dynamo.inputs import MultiLine, SingleLine
from dynamo.runtime.deadline import uncounted
from dynamo.runtime.threads import together
from invoices.document.invoice import Invoice
from invoices.exceptions import AlreadyVoided, InvoiceError, SendingReused, TooManySendings
from invoices.models import InvoiceItem, InvoiceState
from invoices.output.pdf import pdf_of
from invoices.store.issuing import check_confirmed
from invoices.store.records import (
    Outcome,
    Record,
    Sending,
    find_record,
    same_sendings,
    sendings_of,
    stored_sendings,
)
from outbox import TaskContext, task
from outbox.framework import TaskResultDoesNotExist

#: The reasons why the mail was not sent.
NOT_SENT = {
    "refused": _("The mail server refused the mail to %(to)s. Check the address."),
    "failed": _("The mail to %(to)s could not be sent. Try again later."),
    "unknown": _(
        "It is not known whether the mail to %(to)s was sent. If you send it again, it may arrive "
        "twice."
    ),
}
#: The most sendings that an invoice stores.
MAX_SENDINGS = 10
#: A sending is kept for at least this time, which is twice as long as a form can be sent.
KEPT_AT_LEAST = timedelta(days=2)
#: Errors by which a mail server refuses a mail.
_REFUSALS = (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused)
_REQUEST_ID = re.compile(r"[\w.:#-]{1,100}", re.ASCII)

logger = logging.getLogger(__name__)


def _deliverable(typed: str) -> str:
    try:
        return deliverable_email(clean_email(typed))
    except ValueError as error:
        # The local part is not plain ASCII, and programs differ in how they read it.
        raise ValidationError(
            _("No mail can be sent to this address. Enter another one."), "undeliverable"
        ) from error


#: The recipient of an invoice.
TO = Email(_("To"), rule=_deliverable)
#: Subject and text of the mail. They are not printed, so they may have any characters.
SUBJECT = SingleLine(_("Subject"), max_length=200, default="")
MESSAGE = MultiLine(
    _("Text"),
    max_length=4_000,
    rows=10,
    default="",
    help_text=_("The last lines say who sends the mail, and where replies go."),
)


def send_invoice(
    user: AbstractAccount,
    record: Record,
    to: str,
    message: str = "",
    *,
    subject: str = "",
    request_id: str | None = None,
    client: str | None = None,
) -> Sending:
    """Let a task send the invoice of `record`, which `user` has just read, by email.

    `to`, `message` and `subject` are clean values of `TO`, `MESSAGE` and `SUBJECT`. If one of the
    last two is empty, that of `texts_of` is sent. `request_id` names this sending of
    this invoice (a random one if none is given). A later call with the same id enqueues nothing and
    returns the state of the first one. An id is remembered for at least two days. For `client` see
    `accounts.limits.attempts.begin_mail_to_others`.

    Costs 1 request and 6 write units for an invoice of up to 1 KB, and those of the limits.

    Raises (nothing will be sent):
        AlreadyVoided: the invoice is voided.
        SendingReused: the request id was used for another address.
        TooManySendings: the invoice was sent too often within two days.
        TooManyAttempts: the account or the recipient has reached a limit.
        ValidationError: the account has no confirmed address, or the request id is not allowed.
        Unavailable: the database did not answer. The mail may be enqueued: use the same id again.
    """
    request_id = str(uuid.uuid4()) if request_id is None else clean_request_id(request_id)
    if known := _known_sending(record, request_id, to):
        return _current(known)
    _check_may_send(user)
    # This comes first, because it also limits the number of PDFs that are made for an account.
    slots = begin_mail_to_others(user, to, client)
    try:
        sending, is_first = _enqueue(record, request_id, to, message, subject)
    except (Busy, InvoiceError):
        slots.give_back()
        raise
    if is_first:
        return sending
    slots.give_back()
    return _current(sending)


def current_sendings(record: Record) -> list[Sending]:
    """The sendings of an invoice, the latest first.

    A sending whose task has failed for good is "failed", until the task is started again. Costs up
    to 2 requests and 2 read units for each that waits, in 2 round trips.
    """
    calls = [partial(_current, sending) for sending in sendings_of(record.state)]
    return [*together(*calls)] if calls else []


def _current(sending: Sending) -> Sending:
    if sending.outcome != "waiting" or not sending.task:
        return sending
    # A failed task may have been deleted. Any other end of the task has changed the entry.
    with suppress(TaskResultDoesNotExist):
        if deliver_invoice.get_result(sending.task).status != "FAILED":
            return sending
    return replace(sending, outcome="failed")


def clean_request_id(request_id: str) -> str:
    """Return `request_id`. Raises ValidationError if it is not allowed."""
    if not _REQUEST_ID.fullmatch(request_id):
        raise ValidationError("Use up to 100 letters, digits and the characters . : # - _", "id")
    return request_id


def _check_may_send(user: AbstractAccount) -> None:
    """Raises ValidationError if customers cannot reply to a confirmed address of the user."""
    check_confirmed(user)
    if not is_deliverable(user.email):
        raise ValidationError(
            _("No mail can be sent to your own email address. Change it in your profile.")
        )


# The entries --------------------------------------------------------------------------------------


def _known_sending(record: Record, request_id: str, to: str) -> Sending | None:
    """The sending that has this request id; None if it can begin.

    Raises:
        SendingReused, AlreadyVoided: see `send_invoice`.
    """
    known = {item.request_id: item for item in sendings_of(record.state)}.get(request_id)
    if known and known.to != to:
        raise SendingReused(request_id, known.to)
    if not known and record.invoice.is_voided:
        raise AlreadyVoided(record.invoice.label, record.invoice.void_reason)
    return known


def _enqueue(
    record: Record, request_id: str, to: str, message: str, subject: str
) -> tuple[Sending, bool]:
    """The sending with this request id, and whether this call made its entry and its task.

    The loop ends, because each further round means that another call has changed the entries.
    """
    invoice = record.invoice
    while True:
        if known := _known_sending(record, request_id, to):
            return known, False
        at = datetime.now(UTC)
        before = stored_sendings(record.state)
        kept = _with_room(sendings_of(record.state), at, invoice.label)
        stored = {item.request_id: before[item.request_id] for item in kept}
        write = Transaction()
        task = deliver_invoice.using(write=write)
        result = task.enqueue(invoice.account, invoice.label, request_id, message, subject)
        sending = Sending(request_id, to, at, "waiting", result.id)
        stored[request_id] = {
            "to": to,
            "at": at.isoformat(),
            "outcome": sending.outcome,
            "task": sending.task,
        }
        write.check(*_issued(invoice), otherwise=InvoiceError())
        write.update(
            record.state,
            [InvoiceState.sendings.set(stored)],
            same_sendings(record.state),
            otherwise=InvoiceError(),
        )
        if not write.try_commit():
            return sending, True
        record = find_record(invoice.account, invoice.label)


def _issued(invoice: Invoice) -> tuple[InvoiceItem, Condition]:
    """The stored invoice, and the condition that it is not voided."""
    return InvoiceItem(invoice.series, invoice.number), Path("status") == "issued"


def _with_room(sendings: Sequence[Sending], now: datetime, label: str) -> list[Sending]:
    """The sendings to keep when another one is added, the latest first.

    The oldest entries are removed, those with an unknown outcome last.
    """
    removable = [sending for sending in sendings if now - sending.at > KEPT_AT_LEAST]
    removable.sort(key=lambda sending: (sending.outcome == "unknown", sending.at))
    excess = max(0, len(sendings) + 1 - MAX_SENDINGS)
    if excess > len(removable):
        raise TooManySendings(label)
    return [sending for sending in sendings if sending not in removable[:excess]]


# The task -----------------------------------------------------------------------------------------


@task(takes_context=True)
def deliver_invoice(
    context: TaskContext, account: str, label: str, request_id: str, message: str, subject: str
) -> None:
    """Send a mail whose entry is "waiting", at most once even if this process is killed.

    If the mail server cannot be reached, the task is repeated, as after other errors. Before the
    mail is handed over, the entry becomes "unknown"; only one attempt can do that. The entry gets
    its outcome together with the end of the task.
    """
    record = find_record(account, label)
    waiting = {item.request_id: item for item in sendings_of(record.state)}.get(request_id)
    if waiting is None or waiting.outcome != "waiting":
        return
    sender = account_model().get_or_none(account)
    outcome: Outcome = "failed"
    if sender is not None and is_deliverable(sender.email) and not record.invoice.is_voided:
        mail = _mail_of(record.invoice, sender, waiting.to, message, subject)
        outcome = _deliver(mail, record, waiting)
    before: Outcome = "waiting" if outcome == "failed" else "unknown"
    with Transaction() as write:
        _store_outcome(record, replace(waiting, outcome=outcome), before, write)
        context.finish(write=write)


def _deliver(mail: EmailMessage, record: Record, sending: Sending) -> Outcome:
    """Hand `mail` over to the mail server. Each step waits for `EMAIL_TIMEOUT` at most.

    Raises:
        OSError: the mail server cannot be reached.
        InvoiceError: the invoice was voided meanwhile, or another attempt sends the mail.
    """
    # Without a worker, the page itself sends the mail. The time does not count for its deadline.
    with uncounted():
        connection = mail_connection()
        connection.open()
        try:
            with Transaction() as write:
                write.check(*_issued(record.invoice), otherwise=InvoiceError())
                _store_outcome(record, replace(sending, outcome="unknown"), "waiting", write)
            return "sent" if connection.send_messages([mail]) == 1 else "unknown"
        except OSError as error:  # all errors of mail servers and connections are
            logger.warning("An invoice may not have been sent: %s", type(error).__name__)
            # The answer to the last step may be missing.
            return "refused" if isinstance(error, _REFUSALS) else "unknown"
        finally:
            # The answer of the mail server to QUIT does not change the outcome.
            with suppress(OSError):
                connection.close()


def _store_outcome(record: Record, sending: Sending, before: Outcome, write: Transaction) -> None:
    """Store the outcome of the entry, if its outcome is still `before`."""
    entry = InvoiceState.sendings[sending.request_id]
    write.update(
        record.state,
        [entry["outcome"].set(sending.outcome)],
        (entry["at"] == sending.at.isoformat()) & (entry["outcome"] == before),
        otherwise=InvoiceError(),
    )


# The mail -----------------------------------------------------------------------------------------


def texts_of(invoice: Invoice) -> tuple[str, str]:
    """The subject and the text of a mail with `invoice`, in its language."""
    context = {"invoice": invoice, "seller": _one_line(invoice.seller.name)}
    with translation.override(invoice.language):
        subject, text = (
            render_to_string(f"invoices/mail/{name}.txt", context)
            for name in ("invoice_subject", "invoice")
        )
    return _one_line(subject), text.strip()


def _mail_of(
    invoice: Invoice, sender: AbstractAccount, to: str, message: str, subject: str
) -> EmailMessage:
    """The mail with `invoice` as a PDF, in the language of the invoice.

    Replies go to the email address of `sender`, to which mails can be sent.
    """
    reply_to = deliverable_email(sender.email)
    seller = _one_line(invoice.seller.name)
    sent_from = parseaddr(settings.DEFAULT_FROM_EMAIL)[1]
    default_subject, text = texts_of(invoice)
    context = {
        "seller": seller,
        "reply_to": reply_to,
        "site": urlsplit(settings.ACCOUNTS_SITE_ORIGIN).netloc or sent_from.rpartition("@")[2],
    }
    with translation.override(invoice.language):
        sent_by = render_to_string("invoices/mail/sent_by.txt", context).strip()
    mail = EmailMessage(
        _one_line(subject or default_subject),
        f"{message or text}\n\n{sent_by}\n",
        from_email=formataddr((seller, sent_from)),
        to=[to],
        reply_to=[reply_to],
    )
    mail.attach(f"{invoice.label}.pdf", pdf_of(invoice), "application/pdf")
    return mail


def _one_line(text: str) -> str:
    """`text` for a header: without control characters, and without encoded words (RFC 2047)."""
    kept = (" " if unicodedata.category(char) in {"Cc", "Cs"} else char for char in text)
    return " ".join("".join(kept).replace("=?", "= ?").split())
