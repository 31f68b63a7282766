"""`issueinvoice`: issue the next invoice of an account's year."""

import argparse
from typing import Any

from django.core.management.base import CommandParser

from accounts.languages import language_of
from accounts.services import find_user
from dynamo.management.base import argument
from invoices.document.amounts import Line, check_line, check_lines, check_totals, totals
from invoices.document.fields import Day, Flag, fields_of, words_of
from invoices.document.invoice import (
    DEFAULT_LANGUAGE,
    TYPED_FIELDS,
    Draft,
    check_customer,
    draft_of,
)
from invoices.document.requirements import check_requirements, marked_if_reduced
from invoices.management.base import InvoiceCommand, errors_about, repeatable, request_id_of
from invoices.store.issuing import REQUEST_ID, check_may_issue, issue_invoice
from invoices.store.sellers import check_seller, profile_of, seller_of

_SHORT = {"customer_name": "customer", "customer_address": "address"}
_OPTIONS = {name: f"--{_SHORT.get(name, name).replace('_', '-')}" for name in TYPED_FIELDS}
# `--line` takes these fields. Other fields of a line have their defaults.
_LINE_FIELDS = fields_of(Line)[:4]


class Command(InvoiceCommand):
    help = (
        "Issue an invoice with the next number of its year. The seller comes from the account's "
        "profile."
    )
    who = "a username, an email address or a primary key"
    takes = ("--request-id", "--json")

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        for name, field in TYPED_FIELDS.items():
            help_text = (
                f"{field.label}, default {field.initial}" if field.initial else str(field.label)
            )
            if isinstance(field, Flag):
                parser.add_argument(
                    _OPTIONS[name],
                    dest=name,
                    action="store_const",
                    const="yes",
                    default="",
                    help=help_text,
                )
                continue
            parser.add_argument(
                _OPTIONS[name],
                dest=name,
                metavar=words_of(field).upper().replace(" ", "_"),
                required=field.is_required and not field.initial,
                default=field.initial,
                help=help_text,
            )
        parser.add_argument(
            "--line",
            metavar="DESCRIPTION;QUANTITY;UNIT_PRICE;VAT_RATE",
            dest="lines",
            action="append",
            type=_line_values,
            required=True,
            help="repeatable; the unit price is net; the description may contain semicolons",
        )
        day = "such as 2026-11-21; default today"
        parser.add_argument("--date", type=argument(Day().clean), help=day)
        late = "allow a --date after tomorrow, before which no other invoice can then be issued"
        parser.add_argument("--force-date", action="store_true", help=late)

    def handle(self, *args: object, **options: Any) -> None:
        request_id = request_id_of(options, REQUEST_ID.clean)
        user = find_user(options["user"])
        seller = seller_of(user, profile_of(user.pk))
        check_may_issue(user)
        check_seller(seller)
        draft = _draft(options, seller.country)
        check_requirements(draft, seller)
        language = draft.customer.language_or(language_of(user) or DEFAULT_LANGUAGE)
        # `issue_invoice` checks the dates, because a repeated request may be older than today.
        with (
            errors_about("The dates"),
            repeatable(f" with --request-id {request_id}: the invoice is issued"),
        ):
            invoice = issue_invoice(
                draft,
                account=user.pk,
                seller=seller,
                request_id=request_id,
                language=language,
                time_zone=user.time_zone,
                force_date=options["force_date"],
            )
        self.show(invoice, options)


def _line_values(text: str) -> list[str]:
    values = text.rsplit(";", 3)
    if len(values) < 4:
        raise argparse.ArgumentTypeError(f"{text!r} needs four values between semicolons")
    return values


def _draft(options: dict[str, Any], country: str) -> Draft:
    values = {}
    for name, field in TYPED_FIELDS.items():
        with errors_about(_OPTIONS[name][2:].replace("-", " ").capitalize()):
            values[name] = field.clean(options[name])
    lines = [
        marked_if_reduced(_line(number, typed), country)
        for number, typed in enumerate(options["lines"], 1)
    ]
    with errors_about("Lines"):
        check_lines(lines)
        check_totals(totals(lines, values["currency"], values["prices_include_tax"]))
    draft = draft_of(values, lines, options["date"])
    with errors_about("Customer VAT ID"):
        check_customer(draft.customer)
    return draft


def _line(number: int, typed: list[str]) -> Line:
    values = {}
    for field, text in zip(_LINE_FIELDS, typed, strict=True):
        with errors_about(f"Line {number}, {words_of(field)}"):
            values[field.name] = field.clean(text)
    line = Line(**values)
    with errors_about(f"Line {number}"):
        check_line(line)
    return line
