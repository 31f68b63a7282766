"""`sendinvoice`: send an invoice by email, at most once for each request id."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.services import find_user
from invoices.management.base import InvoiceCommand, errors_about, repeatable, request_id_of
from invoices.output.sending import MESSAGE, NOT_SENT, TO, clean_request_id, send_invoice
from invoices.store.records import find_record


class Command(InvoiceCommand):
    help = (
        "Send an invoice by email, as a PDF in the language of the invoice. The account needs a "
        "confirmed email address, to which replies go."
    )
    who = "a username, an email address or a primary key"
    takes = ("number", "--request-id", "--json")

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--to", metavar="ADDRESS", help="default: the customer's email address")
        parser.add_argument("--message", default="", help="the text of the mail")

    def handle(self, *args: object, **options: Any) -> None:
        request_id = request_id_of(options, clean_request_id)
        user = find_user(options["user"])
        record = find_record(user.pk, options["number"])
        with errors_about("To"):
            to = TO.clean(options["to"] or record.invoice.customer.email)
        with errors_about("Message"):
            message = MESSAGE.clean(options["message"])
        with repeatable(f" with --request-id {request_id}: the mail is sent"):
            sending = send_invoice(user, record, to, message, request_id=request_id)
        at, to, outcome = sending.at, sending.to, sending.outcome
        if options["json"]:
            shown = {"requestId": request_id, "to": to, "at": at.isoformat(), "outcome": outcome}
            self.stdout.write(json.dumps(shown, ensure_ascii=False))
        else:
            self.stdout.write(f"{at:%Y-%m-%d %H:%M:%S}  {to}  {outcome}")
        if outcome in NOT_SENT:
            raise CommandError(NOT_SENT[outcome] % {"to": to})
