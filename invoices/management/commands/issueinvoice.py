"""`issueinvoice`: the next invoice of an account's year."""

from __future__ import annotations

import argparse
import uuid
from datetime import date
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from dynamo.exceptions import Unavailable
from invoices import rules
from invoices.amounts import Line
from invoices.documents import Draft, Party
from invoices.issuing import issue
from invoices.jsonform import as_json
from invoices.management.invoicing import InvoiceCommand, find_user, said_plainly
from invoices.management.output import as_row


class Command(InvoiceCommand):
    """Issues an invoice under the rules of the page; the seller is as the profile says."""

    help = "Issue an invoice: it gets the next number of its year."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what the invoice says."""
        super().add_arguments(parser)
        parser.add_argument("--customer", metavar="NAME", required=True)
        parser.add_argument("--address", default="", help="the customer's")
        parser.add_argument(
            "--line",
            metavar="DESCRIPTION;QUANTITY;UNIT_PRICE;VAT_RATE",
            dest="lines",
            action="append",
            type=_fields,
            required=True,
            help="the unit price is net; the description may hold semicolons; repeat it for more",
        )
        parser.add_argument("--currency", default="EUR", help="default EUR")
        parser.add_argument("--date", type=_date, help="such as 2026-11-21; default today")
        parser.add_argument("--note", default="")
        parser.add_argument(
            "--request-id", help="names this invoice: repeated with it, it is issued once"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, issue, print."""
        draft = _draft(options)
        request_id = str(uuid.uuid4())
        if options["request_id"] is not None:
            with said_plainly("Request id"):
                request_id = rules.clean_request_id(options["request_id"])
        user = find_user(options["user"])
        seller = rules.seller_of(user)
        with said_plainly():
            rules.check_may_issue(user)
            rules.check_seller(seller)
        try:
            invoice = issue(
                draft,
                account=user.pk,
                seller=seller,
                request_id=request_id,
                language=rules.language_of(user),
            )
        except Unavailable as error:
            raise CommandError(
                f"{error} Repeat it with --request-id {request_id}, and it is issued once."
            ) from error
        self.stdout.write(as_json(invoice) if options["json"] else as_row(invoice))


def _fields(text: str) -> list[str]:
    """A line's four fields, split from the right; with fewer it is a usage error."""
    fields = text.rsplit(";", 3)
    if len(fields) < 4:
        raise argparse.ArgumentTypeError(f"{text!r} has not four fields between semicolons")
    return fields


def _date(text: str) -> date:
    try:
        return rules.clean_issue_date(text)
    except ValidationError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {' '.join(error.messages)}") from error


def _draft(options: dict[str, Any]) -> Draft:
    with said_plainly("Customer"):
        name = rules.clean_customer_name(options["customer"])
    with said_plainly("Address"):
        address = rules.clean_address(options["address"])
    with said_plainly("Currency"):
        currency = rules.clean_currency(options["currency"])
    with said_plainly("Note"):
        note = rules.clean_note(options["note"])
    lines = [_line(number, *fields) for number, fields in enumerate(options["lines"], 1)]
    with said_plainly("Lines"):
        return Draft(
            customer=Party(name, address),
            lines=rules.clean_lines(lines, currency),
            currency=currency,
            issued_on=options["date"],
            note=note,
        )


def _line(number: int, description: str, quantity: str, unit_price: str, vat_rate: str) -> Line:
    cleaned: list[Decimal] = []
    with said_plainly(f"Line {number}, description"):
        text = rules.clean_description(description)
    for what, clean, typed in (
        ("quantity", rules.clean_quantity, quantity),
        ("unit price", rules.clean_unit_price, unit_price),
        ("VAT rate", rules.clean_vat_rate, vat_rate),
    ):
        with said_plainly(f"Line {number}, {what}"):
            cleaned.append(clean(typed))
    return Line(text, *cleaned)
