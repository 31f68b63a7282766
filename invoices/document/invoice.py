"""The contents of an invoice.

An issued invoice never changes, except for one step from *issued* to *voided*, with a reason. The
seller and the customer remain as they were when it was issued.

Every field is declared once: here, or, if it is a line's, in `invoices.document.amounts`; see
`invoices.document.fields`. How to add one: `docs/developers.md`.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar, Literal

from django.core.exceptions import ValidationError
from django.utils.translation import gettext, gettext_lazy as _

from accounts.attributes import Email
from dynamo.inputs import Choice, InputAttribute
from invoices.document.amounts import Line, Totals, line_nets, totals
from invoices.document.fields import Day, Flag, Moment, MultiLine, SingleLine, field, fields_of
from invoices.document.identifiers import clean_vat_id_of_customer
from invoices.document.places import Country, Currency
from invoices.exceptions import UnknownInvoice

Status = Literal["issued", "voided"]

#: The language of invoices that are stored without one.
DEFAULT_LANGUAGE = "en"

#: The languages of documents, each by its own name. Each has a catalogue.
DOCUMENT_LANGUAGES = {"en": "English", "de": "Deutsch", "fr": "Français", "ja": "日本語"}
_LANGUAGE_OF_COUNTRY = {
    **dict.fromkeys(("DE", "AT", "LI"), "de"),
    **dict.fromkeys(("FR", "MC"), "fr"),
    **dict.fromkeys(("GB", "IE", "US", "AU", "NZ"), "en"),
    "JP": "ja",
}

NAME_MAX_LENGTH = 200
_LABEL = re.compile(r"(\d{4})-(\d{6,15})")

#: Only the request ids of credit notes begin with this.
CREDIT_PREFIX = "credit#"


# The contents of an invoice -----------------------------------------------------------------------


@dataclass(frozen=True)
class Party:
    """The fields that the seller and the customer have in common. `country` is an ISO 3166 code."""

    always_digested: ClassVar = ("name", "address", "vat_id")

    name: str = field(SingleLine(_("Customer’s name"), max_length=NAME_MAX_LENGTH))
    address: str = field(MultiLine(_("Customer’s address"), max_length=500, rows=3, default=""))
    vat_id: str = field(SingleLine(_("Customer’s VAT ID"), max_length=100, default=""))
    country: str = field(Country(_("Customer’s country"), default=""))


@dataclass(frozen=True)
class Customer(Party):
    """The customer. The form asks for it. `number` is the customer number."""

    number: str = field(SingleLine(_("Customer number"), max_length=50, default=""))
    email: str = field(
        Email(
            _("Customer’s email address"),
            help_text=_("Not printed. The invoice can be sent there."),
            default="",
        )
    )
    language: str = field(
        Choice(
            _("Language"),
            is_known=DOCUMENT_LANGUAGES.__contains__,
            offered=lambda: [("", _("By the country")), *DOCUMENT_LANGUAGES.items()],
            language="{}",
            help_text=_("Of the PDF, and of its mail."),
            default="",
        )
    )

    def language_or(self, default: str) -> str:
        """The language of documents for this customer; `default` if it is unknown."""
        return self.language or _LANGUAGE_OF_COUNTRY.get(self.country, default)


@dataclass(frozen=True)
class Seller(Party):
    """The seller, as in the profile. In Japan, `vat_id` is the registration number."""

    tax_number: str = field(SingleLine(max_length=100, default=""))
    iban: str = field(SingleLine(max_length=34, default=""))
    bic: str = field(SingleLine(max_length=11, default=""))
    account_holder: str = field(SingleLine(max_length=NAME_MAX_LENGTH, default=""))
    bank_name: str = field(SingleLine(max_length=100, default=""))
    bank_branch: str = field(SingleLine(max_length=100, default=""))
    account_kind: str = field(SingleLine(max_length=20, default=""))
    account_number: str = field(SingleLine(max_length=34, default=""))
    #: False if the name is only the username, which does not count for the law. Not stored.
    is_named: bool = True


@dataclass(frozen=True)
class Contents:
    """The fields that a draft and its invoice have in common.

    A credit note names the invoice that it cancels in `credits` (`2026-000042`).
    """

    always_digested: ClassVar = ("currency", "note")

    customer: Customer
    lines: tuple[Line, ...]
    currency: str = field(Currency(_("Currency"), initial="EUR"))
    note: str = field(
        MultiLine(_("Note"), max_length=1_000, help_text=_("Printed below the total."), default="")
    )
    prices_include_tax: bool = field(Flag(_("Prices include VAT"), default=False))
    supplied_from: date | None = field(Day(_("Date of supply, or its first day"), null=True))
    supplied_to: date | None = field(Day(_("Last day of supply"), null=True))
    due_date: date | None = field(Day(_("Due date"), null=True))
    payment_terms: str = field(MultiLine(_("Payment terms"), max_length=500, default=""))
    buyer_reference: str = field(
        SingleLine(
            _("Customer’s reference"),
            max_length=100,
            help_text=_("For example, an order number or a cost center."),
            default="",
        )
    )
    exemption_reason: str = field(
        SingleLine(
            _("Reason without VAT"),
            max_length=300,
            help_text=_(
                "For lines that are exempt from VAT. For example, the paragraph of the law."
            ),
            default="",
        )
    )
    credits: str = field(SingleLine(max_length=20, default=""))
    credit_reason: str = field(SingleLine(max_length=500, default=""))

    @property
    def asks_for_payment(self) -> bool:
        """Whether the customer has to pay something. True while no line is known."""
        if self.credits or not self.lines:
            return not self.credits
        return totals(self.lines, self.currency, self.prices_include_tax).gross > 0


@dataclass(frozen=True)
class Draft(Contents):
    """An invoice before it has a number. With `issued_on` None, it is issued today."""

    issued_on: date | None = None

    def digest(self) -> str:
        """The SHA-256 of the contents, in hex: equal for drafts that ask for the same invoice."""
        currency, note, *others = _digested(self)
        contents = [
            _digested(self.customer),
            [_digested(line) for line in self.lines],
            currency,
            self.issued_on.isoformat() if self.issued_on else None,
            note,
            *others,
        ]
        return hashlib.sha256(json.dumps(contents).encode()).hexdigest()


def _digested(part: Customer | Line | Draft) -> list[Any]:
    """The texts of the fields that are `always_digested`, and then of the others by name.

    The others are left out if they have their default. Therefore, a new field does not change the
    digests that are stored with request ids.
    """
    always, others = [], {}
    for item in fields_of(type(part)):
        value = getattr(part, item.name)
        if item.name in part.always_digested:
            always.append(item.to_text(value))
        elif value != item.default:
            others[item.name] = item.to_text(value)
    return [*always, others] if others else always


@dataclass(frozen=True, kw_only=True)
class Invoice(Contents):
    """An issued invoice. `language` is the one in which it was issued.

    Its PDF is always in this language.
    """

    account: str
    number: int
    seller: Seller
    totals: Totals
    issued_at: date = field(Day())
    request_id: str = field(SingleLine(max_length=100, default=""))
    status: Status = field(SingleLine(max_length=10, default="issued"))
    void_reason: str = field(SingleLine(max_length=500, default=""))
    voided_at: datetime | None = field(Moment(null=True), compare=False)
    language: str = field(SingleLine(max_length=35, default=DEFAULT_LANGUAGE))

    @property
    def is_draft(self) -> bool:
        """Whether it has no number yet."""
        return not self.number

    @property
    def series(self) -> str:
        return series_of(self.account, self.issued_at.year)

    @property
    def label(self) -> str:
        """The number as people write it: `2026-000042`."""
        return label_of(self.issued_at.year, self.number)

    def line_nets(self) -> list[int]:
        """The net amounts of the lines, which add up to the net total."""
        return line_nets(self.lines, self.totals, self.currency, self.prices_include_tax)

    @property
    def is_credit_note(self) -> bool:
        return bool(self.credits)

    @property
    def voided_on(self) -> date | None:
        """The day when it was voided, in the time zone of that request, if it is known."""
        return self.voided_at and self.voided_at.date()

    @property
    def is_voided(self) -> bool:
        return self.status == "voided"


def draw_up(
    draft: Draft,
    account: str,
    seller: Seller,
    today: date,
    request_id: str,
    language: str = DEFAULT_LANGUAGE,
) -> Invoice:
    """The invoice of `draft`, with number 0."""
    contents = vars(draft).copy()
    issued_at = contents.pop("issued_on") or today
    return Invoice(
        **contents,
        account=account,
        number=0,
        issued_at=issued_at,
        seller=seller,
        totals=totals(draft.lines, draft.currency, draft.prices_include_tax),
        request_id=request_id,
        language=language,
    )


# Its number --------------------------------------------------------------------------------------


def series_of(account: str, year: int) -> str:
    """The series of the invoices of an account's year: `<account pk>#<year>`."""
    return f"{account}#{year}"


