"""What `issue` takes from programs: the rules of forms and commands, as far as they guard data.

Forms and commands have asked `invoices.rules` before, field by field, and say there what is wrong.
Whoever calls `issue` from Python learns it here, before any request: what is stored is never
changed again. How long texts are, and whether the PDF's fonts have their characters, is not asked.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError

from invoices import rules
from invoices.amounts import Line, Totals
from invoices.documents import Draft, Party, series_of
from sequences.models import REQUEST_PREFIX

_Rule = Callable[[Any], Any]
#: The tags of RFC 5646, less the strange ones: a language, then parts such as script and region.
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,3}")
_Part = tuple[str, type, _Rule, object]


def check_account(account: object) -> None:
    """Refuse an account whose keys could be those of another one and of another request id.

    Raises:
        ValueError: it is empty, no text, has a `#`, or is what the keys of guards begin with.
    """
    if not isinstance(account, str) or not account or "#" in account:
        raise ValueError(f"The account must be a text without #, and not empty: {account!r}.")
    if series_of(account, 0).startswith(REQUEST_PREFIX):
        raise ValueError(f"The account cannot be {account!r}: keys of request ids begin so.")


def check_seller(seller: Party) -> None:
    """Refuse a seller without a name, and what is no text.

    Raises:
        ValueError: what it is, and of which part.
    """
    for part in _parts_of("The seller", seller):
        _check(*part)


def checked_request_id(request_id: str | uuid.UUID) -> str:
    """The request id as it is stored: without the spaces around it.

    Raises:
        ValueError: no form or command takes it.
    """
    text = str(request_id) if isinstance(request_id, uuid.UUID) else request_id
    checked: str = _check("The request id", str, rules.clean_request_id, text)
    return checked


def check_language(language: object) -> None:
    """Refuse what is no tag of a language: an invoice that says it could never be printed.

    Raises:
        ValueError: it says what is refused.
    """
    if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
        raise ValueError(f"The language must be a tag like en or pt-BR, not {language!r}.")


def check_draft(draft: Draft) -> None:
    """Refuse what no invoice may say. Some 10 µs for a line.

    Raises:
        ValueError: what it is, and of which part.
    """
    for part in _parts(draft):
        _check(*part)


def check_sums(sums: Totals) -> None:
    """Refuse what the lines of a draft add up to, where it is too much.

    Raises:
        ValueError: it is.
    """
    _check("The lines", Totals, rules.check_totals, sums)


def _parts(draft: Draft) -> Iterator[_Part]:
    yield from _parts_of("The customer", draft.customer)
    yield "The note", str, _as_it_is, draft.note
    yield "The currency", str, rules.check_currency, draft.currency
    if draft.issued_on is not None:
        yield "The issue date", date, _check_day, draft.issued_on
    yield "The lines", Sequence, rules.check_line_count, draft.lines
    for number, line in enumerate(draft.lines, 1):
        about = f"Line {number}"
        yield about, Line, _as_it_is, line
        about += ", "
        yield about + "description", str, rules.check_filled, line.description
        yield about + "quantity", Decimal, rules.clean_quantity, line.quantity
        yield about + "unit price", Decimal, rules.clean_unit_price, line.unit_price
        yield about + "VAT rate", Decimal, rules.clean_vat_rate, line.vat_rate


def _parts_of(role: str, party: Party) -> Iterator[_Part]:
    yield role, Party, _as_it_is, party
    yield f"{role}'s name", str, rules.check_filled, party.name
    yield f"{role}'s address", str, _as_it_is, party.address
    yield f"{role}'s VAT id", str, _as_it_is, party.vat_id


def _as_it_is(value: object) -> object:
    return value


def _check_day(day: date) -> None:
    # A moment is a date to Python, and would be stored with its time.
    if isinstance(day, datetime):
        raise ValueError(f"The issue date must be a date without a time, not {day!r}.")
    rules.check_year(day)


def _check(part: str, kind: type, rule: _Rule, value: object) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{part}: must be a {kind.__name__}, not {value!r}.")
    try:
        return rule(value)
    except ValidationError as error:
        raise ValueError(f"{part}: {' '.join(error.messages)}") from error
