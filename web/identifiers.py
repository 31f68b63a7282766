"""VAT IDs and bank accounts: normalized, and checked as far as their check digits go.

Nothing is looked up: whether a number was given to somebody is not known here.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from stdnum import bic, get_cc_module
from stdnum.eu import vat as eu_vat
from stdnum.exceptions import ValidationError as NotValid
from stdnum.jp import cn

#: The members of the European Union.
EU = frozenset(code.upper() for code in eu_vat.MEMBER_STATES) - {"XI"}  # Northern Ireland
# The letters before a VAT ID, if they are not the country's code.
_PREFIXES = {"GR": "EL"}


def clean_vat_id(text: str, country: str) -> str:
    """The VAT ID of a business in `country`, without spaces; of Japan, the registration number.

    Knows the European Union, GB, CH, NO and JP; of other countries it returns `text`.

    Raises:
        ValidationError: its form or a check digit is wrong.
    """
    try:
        return _normalized(text, country)
    except NotValid as error:
        raise ValidationError(
            _NOT_VAT_ID.get(country, _("“%(text)s” is not a VAT ID of this country.")),
            "vat_id",
            {"text": text},
        ) from error


_NOT_VAT_ID: dict[str, Any] = {
    "JP": _(
        "“%(text)s” is not a registration number. Enter T and 13 digits, with the right check "
        "digit."
    ),
}


def _normalized(text: str, country: str) -> str:
    if country == "JP":
        digits = text.strip().upper().removeprefix("T")
        return f"T{cn.validate(digits)}"
    module: Any = get_cc_module(country, "vat") if country in EU | {"GB", "CH", "NO"} else None
    if module is None:
        return text
    number: str = module.validate(text)
    if country in {"CH", "NO"}:
        return str(module.format(number))
    prefix = _PREFIXES.get(country, country)
    return f"{prefix}{number.removeprefix(prefix)}"


def clean_iban(text: str) -> str:
    """An IBAN without spaces. Raises ValidationError if its form or a check digit is wrong."""
    # Here, as it reads a table: a new function of AWS Lambda would wait 10 ms for it.
    from stdnum import iban

    try:
        return str(iban.validate(text))
    except NotValid as error:
        raise ValidationError(
            _("“%(text)s” is not an IBAN. Check its letters and digits."), "iban", {"text": text}
        ) from error


def readable_iban(number: str) -> str:
    """An IBAN in groups of four: `DE89 3704 0044 0532 0130 00`."""
    from stdnum import iban

    return str(iban.format(number))


def clean_bic(text: str) -> str:
    """A BIC of 8 or 11 letters and digits. Raises ValidationError if it has another form."""
    try:
        return str(bic.validate(text))
    except NotValid as error:
        raise ValidationError(
            _("“%(text)s” is not a BIC. It has 8 or 11 letters and digits."), "bic", {"text": text}
        ) from error