def label_of(year: int, number: int) -> str:
    """A number as people write it: `2026-000042`."""
    return f"{year}-{number:06}"


def parse_label(label: str) -> tuple[int, int]:
    """The year and the number of a label.

    Raises:
        UnknownInvoice: it is not a label.
    """
    match = _LABEL.fullmatch(label)
    year, number = (int(match[1]), int(match[2])) if match else (0, 0)
    # Each invoice has exactly one label: no further zeros, and only ASCII digits.
    if not number or label != label_of(year, number):
        raise UnknownInvoice(label)
    return year, number


def credit_request_id(label: str) -> str:
    """The request id of the credit note for an invoice.

    It is fixed, so there is only one credit note.
    """
    return f"{CREDIT_PREFIX}{label}"


# Its details ------------------------------------------------------------------------------------

#: The fields that pages and PDF show elsewhere than among the details.
_ELSEWHERE = {
    "currency",
    "note",
    "prices_include_tax",
    "payment_terms",
    "exemption_reason",
    "supplied_from",
    "supplied_to",
}


def details_of(invoice: Invoice, readable: Callable[[date], str]) -> Iterator[tuple[str, str]]:
    """The details that page and PDF show in one line each: labels and texts, also of new fields."""
    first, last = invoice.supplied_from, invoice.supplied_to
    if first and last:
        yield gettext("Period of supply"), f"{readable(first)} – {readable(last)}"
    elif first:
        yield gettext("Date of supply"), readable(first)
    for item in fields_of(Contents):
        value = getattr(invoice, item.name)
        if item.is_typed and item.name not in _ELSEWHERE and value != item.default:
            text = readable(value) if isinstance(value, date) else item.to_text(value)
            yield str(item.label), text


