"""All that is stored about a person, as one JSON document, made while it is sent.

    {"account": {...},
    "sessions": [...],
    "invoices": [
    {...},
    {...}
    ]}

Memory holds one page of invoices (1 MB). The document is complete only with its last line: if
DynamoDB stops answering before that, what was sent is not JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import Any

from accounts.exports import account_of, sessions_of
from accounts.models import User
from invoices.documents import Invoice
from invoices.jsonform import as_full_json
from invoices.records import all_invoices
from invoices.years import years_of


def as_json(user: User) -> Iterator[bytes]:
    """The document of `user` in UTF-8, piece by piece; the first invoice is read right away.

    Costs 6 requests and 260 read units to find the years (`invoices.years`), then 1 request for
    each of them and for each MB, and 1 read unit per 4 KB of invoices.
    """
    invoices = _invoices(user.pk)
    first = next(invoices, None)
    return _pieces(user, invoices if first is None else chain([first], invoices))


def _invoices(account: str) -> Iterator[Invoice]:
    for year in sorted(years_of(account)):
        yield from all_invoices(account, year, oldest_first=True)


def _pieces(user: User, invoices: Iterator[Invoice]) -> Iterator[bytes]:
    yield f'{{"account": {_dumped(account_of(user))},\n'.encode()
    yield f'"sessions": {_dumped(sessions_of(user))},\n'.encode()
    yield b'"invoices": ['
    before = "\n"
    for invoice in invoices:
        yield f"{before}{as_full_json(invoice)}".encode()
        before = ",\n"
    yield b"\n]}\n"


def _dumped(shown: Any) -> str:
    return json.dumps(shown, default=datetime.isoformat, ensure_ascii=False)
