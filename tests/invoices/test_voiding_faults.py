"""Voiding while the network fails: done once, or one clear error."""

from __future__ import annotations

import pytest

from invoices.exceptions import AlreadyVoided, UnknownInvoice
from invoices.records import find_invoice, void
from tests.faults.kinds import CloseBefore, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import issued, new_account

pytestmark = pytest.mark.usefixtures("proxy")


@pytest.fixture
def account() -> str:
    """An account that nobody has used."""
    return new_account()


def test_voiding_whose_reply_is_lost_succeeds(account: str, proxy: FaultProxy) -> None:
    invoice = issued(account)
    proxy.plan("UpdateItem", DropReply())

    voided = void(account, invoice.label, "typo")

    assert voided.is_voided
    assert find_invoice(account, invoice.label) == voided


def test_voiding_does_not_take_anothers_work_for_its_own(account: str, proxy: FaultProxy) -> None:
    invoice = issued(account)
    proxy.plan("UpdateItem", CloseBefore())
    proxy.plan("UpdateItem", Meanwhile(lambda: void(account, invoice.label, "theirs")))

    with pytest.raises(AlreadyVoided) as refused:
        void(account, invoice.label, "ours")

    assert refused.value.reason == "theirs"


def test_an_invoice_that_is_issued_just_after_it_was_to_be_voided_was_not_there(
    account: str, proxy: FaultProxy
) -> None:
    label = issued(account).label.replace("000001", "000002")
    proxy.plan("GetItem", Meanwhile(lambda: issued(account)))

    with pytest.raises(UnknownInvoice):
        void(account, label, "typo")

    assert not find_invoice(account, label).is_voided
