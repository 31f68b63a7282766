"""Stored invoices: finding them, listing them, and the one step that changes one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from unicodedata import normalize

from dynamo.client.sending import send
from dynamo.exceptions import DamagedItem
from dynamo.models import Item
from dynamo.transactions import Refusal, Transaction, Write
from invoices.documents import Invoice, from_item, parse_label, series_of
from invoices.exceptions import AlreadyVoided, UnknownInvoice
from invoices.models import InvoiceItem
from invoices.rules import REASON_MAX_BYTES, is_blank

PAGE_SIZE = 50

#: A list asks so often, and then the person: for 1,000 invoices in a search, or for 5 MB.
MAX_REQUESTS = 5
SEARCH_PAGE_SIZE = 200


@dataclass(frozen=True)
class Page:
    """Some invoices, newest first; `before` is where the next page begins, None at the end.

    `searched` counts those that were looked at; `damaged` are the numbers of those that cannot be
    read (`2026-000042`).
    """

    invoices: list[Invoice]
    before: int | None
    searched: int
    damaged: list[str]


def find_invoice(account: str, label: str) -> Invoice:
    """The account's invoice of this number (`2026-000042`). Costs 1 request, 1 read unit per 4 KB.

    Raises:
        UnknownInvoice: there is none, or the label is none.
        DamagedItem: it cannot be read.
    """
    item = send("GetItem", _key_of(account, label)).get("Item")
    if not item:
        raise UnknownInvoice(label)
    return from_item(item)


def void(account: str, label: str, reason: str) -> Invoice:
    """Take the step from *issued* to *voided*, and say why; the invoice as it is then.

    It keeps its number and all that it says. Costs 1 request and 1 write unit per KB of the
    invoice; 1 read more if there is none. If a call got no answer in the end, the next one says
    that the invoice is voided, and for what reason.

    Raises:
        UnknownInvoice, AlreadyVoided, DamagedItem, ValueError: see `voiding`.
        Unavailable: no answer in time; it may be voided.
    """
    write = voiding(account, label, reason)
    voided: list[Item | None] = []
    with Transaction() as transaction:
        transaction.add(write)
        transaction.on_commit(write.about, voided.append)
    [item] = voided
    return from_item(item) if item else find_invoice(account, label)


def voiding(account: str, label: str, reason: str) -> Write:
    """The write that voids an invoice, for `void` or for a transaction with other writes.

    Raises (when it is refused, but ValueError at once):
        ValueError: the reason is empty, or longer than `REASON_MAX_BYTES`.
        UnknownInvoice: the account has no such invoice.
        AlreadyVoided: it was voided before.
        DamagedItem: it cannot be read, whether it is voided by now or not.
    """
    reason = reason.strip()
    if is_blank(reason):
        raise ValueError("An invoice is voided for a reason.")
    if (size_bytes := len(reason.encode())) > REASON_MAX_BYTES:
        raise ValueError(f"The reason has {size_bytes:,} bytes of at most {REASON_MAX_BYTES:,}.")
    voided_at = datetime.now(UTC)
    request = _key_of(account, label) | {
        "UpdateExpression": "SET #status = :voided, voidReason = :reason, voidedAt = :now",
        "ConditionExpression": "#status = :issued",
        "ExpressionAttributeNames": {"#status": "status"},
        "ExpressionAttributeValues": {
            ":issued": {"S": "issued"},
            ":voided": {"S": "voided"},
            ":reason": {"S": reason},
            ":now": {"S": voided_at.isoformat()},
        },
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }

    def otherwise(refusal: Refusal) -> Exception | None:
        invoice = from_item(refusal.stored) if refusal.stored else None
        # If it is not voided, it was issued after the refusal.
        if invoice is None or not invoice.is_voided:
            return UnknownInvoice(label)
        # Only this write has its time.
        if refusal.repeated and invoice.voided_at == voided_at:
            return None
        return AlreadyVoided(label, invoice.void_reason)

    return Write(request, {"Update": request}, otherwise)


def list_invoices(
    account: str,
    year: int,
    *,
    before: int | None = None,
    customer: str = "",
    limit: int = PAGE_SIZE,
) -> Page:
    """A page of the account's invoices of `year`, newest first, from below the number `before`.

    With `customer` only those whose customer's name contains it, in any case and width, and however
    its letters are composed; then a page may have few or none, and others may follow all the same.

    Costs 1 request and 1 read unit per 4 KB of what is listed, a search up to `MAX_REQUESTS` of
    `SEARCH_PAGE_SIZE` invoices or 1 MB each.
    """
    found: list[Invoice] = []
    damaged: list[str] = []
    wanted = _folded(customer)
    searched = 0
    page_size = SEARCH_PAGE_SIZE if wanted else limit + 1
    answers = _answers(account, year, before=before, page_size=page_size)
    for requests, (items, goes_on) in enumerate(answers, 1):
        for item in items:
            try:
                invoice = from_item(item)
            except DamagedItem:
                damaged.append(f"{year}-{item['number']['N'].zfill(6)}")
            else:
                if wanted in _folded(invoice.customer.name):
                    if len(found) == limit:
                        return Page(found, found[-1].number, searched, damaged)
                    found.append(invoice)
            searched += 1
        if goes_on and requests == MAX_REQUESTS:
            return Page(found, math.ceil(Decimal(items[-1]["number"]["N"])), searched, damaged)
    return Page(found, None, searched, damaged)


def all_invoices(
    account: str,
    year: int,
    *,
    before: int | None = None,
    oldest_first: bool = False,
    damaged: list[DamagedItem] | None = None,
) -> Iterator[Invoice]:
    """Every invoice of the account's year, as they are read; memory holds one page.

    What cannot be read goes into `damaged`, where that is given. Costs 1 request per MB and 1 read
    unit per 4 KB.

    Raises:
        DamagedItem: one cannot be read, and `damaged` is not given.
    """
    for items, _goes_on in _answers(account, year, before=before, oldest_first=oldest_first):
        for item in items:
            try:
                invoice = from_item(item)
            except DamagedItem as error:
                if damaged is None:
                    raise
                damaged.append(error)
            else:
                yield invoice


def _answers(
    account: str,
    year: int,
    *,
    before: int | None = None,
    oldest_first: bool = False,
    page_size: int | None = None,
) -> Iterator[tuple[list[Item], bool]]:
    """The answers to the queries for a year, each with whether there may be another."""
    request: dict[str, Any] = {
        "TableName": InvoiceItem.table(),
        "KeyConditionExpression": "series = :series",
        "ExpressionAttributeValues": {":series": {"S": series_of(account, year)}},
        "ScanIndexForward": oldest_first,
    }
    if before is not None:
        request["KeyConditionExpression"] += " AND #number < :before"
        request["ExpressionAttributeNames"] = {"#number": "number"}
        request["ExpressionAttributeValues"][":before"] = {"N": str(before)}
    if page_size is not None:
        request["Limit"] = page_size
    while True:
        answer = send("Query", request)
        goes_on = bool(answer.get("LastEvaluatedKey"))
        yield answer["Items"], goes_on
        if not goes_on:
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _folded(text: str) -> str:
    """Equal for texts that people take for the same: `É` in one code point or two, `ｶﾞ` and `ガ`."""
    return normalize("NFKC", normalize("NFKC", text).casefold())


def _key_of(account: str, label: str) -> dict[str, Any]:
    year, number = parse_label(label)
    key: Item = {"series": {"S": series_of(account, year)}, "number": {"N": str(number)}}
    return {"TableName": InvoiceItem.table(), "Key": key}
