"""`sendinvoice`: an invoice by email, at most once for each request id."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.exceptions import TooManyAttempts
from accounts.services import find_user
from dynamo import Unavailable
from invoices.management.base import InvoiceCommand, one_line_errors
from invoices.output.mails import MESSAGE, TO
from invoices.output.sending import clean_request_id, send_invoice
from invoices.store.records import find_record
from invoices.store.sendings import Sending

_FAILURES = {
    "refused": "The mail server refused the mail to {0.to}.",
    "failed": "The mail server cannot be reached, so nothing was sent.",
    "unknown": (
        "It is not known whether the mail to {0.to} was sent. With another request id it may "
        "arrive twice."
    ),
}


class Command(InvoiceCommand):
    help = (
        "Send an invoice by email, as a PDF in the language of the invoice. The account needs a "
        "confirmed email address, to which replies go."
    )
    takes_number = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--to", metavar="ADDRESS", help="default: the customer's email address")
        parser.add_argument("--message", default="", help="added to the text of the mail")
        parser.add_argument(
            "--request-id", help="names this sending: repeated with it, the mail is sent once"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        request_id = str(uuid.uuid4())
        if options["request_id"] is not None:
            with one_line_errors("Request id"):
                request_id = clean_request_id(options["request_id"])
        with one_line_errors():
            user = find_user(options["user"])
        record = find_record(user.pk, options["number"])
        with one_line_errors("To"):
            to = TO.clean(options["to"] or record.invoice.customer.email)
        with one_line_errors("Message"):
            message = MESSAGE.clean(options["message"])
        try:
            with one_line_errors():
                sending = send_invoice(user, record, to, message, request_id=request_id)
        except TooManyAttempts as error:
            raise CommandError(str(error)) from error
        except Unavailable as error:
            raise CommandError(
                f"{error} Repeat the command with --request-id {request_id}: the mail is sent "
                "only once."
            ) from error
        self.stdout.write(_as_json(sending) if options["json"] else _as_row(sending))
        if sending.outcome != "sent":
            cause = f" ({sending.error})" if sending.error else ""
            raise CommandError(_FAILURES[sending.outcome].format(sending) + cause)


def _as_row(sending: Sending) -> str:
    return f"{sending.at:%Y-%m-%d %H:%M:%S}  {sending.to}  {sending.outcome}"


def _as_json(sending: Sending) -> str:
    return json.dumps(
        {
            "requestId": sending.request_id,
            "to": sending.to,
            "at": sending.at.isoformat(),
            "outcome": sending.outcome,
        },
        ensure_ascii=False,
    )
