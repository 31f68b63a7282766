"""What an invoice is: its item, its label, the digest of what was asked for."""

from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from invoices.document.amounts import Line
from invoices.document.fields import Day, SingleLine, field
from invoices.document.invoice import Customer, Draft, Invoice, Seller, label_of, parse_label
from invoices.exceptions import UnknownInvoice
from invoices.store.records import from_item, to_item
from tests.invoices.samples import CUSTOMER, NUMBERS, a_line, an_invoice, invoices

DRAFT = Draft(
    CUSTOMER, (a_line("1", "2.5", "19"),), "EUR", "Thank you.", issued_on=date(2026, 11, 21)
)


@given(invoices())
def test_an_invoice_is_read_from_its_item_as_it_was(invoice: Invoice) -> None:
    stored = from_item(to_item(invoice))

    assert stored == invoice
    assert stored.voided_at == invoice.voided_at
    assert stored.totals.gross == invoice.totals.gross


def test_an_item_leaves_out_what_is_empty() -> None:
    item = to_item(an_invoice(seller=Seller("Ann")))

    assert item.keys().isdisjoint({"sellerAddress", "sellerVatId", "customerVatId", "voidReason"})
    assert (item["series"], item["number"]) == ({"S": "account-1#2026"}, {"N": "42"})


@given(NUMBERS, st.integers(0, 6))
@example(Decimal("1000"), 0)
@example(Decimal("-0.0"), 0)
def test_the_notation_of_a_number_does_not_change_the_digest(number: Decimal, zeros: int) -> None:
    spelled = number.quantize(Decimal(1).scaleb(-4 - zeros))
    line = replace(DRAFT.lines[0], quantity=number, unit_price=number, vat_rate=abs(number))
    expected = replace(DRAFT, lines=(line,)).digest()

    for same in (spelled, number.normalize(), number + 0):
        other = replace(line, quantity=same, unit_price=same, vat_rate=abs(same))
        assert replace(DRAFT, lines=(other,)).digest() == expected


def test_other_contents_have_another_digest() -> None:
    line, name = DRAFT.lines[0], CUSTOMER.name
    changes: list[dict[str, Any]] = [
        {"customer": replace(CUSTOMER, name="Bob")},
        {"customer": replace(CUSTOMER, address="Elsewhere")},
        {"customer": replace(CUSTOMER, vat_id="DE1")},
        # The same text, divided into two fields in another place.
        {"customer": replace(CUSTOMER, name=name[:2], address=name[2:] + CUSTOMER.address)},
        {"lines": ()},
        {"lines": DRAFT.lines * 2},
        {"lines": (replace(line, description="Play"),)},
        {"lines": (replace(line, quantity=Decimal("1.01")),)},
        {"lines": (replace(line, unit_price=Decimal("2.51")),)},
        {"lines": (replace(line, vat_rate=Decimal(7)),)},
        # It differs only after the 28 digits of Python's usual decimal context.
        {"lines": (a_line("1.0000000000000000000000000000001", "2.5"),)},
        {"currency": "USD"},
        {"issued_on": date(2026, 11, 22)},
        {"issued_on": None},
        {"note": ""},
    ]

    digests = {replace(DRAFT, **change).digest() for change in changes}

    assert len(digests | {DRAFT.digest()}) == len(changes) + 1


@dataclass(frozen=True)
class FurtherParty(Customer):
    reference: str = field(SingleLine(max_length=20, default=""))


@dataclass(frozen=True)
class FurtherLine(Line):
    color: str = field(SingleLine(max_length=20, default="red"))


@dataclass(frozen=True)
class FurtherDraft(Draft):
    paid_on: date | None = field(Day(null=True))


def test_a_new_field_changes_the_digest_only_if_it_is_not_at_its_default() -> None:
    values = vars(DRAFT) | {
        "customer": FurtherParty(**vars(CUSTOMER)),
        "lines": tuple(FurtherLine(**vars(line)) for line in DRAFT.lines),
    }
    further = FurtherDraft(**values)
    changed = [
        replace(further, customer=FurtherParty(**vars(CUSTOMER), reference="4711")),
        *(
            replace(further, lines=tuple(replace(line, color=color) for line in further.lines))
            for color in ("blue", "4711")
        ),
        replace(further, paid_on=date(2026, 12, 24)),
    ]

    assert further.digest() == DRAFT.digest()
    assert len({DRAFT.digest(), *(draft.digest() for draft in changed)}) == 5


@given(st.integers(1000, 9999), st.integers(1, 10**15 - 1))
def test_a_label_is_parsed_as_it_was_formatted(year: int, number: int) -> None:
    assert parse_label(label_of(year, number)) == (year, number)


@pytest.mark.parametrize(
    "label",
    [
        *("", "2026", "2026-", "2026-42", "2026-000000", "2026-0000042", "26-000042"),
        *("2026-000042 ", "2026-000042\n", "2026-00004٢", "２０２６-000042", "2026-" + "9" * 16),
    ],
)
def test_a_text_that_is_not_a_label_is_an_unknown_invoice(label: str) -> None:
    with pytest.raises(UnknownInvoice):
        parse_label(label)
