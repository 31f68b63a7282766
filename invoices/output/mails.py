"""The mail that brings an invoice to a customer: its headers, its text, and its way out.

The text of the sender goes out in the body alone. All headers are made of checked values, so that
nobody can add a header or a recipient.
"""

from __future__ import annotations

import smtplib
import unicodedata
from contextlib import suppress
from dataclasses import replace
from email.utils import formataddr, parseaddr
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext_lazy as _

from accounts.attributes import EMAIL, deliverable_email
from accounts.models import User
from dynamo.auth.addresses import clean_email
from invoices.document.fields import Field
from invoices.document.invoice import Invoice
from invoices.output.pdf import pdf_of
from invoices.store.sendings import Outcome
from web.kinds import MultiLine
from web.mailserver import mail_connection

#: Errors by which a mail server refuses a mail.
_REFUSALS = (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused)


def _deliverable(typed: str) -> str:
    try:
        return deliverable_email(clean_email(typed))
    except ValueError as error:
        # The local part is not plain ASCII, and programs differ in how they read it.
        raise ValidationError(
            _("No mail can be sent to this address. Enter another one."), "undeliverable"
        ) from error


#: The recipient of an invoice.
TO = Field("to", replace(EMAIL, rule=_deliverable), label=_("To"))
#: What the sender adds to the mail. It is not printed, so it may have any characters.
MESSAGE = Field(
    "message",
    MultiLine(2_000, rows=5),
    default="",
    label=_("Message"),
    help_text=_("Added to the text of the mail."),
)


def mail_of(invoice: Invoice, sender: User, to: str, message: str) -> EmailMessage:
    """The mail with `invoice` as a PDF, in the language of the invoice.

    `to` and `message` are clean values of `TO` and `MESSAGE`. Replies go to the email address of
    `sender`, to which mails can be sent.
    """
    reply_to = deliverable_email(sender.email)
    seller = _one_line(invoice.seller.name)
    sent_from = parseaddr(settings.DEFAULT_FROM_EMAIL)[1]
    context = {
        "invoice": invoice,
        "seller": seller,
        "message": message,
        "reply_to": reply_to,
        "site": urlsplit(settings.ACCOUNTS_SITE_ORIGIN).netloc or sent_from.rpartition("@")[2],
    }
    with translation.override(invoice.language):
        subject = render_to_string("invoices/mail/invoice_subject.txt", context)
        text = render_to_string("invoices/mail/invoice.txt", context)
    mail = EmailMessage(
        _one_line(subject),
        f"{text.strip()}\n",
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


def deliver(mail: EmailMessage) -> tuple[Outcome, str]:
    """Hand `mail` over to the mail server; the outcome, and the name of the error if there is one.

    Each step waits for `EMAIL_TIMEOUT` at most.
    """
    is_open = False
    try:
        with mail_connection() as connection:
            connection.open()
            is_open = True
            try:
                return ("sent" if connection.send_messages([mail]) == 1 else "unknown"), ""
            finally:
                # The outcome stands, whatever the mail server answers to the goodbye.
                with suppress(OSError):
                    connection.close()
    except OSError as error:  # all errors of mail servers and connections are
        name = type(error).__name__
        if not is_open:
            return "failed", name
        # The answer to the last step may be missing.
        return ("refused" if isinstance(error, _REFUSALS) else "unknown"), name
