"""Currencies, amounts as people read them in their language, and numbers as people type them.

Amounts are whole minor units: cents of EUR, yen of JPY, fils of KWD. English and Japanese, the
languages of the pages, write €1,234.50. Documents can be German (1.234,50 €) and French.

A formatted amount never breaks over two lines and keeps its order in text that runs from right to
left: its spaces are no-break spaces, and a negative one begins with a left-to-right mark and has a
word joiner after its minus sign. Both characters are invisible.

People type `12,50`, `1.234,50`, `1 234,50` or `1'234.50` into a form. A point or a comma may
separate decimals or thousands. Only the person who typed `1.234` knows which number is meant.
Digits may be full-width.
"""

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache

from babel.numbers import format_currency, get_currency_precision
from django.utils.translation import get_language

from invoices.document.places import locale_of_page

LEFT_TO_RIGHT_MARK = "\N{LEFT-TO-RIGHT MARK}"
WORD_JOINER = "\N{WORD JOINER}"
_MINUS = f"{LEFT_TO_RIGHT_MARK}\N{MINUS SIGN}{WORD_JOINER}"

# CLDR puts a space between a code and a number (KWD 1.000, but $1.00). Babel leaves it out.
_CODE_BEFORE_NUMBER = re.compile(r"(?<=[^\W\d_])(?=\d)")

#: The separators of German and French documents. Others have a comma and a point, like `f"{n:,}"`.
_SEPARATORS = {
    "de": str.maketrans({",": ".", ".": ","}),
    "fr": str.maketrans({",": "\N{NO-BREAK SPACE}", ".": ","}),
}

#: The precision for the largest quantity times the largest price with all decimals of both. Babel
#: and `normalize` round to the current context, which has 28 digits.
EXACT = Context(prec=60, rounding=ROUND_HALF_UP)


def minor_units(currency: str) -> int:
    """The number of minor units in a major unit: 100 for EUR, 1 for JPY, 1000 for KWD."""
    return int(10 ** get_currency_precision(currency))


def in_major_units(amount: int, currency: str) -> Decimal:
    """An amount in minor units as the decimal that people read."""
    return EXACT.divide(amount, minor_units(currency))


def readable_amount(amount: int, currency: str) -> str:
    """An amount in minor units with its currency: `€1,234.50`, `¥100`, `KWD 1.000`, `−€5.00`."""
    number = _with_decimals(in_major_units(amount, currency), currency)
    sign = _MINUS if number < 0 else ""
    symbol = _symbol(currency, locale_of_page())
    written = _localized(f"{number.copy_abs():,f}")
    if get_language() in _SEPARATORS:
        return f"{sign}{written}\N{NO-BREAK SPACE}{symbol.strip()}"
    return f"{sign}{symbol}{written}"


def bare_amount(amount: int, currency: str) -> str:
    """An amount in minor units, for a column that names the currency: `1,234.50`."""
    return bare_price(in_major_units(amount, currency), currency)


def bare_price(price: Decimal, currency: str) -> str:
    """A price in major units, in full, for a column that names the currency: `2.00`, `0.0125`."""
    return _grouped(_with_decimals(price, currency))


def readable_decimal(number: Decimal) -> str:
    """A number in full, without trailing zeros: `1,234.5`, `−3`."""
    return _grouped(_shortest(number))


def plain_amount(amount: int, currency: str) -> str:
    """An amount in minor units for programs: `-1234.50`, always with the currency's decimals."""
    return f"{_with_decimals(in_major_units(amount, currency), currency):f}"


def plain_decimal(number: Decimal) -> str:
    """A number for programs: in full, without trailing zeros and without an exponent."""
    return f"{_shortest(number):f}"


@cache
def _symbol(currency: str, locale: str) -> str:
    """The text before an amount: `€`, or `KWD` and a no-break space."""
    # Cached, because Babel takes 80 µs to format an amount.
    one = format_currency(1, currency, "¤0", locale, currency_digits=False)
    return _CODE_BEFORE_NUMBER.sub("\N{NO-BREAK SPACE}", one)[:-1]


def _with_decimals(number: Decimal, currency: str) -> Decimal:
    """`number` with the decimals of `currency`, or with all its decimals if it has more."""
    plain = _shortest(number)
    padded = plain.quantize(Decimal(1).scaleb(-get_currency_precision(currency)), context=EXACT)
    return padded if padded == plain else plain


def _shortest(number: Decimal) -> Decimal:
    """`number` without trailing zeros; zero has no sign."""
    return EXACT.add(number, 0).normalize(EXACT)


def _grouped(number: Decimal) -> str:
    # Babel would cut trailing zeros, which align the decimal points of a column.
    return _localized(f"{number:,f}").replace("-", _MINUS)


def _localized(number: str) -> str:
    """`1,234.50` with the separators of the active language."""
    return number.translate(_SEPARATORS.get(get_language() or "", {}))


# As people type them ------------------------------------------------------------------------------

#: No allowed number is as long.
NUMBER_MAX_LENGTH = 40

# Replaces full-width forms, and spaces and apostrophes between digits, by ASCII.
_ASCII = (
    {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    | dict.fromkeys([*map(ord, " \u3000\u00a0\u202f\u205f\u2019"), *range(0x2000, 0x200B)], "'")
    | {0x2212: "-"}
)
_SIGNED = re.compile(r"([+-]?)([\d.,']+)", re.ASCII)
_WHOLE = {
    # The text before a decimal separator: digits, or groups of three.
    ".": re.compile(r"\d*|[1-9]\d{0,2}(?:(?:,\d{3})+|(?:'\d{3})+)", re.ASCII),
    ",": re.compile(r"\d*|[1-9]\d{0,2}(?:(?:\.\d{3})+|(?:'\d{3})+)", re.ASCII),
}


def readings(typed: str) -> list[str]:
    """The numbers that `typed` may mean, with a point before the decimals: none, one or two.

    If there are two, the first one has the decimals.
    """
    text = typed.strip()
    match = _SIGNED.fullmatch(text.translate(_ASCII)) if len(text) <= NUMBER_MAX_LENGTH else None
    if not match:
        return []
    sign, digits = match.groups()
    found = []
    for point, whole_part in _WHOLE.items():
        whole, _point, decimals = digits.partition(point)
        is_number = whole_part.fullmatch(whole) and (not decimals or decimals.isdecimal())
        if is_number and (whole or decimals):
            plain = re.sub("[.,']", "", whole) + ("." + decimals if decimals else "")
            found.append(sign + plain)
    return sorted(set(found), key=lambda plain: "." not in plain)


def with_another_decimal(plain: str) -> str:
    """`1.234` as `1.2340`, which has no other reading."""
    return f"{plain}0"
