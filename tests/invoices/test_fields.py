"""The kinds of values: what a person or a program may type, and what is stored then."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given, strategies as st

from dynamo.inputs import InputAttribute
from invoices.document.amounts import Line
from invoices.document.fields import Amount, Day, Moment, Number, SingleLine, fields_of
from invoices.document.invoice import TYPED_FIELDS
from invoices.document.money import readings

LINE = {item.name: item for item in fields_of(Line)}
QUANTITY, PRICE, RATE = (LINE[name] for name in ("quantity", "unit_price", "vat_rate"))
ADDRESS = TYPED_FIELDS["customer_address"]
ANY = Number(before=12, after=6)


# Numbers of programs ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PRICE, RATE])
def test_a_program_types_a_point_before_the_decimals_and_no_groups(kind: Number) -> None:
    for text in (
        *("1e5", "NaN", "1,5", "", ".", "٣", "9" * 99, "1_0"),
        *("1,234.50", "1.234,50", "1 234", "１２", "19 %"),
    ):
        with pytest.raises(ValidationError):
            kind.clean(text)


def test_numbers_are_kept_exactly_and_never_as_minus_zero() -> None:
    assert QUANTITY.clean("-999999999.999999") == Decimal("-999999999.999999")
    assert str(PRICE.clean("-0.00")) == "0"
    assert RATE.clean("8.125") == Decimal("8.125")
    assert PRICE.clean("1.0000000000") == 1
    # Typed by a person, it has two readings.
    assert PRICE.clean("1.234") == Decimal("1.234")


# Numbers of people --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        *((text, "12.50") for text in ("12,50", "12.50", "１２，５０")),
        *((text, "1234.50") for text in ("1.234,50", "1,234.50", "1 234,50", "1'234.50")),
        *((text, "1234.5") for text in ("1\u00a0234,5", "1\u202f234.5", "１，２３４．５")),
        *((text, "1234") for text in ("1’234", "1 234")),
        *((f"1{space}080", "1080") for space in "\u2005\u2006\u2009\u200a\u202f\u205f"),
        ("1.234.567", "1234567"),
        ("1,234,567.125", "1234567.125"),
        ("1'234,125", "1234.125"),
        # Neither has another reading: thousands do not begin with 0, and a group has three digits.
        *((text, "0.125") for text in ("0.125", "0,125")),
        *((text, "1234.567") for text in ("1234.567", "1234,567")),
        ("1.2340", "1.2340"),
        *((text, "0.5") for text in (".5", ",5")),
        ("5.", "5"),
        ("+1,5", "1.5"),
        ("−1,5", "-1.5"),
        (" 7 ", "7"),
    ],
)
def test_a_number_with_one_reading_is_accepted(typed: str, number: str) -> None:
    assert ANY.clean(typed, in_form=True) == Decimal(number)


@pytest.mark.parametrize(
    ("typed", "whole", "decimal"),
    [
        *((typed, "1234", "1.2340") for typed in ("1.234", "1,234", "１，２３４")),
        ("-999,000", "-999000", "-999.0000"),
        ("12,345", "12345", "12.3450"),
    ],
)
def test_a_number_with_two_readings_is_asked_about_and_each_can_be_typed(
    typed: str, whole: str, decimal: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        ANY.clean(typed, in_form=True)

    assert refused.value.messages == [f"Enter {whole} or {decimal}: “{typed}” can be either."]
    assert ANY.clean(whole, in_form=True) == 1000 * ANY.clean(decimal, in_form=True)


def test_a_reading_that_is_not_allowed_is_not_asked_about() -> None:
    assert (
        RATE.clean("8,125", in_form=True)
        == Number(before=3, after=3).clean("8.125", in_form=True)
        == Decimal("8.125")
    )
    assert Number(before=6, after=2).clean("1,234", in_form=True) == 1234


@pytest.mark.parametrize(("typed", "rate"), [("19 %", "19"), ("8,1%", "8.1"), ("１０％", "10")])
def test_a_rate_may_have_its_sign(typed: str, rate: str) -> None:
    assert RATE.clean(typed, in_form=True) == Decimal(rate)
    for kind in (PRICE, QUANTITY):
        with pytest.raises(ValidationError):
            kind.clean(typed, in_form=True)


def test_what_is_not_a_number_is_rejected() -> None:
    for typed in (
        *("1,23,4", "1 23", "12.345.67", "1.234'567", "1..2", "--1", "1e5", "٣", "1²", "€5"),
        *("1,234.567.891", "0,123,456", "1,,234", ".", ",", "'", "1 2 3", "x" * 50),
    ):
        assert readings(typed) == []
        with pytest.raises(ValidationError, match="Enter a number such as"):
            ANY.clean(typed, in_form=True)


@given(st.sampled_from([PRICE, QUANTITY, RATE]), st.decimals(-(10**8), 10**8, places=6))
def test_a_copied_number_is_never_ambiguous(kind: Number, number: Decimal) -> None:
    for value in (number, number.quantize(Decimal("0.001"))):
        try:
            kind.clean(f"{value:f}")
        except ValidationError:
            continue
        assert kind.clean(kind.to_typed(value), in_form=True) == value


@given(st.decimals(-(10**8), 10**8, places=2), st.sampled_from([",.", "., ", " ,", "',", "'."]))
def test_a_grouped_number_with_two_decimals_has_one_reading(number: Decimal, signs: str) -> None:
    group = signs[0]
    point = signs[1]
    typed = f"{number:,.2f}".replace(",", "g").replace(".", point).replace("g", group)

    assert ANY.clean(typed, in_form=True) == number


# Other kinds --------------------------------------------------------------------------------------


def test_a_description_is_one_printable_line_and_an_address_keeps_its_lines() -> None:
    for text in ("a\nb", "a\x00b", "\u202egnorw", "\ud800", "x" * 1_001, ""):
        with pytest.raises(ValidationError):
            LINE["description"].clean(text)
    assert ADDRESS.clean(" Road 1 \r\n東京\n") == "Road 1\n東京"


@pytest.mark.parametrize("text", ["", "  ", "\u2060"])
def test_a_blank_text_is_the_default_of_an_optional_field(text: str) -> None:
    assert ADDRESS.clean(text) == ""
    assert Day(null=True).clean(text) is None
    with pytest.raises(ValidationError):
        SingleLine(max_length=20).clean(text)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *[(ANY, Decimal(number)) for number in ("1.50", "-0.0", "1E+3", "0.000001")],
        (Day(), date(2026, 12, 24)),
        (Moment(), datetime(2026, 12, 24, 12, 30, tzinfo=UTC)),
        (Amount(), -5),
    ],
)
def test_a_kind_reads_what_it_stores(kind: InputAttribute[Any], value: object) -> None:
    assert kind.deserialize(kind.stored(value)) == value
    assert kind.clean(kind.to_text(value)) == value


def test_browsers_pick_dates_and_may_restore_what_was_typed() -> None:
    inputs = {name: field.form_field().widget for name, field in TYPED_FIELDS.items()}

    assert 'type="date"' in inputs["due_date"].render("due_date", "2026-12-24")
    assert not [name for name, widget in inputs.items() if "autocomplete" in widget.attrs]
