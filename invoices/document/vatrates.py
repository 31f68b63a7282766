"""The VAT rates of countries, as a form offers them: in percent, the standard rate first.

Rates change. Nothing is checked against them, and any other rate can be typed. Compared on
2026-11-23 with the European Commission's database "Taxes in Europe" as of 2026-09-29, and with what
is published on the rates of GB, CH, NO and JP. The rates of regions (such as Madeira) and of a few
goods (such as livestock in Ireland) are left out.
"""

from __future__ import annotations

from decimal import Decimal

_RATES = """
    AT 20 13 10 4.9, BE 21 12 6, BG 20 9, CY 19 9 5 3, CZ 21 12, DE 19 7, DK 25, EE 24 13 9,
    ES 21 10 4, FI 25.5 13.5 10, FR 20 10 5.5 2.1, GR 24 13 6, HR 25 13 5, HU 27 18 5, IE 23 13.5 9,
    IT 22 10 5 4, LT 21 12 5, LU 17 14 8 3, LV 21 12 5, MT 18 12 7 5, NL 21 9, PL 23 8 5,
    PT 23 13 6, RO 21 11, SE 25 12 6, SI 22 9.5 5, SK 23 19 5, GB 20 5, CH 8.1 3.8 2.6,
    NO 25 15 12, JP 10 8
"""
_BY_COUNTRY = {country: rates for country, *rates in map(str.split, _RATES.split(","))}


def rates_of(country: str) -> list[str]:
    """The rates to offer, and last 0; none for a country that is not known here."""
    known = _BY_COUNTRY.get(country)
    return [*known, "0"] if known else []


def is_reduced(rate: Decimal, country: str) -> bool:
    """Whether it is one of the reduced rates of `country`."""
    return rate in map(Decimal, rates_of(country)[1:-1])
