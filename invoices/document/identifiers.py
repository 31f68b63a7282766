"""VAT IDs and bank accounts: their normal form, and checks of their form and check digits.

No register is asked whether a number was assigned. python-stdnum is imported by the first check,
because few pages check anything.
"""

from contextlib import suppress
from importlib import import_module
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

#: The members of the European Union.
EU = frozenset(
    "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK".split()
)
#: The countries whose VAT IDs can be checked.
_CHECKED = EU | {"GB", "CH", "NO"}
_NOT_VAT_ID = _("“%(text)s” is not a VAT ID of this country.")
_NOT_VAT_ID_OF_CUSTOMER = _(
    "“%(text)s” is not a VAT ID. Check it and the customer’s country, or leave it blank."
)
_NOT_JAPANESE = _(
    "“%(text)s” is not a registration number. Enter T and 13 digits, with the right check digit."
)


def clean_vat_id(text: str, country: str) -> str:
    """The VAT ID of a business in `country`, without spaces; of Japan, the registration number.

    Knows the European Union, GB, CH, NO and JP; of other countries it returns `text`.

    Raises:
        ValidationError: its form or a check digit is wrong.
    """
    try:
        return _normalized(text, country)
    except ValueError as error:
        message = _NOT_JAPANESE if country == "JP" else _NOT_VAT_ID
        raise ValidationError(message, "vat_id", {"text": text}) from error


def clean_vat_id_of_customer(text: str, country: str) -> str:
    """Like `clean_vat_id`, or else a VAT ID of the country that its first letters name.

    A customer may have a VAT ID of another country. For example, a Swiss business may have a German
    one.

    Raises:
        ValidationError: it is neither.
    """
    letters = text.strip()[:2].upper()
    named = {"EL": "GR", "XI": "GB"}.get(letters, letters)
    for place in dict.fromkeys((country or named, named if named in _CHECKED else country)):
        with suppress(ValueError):
            return _normalized(text, place) if text else ""
    message = _NOT_JAPANESE if country == "JP" else _NOT_VAT_ID_OF_CUSTOMER
    raise ValidationError(message, "vat_id", {"text": text})


def _normalized(text: str, country: str) -> str:
    from stdnum import get_cc_module
    from stdnum.jp import cn

    if country == "JP":
        return f"T{cn.validate(text.strip().upper().removeprefix('T'))}"
    if country not in _CHECKED:
        return text
    module: Any = get_cc_module(country, "vat")
    number: str = module.validate(text)
    if country in {"CH", "NO"}:
        return str(module.format(number))
    prefix = "EL" if country == "GR" else country
    # The prefix of Northern Ireland in trade with the EU.
    prefix = "XI" if country == "GB" and text.strip().upper().startswith("XI") else prefix
    return f"{prefix}{number.removeprefix(prefix)}"


def clean_iban(text: str) -> str:
    """An IBAN without spaces. Raises ValidationError if its form or a check digit is wrong."""
    return _valid("iban", text, _("“%(text)s” is not an IBAN. Check its letters and digits."))


def clean_bic(text: str) -> str:
    """A BIC of 8 or 11 letters and digits. Raises ValidationError if it has another form."""
    return _valid("bic", text, _("“%(text)s” is not a BIC. It has 8 or 11 letters and digits."))


def _valid(kind: str, text: str, message: Any) -> str:
    try:
        return str(import_module(f"stdnum.{kind}").validate(text))
    except ValueError as error:
        raise ValidationError(message, kind, {"text": text}) from error


def readable_iban(number: str) -> str:
    """An IBAN in groups of four: `DE89 3704 0044 0532 0130 00`."""
    return " ".join(number[start : start + 4] for start in range(0, len(number), 4))
