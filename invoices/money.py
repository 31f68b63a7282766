"""Amounts and numbers as people read them, by each currency's own rules, in their language.

These languages write 1,234.50 alike: columns stand by their points, and what is typed has one. A
language that writes 1.234,50 needs more than a catalogue.

What is returned never breaks over two lines, and stays in order inside text that runs from right
to left: spaces do not break, and a negative amount begins with a left-to-right mark and binds its
minus to what follows. Both signs are invisible.
"""

from __future__ import annotations

import re
from decimal import Decimal, localcontext
from functools import cache

from babel.core import get_global
from babel.numbers import (
    format_currency,
    get_currency_name,
    get_currency_precision,
    get_territory_currencies,
)
from django.utils.translation import get_language

from invoices.amounts import in_major_units

_LOCALES = ("en", "ja")

LEFT_TO_RIGHT_MARK = "\N{LEFT-TO-RIGHT MARK}"
WORD_JOINER = "\N{WORD JOINER}"
_MINUS = f"{LEFT_TO_RIGHT_MARK}\N{MINUS SIGN}{WORD_JOINER}"

# CLDR puts a space between a code and a number (KWD 1.000, not $1.00); Babel leaves it out.
_CODE_MEETS_NUMBER = re.compile(r"(?<=[^\W\d_])(?=\d)")

# Babel rounds in the current context, whose 28 digits an amount may exceed.
_DIGITS = 60


def readable_amount(amount: int, currency: str) -> str:
    """An amount in minor units with its currency: `€1,234.50`, `¥100`, `KWD 1.000`, `−€5.00`."""
    return readable_price(in_major_units(amount, currency), currency)


def readable_price(price: Decimal, currency: str) -> str:
    """A price in major units with its currency, in full: `€2.00`, `€0.0125`."""
    with localcontext(prec=_DIGITS):
        text = format_currency(
            _with_decimals(price, currency), currency, locale=_locale(), decimal_quantization=False
        )
    return _bound(_CODE_MEETS_NUMBER.sub("\N{NO-BREAK SPACE}", text))


def bare_amount(amount: int, currency: str) -> str:
    """An amount in minor units without its currency, for columns that name it: `1,234.50`."""
    return bare_price(in_major_units(amount, currency), currency)


def bare_price(price: Decimal, currency: str) -> str:
    """A price in major units, in full, without its currency: `2.00`, `0.0125`."""
    return _grouped(_with_decimals(price, currency))


def readable_decimal(number: Decimal) -> str:
    """A number in full, without idle zeros: `1,234.5`, `−3`."""
    with localcontext(prec=_DIGITS):
        return _grouped((number + 0).normalize())


def plain_amount(amount: int, currency: str) -> str:
    """An amount in minor units for programs: `-1234.50`, always with the currency's decimals."""
    return f"{_with_decimals(in_major_units(amount, currency), currency):f}"


def currency_choices() -> tuple[tuple[str, str], ...]:
    """The currencies in use, by code, as choices of a form: `("EUR", "EUR – Euro")`."""
    return _currency_choices(_locale())


@cache
def _currency_choices(locale: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (code, f"{code} – {get_currency_name(code, locale=locale)}") for code in sorted(_codes())
    )


@cache
def _codes() -> frozenset[str]:
    return frozenset(
        code
        for territory in get_global("territory_currencies")
        for code in get_territory_currencies(territory)
    )


def is_currency(code: str) -> bool:
    """Whether `code` is the ISO 4217 code of a currency in use today."""
    return code in _codes()


def _locale() -> str:
    language = get_language()
    return language if language in _LOCALES else _LOCALES[0]


def _with_decimals(number: Decimal, currency: str) -> Decimal:
    """`number` with the decimals of `currency`, or with all it has where these are more."""
    with localcontext(prec=_DIGITS):
        plain = (number + 0).normalize()
        exponent = plain.as_tuple().exponent
        fewest = -get_currency_precision(currency)
        if isinstance(exponent, int) and exponent > fewest:
            return plain.quantize(Decimal(1).scaleb(fewest))
        return plain


def _grouped(number: Decimal) -> str:
    # Not Babel: it cuts idle zeros, by which the decimals of a column stand below each other.
    return _bound(f"{number:,f}")


def _bound(text: str) -> str:
    return text.replace("-", _MINUS, 1) if text.startswith("-") else text
