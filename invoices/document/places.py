"""Countries and currencies, and their choices in forms in the language of the page.

Babel is imported by the first function that needs it. Most pages do not need it, and the start of a
function on AWS Lambda would take longer.
"""

from functools import cache, partial

from django.utils.translation import get_language, gettext_lazy as _

from dynamo.inputs import Choices, Code

#: The languages of pages and documents, as Babel names them.
_LOCALES = ("en", "ja", "de", "fr")
# CLDR's codes of two letters that are not countries of ISO 3166.
_NOT_COUNTRIES = frozenset("AC CP CQ DG EA EU EZ IC QO TA UN XA XB ZZ".split())
#: Currencies that CLDR still has, and what replaced them. Bulgaria has the euro since 2026-01-01.
_REPLACED = {"BGN": "EUR"}


def locale_of_page() -> str:
    """Babel's name of the active language; English if the site has no translation to it."""
    language = get_language()
    return language if language in _LOCALES else _LOCALES[0]


def is_country(code: str) -> bool:
    """Whether `code` is the ISO 3166 code of a country (two capital letters)."""
    return code in _countries(_LOCALES[0])


def country_name(code: str) -> str:
    """The country in the active language; an unknown code as it is."""
    return _countries(locale_of_page()).get(code, code)


def country_choices() -> Choices:
    """An empty choice, and the countries by name."""
    return _country_choices(locale_of_page())


def is_currency(code: str) -> bool:
    """Whether `code` is the ISO 4217 code of a currency in use today."""
    return code in _currencies()


def currency_of(country: str) -> str:
    """The code of the country's currency; empty if it has none."""
    from babel.numbers import get_territory_currencies

    code = next(iter(get_territory_currencies(country)), "")
    return _REPLACED.get(code, code)


def currency_choices() -> Choices:
    """The currencies in use, by code: `("EUR", "EUR – Euro")`."""
    return _currency_choices(locale_of_page())


@cache
def _countries(locale: str) -> dict[str, str]:
    from babel import Locale

    names = Locale.parse(locale).territories
    return {
        code: name
        for code, name in names.items()
        if len(code) == 2 and code.isalpha() and code not in _NOT_COUNTRIES
    }


@cache
def _country_choices(locale: str) -> Choices:
    return (("", "–"), *sorted(_countries(locale).items(), key=lambda country: country[1]))


@cache
def _currencies() -> frozenset[str]:
    from babel.core import get_global
    from babel.numbers import get_territory_currencies

    return frozenset(
        code
        for territory in get_global("territory_currencies")
        for code in get_territory_currencies(territory)
        if code not in _REPLACED
    )


@cache
def _currency_choices(locale: str) -> Choices:
    from babel.numbers import get_currency_name

    return tuple(
        (code, f"{code} – {get_currency_name(code, locale=locale)}")
        for code in sorted(_currencies())
    )


#: The ISO 3166 code of a country.
Country = partial(
    Code,
    is_known=is_country,
    offered=country_choices,
    message=_("Enter a country code such as DE."),
)
#: The ISO 4217 code of a currency in use today.
Currency = partial(
    Code,
    is_known=is_currency,
    offered=currency_choices,
    message=_("Enter a currency code such as EUR."),
)
