"""Voiding: the one step that changes an invoice, with a reason, once, whatever the network does."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from dynamo._internal.items import ITEM_MAX_BYTES
from invoices.exceptions import AlreadyVoided, UnknownInvoice
from invoices.models import InvoiceItem
from invoices.store.records import find_invoice
from invoices.store.settlement import void
from tests.faults.kinds import CloseBefore, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import (
    DAY,
    assert_whole,
    issued,
    new_account,
    remove_invoice,
    series,
    stored_numbers,
)
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

FIRST = f"{DAY.year}-000001"


@pytest.fixture
def account() -> str:
    return new_account()


@pytest.mark.fault_of("moto", "reports other capacity")
def test_a_voided_invoice_keeps_number_and_contents_and_shows_the_reason(
    account: str, requests_sent: Requests
) -> None:
    invoice = issued(account)
    requests_sent.clear()

    void(account, invoice.label, " typo ")

    assert (requests_sent.operations, requests_sent.units) == (["TransactWriteItems"], 4)
    voided = find_invoice(account, invoice.label)
    assert (voided.status, voided.void_reason) == ("voided", "typo")
    assert voided.voided_at is not None
    assert (voided.lines, voided.totals) == (invoice.lines, invoice.totals)
    assert_whole(account, 1)


@pytest.mark.parametrize("reason", ["other", "typo"])
def test_an_invoice_is_voided_once(account: str, reason: str) -> None:
    void(account, issued(account).label, "typo")
    voided = find_invoice(account, FIRST)

    with pytest.raises(AlreadyVoided) as refused:
        void(account, FIRST, reason)

    assert refused.value.reason == "typo"
    assert find_invoice(account, FIRST) == voided


@pytest.mark.parametrize("reason", ["", " ", " \u2060 ", "x" * 2_001, "𠮷" * 501])
def test_a_reason_that_is_blank_or_too_long_is_rejected_before_any_request(
    account: str, requests_sent: Requests, reason: str
) -> None:
    issued(account)
    requests_sent.clear()

    with pytest.raises(ValidationError):
        void(account, FIRST, reason)

    assert requests_sent.operations == []


@pytest.mark.parametrize("label", ["2026-000002", "2025-000001", "2026-1", "nonsense", ""])
def test_voiding_an_unknown_invoice_stores_nothing(account: str, label: str) -> None:
    invoice = issued(account)

    for who, which in ((account, label), (new_account(), invoice.label)):
        with pytest.raises(UnknownInvoice):
            void(who, which, "typo")

    assert stored_numbers(account) == [1]
    assert find_invoice(account, invoice.label) == invoice


@pytest.mark.fault_of("moto", "takes at most 405,000 bytes an item")
def test_the_largest_invoice_can_be_voided(account: str) -> None:
    size_bytes = ITEM_MAX_BYTES - InvoiceItem.reserved_bytes - 100
    invoice = issued(account, note="x" * (size_bytes - 400))

    void(account, invoice.label, "𠮷" * 500)

    assert find_invoice(account, invoice.label).is_voided
    remove_invoice(series(account), 1)


def test_a_retry_does_not_take_another_voiding_for_its_own(account: str, proxy: FaultProxy) -> None:
    invoice = issued(account)
    proxy.plan("TransactWriteItems", CloseBefore())
    proxy.plan("TransactWriteItems", Meanwhile(lambda: void(account, invoice.label, "theirs")))

    with pytest.raises(AlreadyVoided) as refused:
        void(account, invoice.label, "ours")

    assert refused.value.reason == "theirs"