# The typed values ---------------------------------------------------------------------------------

_CUSTOMER_FIELDS = {f"customer_{item.name}": item for item in fields_of(Customer) if item.is_typed}
_OTHER_FIELDS = {item.name: item for item in fields_of(Contents) if item.is_typed}

#: The values that people type, except the lines, by their names in the form.
TYPED_FIELDS: dict[str, InputAttribute[object]] = _CUSTOMER_FIELDS | _OTHER_FIELDS


def draft_of(
    values: Mapping[str, Any], lines: Iterable[Line], issued_on: date | None = None
) -> Draft:
    """The draft with these clean values, which have the names in `TYPED_FIELDS`.

    The VAT ID of the customer is as its country writes it.
    """
    about = {declared.name: values[key] for key, declared in _CUSTOMER_FIELDS.items()}
    # A text that is not a VAT ID is kept; see `check_customer`.
    with suppress(ValidationError):
        about["vat_id"] = clean_vat_id_of_customer(about["vat_id"], about["country"])
    others = {name: values[name] for name in _OTHER_FIELDS}
    return Draft(customer=Customer(**about), lines=tuple(lines), issued_on=issued_on, **others)


def check_customer(customer: Customer) -> None:
    """Raises ValidationError at `customer_vat_id` if it is not a VAT ID."""
    try:
        clean_vat_id_of_customer(customer.vat_id, customer.country)
    except ValidationError as error:
        raise ValidationError({"customer_vat_id": error}) from error


def check_dates(contents: Contents, issued_at: date) -> None:
    """Raises ValidationError, at its field, if a date of `contents` contradicts another one."""
    errors: dict[str, object] = {}
    first, last = contents.supplied_from, contents.supplied_to
    if last and not first:
        errors["supplied_from"] = _("Enter the first day of supply.")
    elif first and last and last < first:
        errors["supplied_to"] = _("Enter a day that is not before the first day of supply.")
    if contents.due_date and contents.due_date < issued_at:
        errors["due_date"] = _("Enter a day that is not before the date of the invoice.")
    if errors:
        raise ValidationError(errors)


def typed_values_of(invoice: Invoice) -> dict[str, str]:
    """The values of a form that issues the same invoice again, without its lines."""
    customer = {f"customer_{name}": value for name, value in vars(invoice.customer).items()}
    values = customer | vars(invoice)
    return {name: declared.to_text(values[name]) for name, declared in TYPED_FIELDS.items()}
