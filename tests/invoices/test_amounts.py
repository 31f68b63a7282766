"""Totals of invoices, and how amounts are formatted."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import given, strategies as st

from invoices.document.amounts import Line, line_nets, totals
from invoices.document.money import (
    LEFT_TO_RIGHT_MARK,
    WORD_JOINER,
    bare_amount,
    bare_price,
    in_major_units,
    minor_units,
    plain_amount,
    readable_amount,
    readable_decimal,
)
from invoices.document.places import currency_choices, is_currency
from invoices.store.settlement import negated
from tests.invoices.samples import CURRENCIES, LINES, NUMBERS

MINUS = f"{LEFT_TO_RIGHT_MARK}−{WORD_JOINER}"


def rounded_half_up(amount: Fraction) -> int:
    """Half away from zero, computed in another way than in the code."""
    sign = -1 if amount < 0 else 1
    return sign * int(abs(amount) + Fraction(1, 2))


@given(st.lists(LINES, max_size=6), CURRENCIES, st.booleans())
def test_totals_equal_those_of_exact_fractions(
    lines: list[Line], currency: str, with_tax: bool
) -> None:
    result = totals(lines, currency, with_tax)

    amounts: dict[Fraction, int] = {}
    for line in lines:
        exact = Fraction(line.quantity) * Fraction(line.unit_price) * minor_units(currency)
        assert line.amount(currency) == rounded_half_up(exact)
        rate = Fraction(line.vat_rate)
        amounts[rate] = amounts.get(rate, 0) + line.amount(currency)
    # Rounded once for each rate.
    whole = {rate: 100 + rate if with_tax else 100 for rate in amounts}
    vat = {rate: rounded_half_up(sum_ * rate / whole[rate]) for rate, sum_ in amounts.items()}
    nets = {rate: sum_ - vat[rate] * with_tax for rate, sum_ in amounts.items()}
    assert {Fraction(share.rate): share.net for share in result.shares} == nets
    assert {Fraction(share.rate): share.vat for share in result.shares} == vat
    assert (result.net, result.gross) == (
        sum(nets.values()),
        sum(nets.values()) + sum(vat.values()),
    )
    assert [share.rate for share in result.shares] == sorted(share.rate for share in result.shares)


@given(st.lists(LINES, max_size=30), CURRENCIES, st.booleans())
def test_nets_of_lines_add_up_and_those_of_a_credit_note_have_the_other_sign(
    lines: list[Line], currency: str, with_tax: bool
) -> None:
    credited = negated(lines)
    sums, opposite = (totals(item, currency, with_tax) for item in (lines, credited))
    nets = line_nets(lines, sums, currency, with_tax)

    assert sum(nets) == sums.net
    assert line_nets(credited, opposite, currency, with_tax) == [-net for net in nets]
    assert (opposite.net, opposite.gross) == (-sums.net, -sums.gross)
    assert [share.vat for share in opposite.shares] == [-share.vat for share in sums.shares]


@given(st.integers(-(10**30), 10**30), CURRENCIES)
def test_an_amount_is_formatted_exactly(amount: int, currency: str) -> None:
    written = plain_amount(amount, currency)
    read = bare_amount(amount, currency).replace(MINUS, "-").replace(",", "")

    assert Decimal(written) == in_major_units(amount, currency)
    assert read == written
    assert readable_amount(amount, currency).endswith(bare_amount(abs(amount), currency))
    assert " " not in readable_amount(amount, currency)  # which would break the line


@given(NUMBERS, CURRENCIES)
def test_a_price_is_formatted_in_full_with_the_decimals_of_its_currency(
    price: Decimal, currency: str
) -> None:
    written = bare_price(price, currency).replace(MINUS, "-").replace(",", "")

    assert Decimal(written) == price
    own = len(f"{price.normalize():f}".partition(".")[2])
    assert len(written.partition(".")[2]) == max(own, len(str(minor_units(currency))) - 1)


@given(NUMBERS)
def test_a_number_is_formatted_in_full_without_trailing_zeros(number: Decimal) -> None:
    written = readable_decimal(number).replace(MINUS, "-").replace(",", "")

    assert Decimal(written) == number
    assert "." not in written or written[-1] not in ".0"


def test_an_amount_follows_the_rules_of_its_currency() -> None:
    for amount, currency, text in (
        (123450, "EUR", "€1,234.50"),
        (0, "EUR", "€0.00"),
        (-500, "EUR", f"{MINUS}€5.00"),
        (100, "JPY", "¥100"),
        (1000, "KWD", "KWD\xa01.000"),
        (-1, "KWD", f"{MINUS}KWD\xa00.001"),
        (500, "CHF", "CHF\xa05.00"),
        (500, "CAD", "CA$5.00"),
    ):
        assert readable_amount(amount, currency) == text


def test_a_number_never_shows_an_exponent() -> None:
    shown = {"1E+3": "1,000", "2.50": "2.5", "-0": "0", "-3": f"{MINUS}3", "1E-7": "0.0000001"}

    assert {number: readable_decimal(Decimal(number)) for number in shown} == shown


def test_currencies_are_those_of_today() -> None:
    codes = [code for code, _name in currency_choices()]

    assert codes == sorted(set(codes))
    assert {"EUR", "USD", "JPY", "KWD", "CHF"} <= set(codes)
    assert ("EUR", "EUR – Euro") in currency_choices()
    assert is_currency("EUR")
    for none in ("DEM", "eur", "XXX", "XAU", "", "EUR "):
        assert not is_currency(none)
