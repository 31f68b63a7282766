"""Issuing an invoice: a draft becomes the next document of the account's year."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from dynamo.transactions import Write
from invoices import days
from invoices.documents import (
    DEFAULT_LANGUAGE,
    Draft,
    Invoice,
    Party,
    draw_up,
    from_item,
    label_of,
    to_item,
)
from invoices.drafts import (
    check_account,
    check_draft,
    check_language,
    check_seller,
    check_sums,
    checked_request_id,
)
from invoices.exceptions import DateTooEarly, RequestIdReused
from invoices.models import InvoiceItem
from sequences import series
from sequences.exceptions import OutOfOrder
from sequences.exceptions import RequestIdReused as IdReused


def issue(
    draft: Draft,
    *,
    account: str,
    seller: Party,
    request_id: str | uuid.UUID | None = None,
    language: str = DEFAULT_LANGUAGE,
    also: Sequence[Write] = (),
) -> Invoice:
    """Give `draft` the next number of the account's year and store it as an invoice.

    `request_id` names this invoice within the account (one is drawn if none is given): a later
    call with the same id and contents returns the invoice that was issued. `language` is that of
    its PDF, a tag such as `pt-BR`. Like the seller it does not count as contents. For `also`
    see `sequences.series.issue`.

    `account` is any text without `#`, other than `requestId`. `invoices.drafts` checks the draft;
    forms and commands have checked more by `invoices.rules` before.

    Costs 1 request and 6 write units for an invoice of up to 1 KB; see `sequences.series.issue`.

    Raises:
        RequestIdReused: the request id issued an invoice with other contents.
        DateTooEarly: the series has a later date already.
        ItemTooLarge, DamagedSeries, Unavailable: see `sequences.series.issue`.
        ValueError: an invoice cannot say this; nothing was sent.
    """
    request_id = str(uuid.uuid4()) if request_id is None else checked_request_id(request_id)
    check_account(account)
    check_seller(seller)
    check_language(language)
    check_draft(draft)
    while True:
        today = days.today()
        invoice = draw_up(draft, account, seller, today, request_id, language)
        check_sums(invoice.totals)
        item = InvoiceItem.prepared(invoice.series, to_item(invoice), draft.digest())
        try:
            issued = series.issue(item, series=invoice.series, request_id=request_id, also=also)
        except IdReused as error:
            year = int(error.series.rpartition("#")[2])
            raise RequestIdReused(error.request_id, label_of(year, error.number)) from error
        except OutOfOrder as error:
            # Midnight may have passed since the look at the clock.
            if not draft.issued_on and today != days.today():
                continue
            raise DateTooEarly(invoice.issued_at, date.fromisoformat(error.last)) from error
        if issued is item:
            return replace(invoice, number=item.number)
        return from_item(issued.stored)
