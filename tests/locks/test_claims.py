"""Claims: locks that are never released."""

from __future__ import annotations

import time

import pytest

from locks._internal.lock import Lock, claim_once
from locks.exceptions import BadLockName, LockTaken
from tests.locks.items import put, stored, taken
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


def test_the_first_claims_and_nobody_after_it() -> None:
    assert claim_once("a")
    assert not claim_once("a")
    assert claim_once("b")


def test_a_claim_names_its_owner_and_never_expires() -> None:
    claim_once("a")

    assert stored("a").keys() == {"key", "ownerName", "recordVersionNumber", "renewedAt"}


@pytest.mark.parametrize("first", [True, False])
def test_a_claim_costs_one_request(requests_sent: Requests, first: bool) -> None:
    if not first:
        claim_once("a")
    requests_sent.clear()

    assert claim_once("a") is first
    assert requests_sent.operations == ["PutItem"]
    assert requests_sent.units == (1 if first else 0)


def test_a_claimed_lock_never_becomes_free() -> None:
    claim_once("a")
    began = time.monotonic()

    with pytest.raises(LockTaken, match="claimed for good") as refused:
        Lock("a", lease_seconds=0.1, wait_seconds=0.5, poll_seconds=0.1).acquire()

    assert refused.value.for_ever
    assert time.monotonic() - began >= 0.5


def test_an_item_with_nothing_but_a_key_is_a_claim() -> None:
    put("a")

    assert not claim_once("a")
    assert Lock("a").try_acquire() is None


def test_a_lock_that_was_ever_taken_cannot_be_claimed() -> None:
    taken("a").release()

    assert not claim_once("a")


@pytest.mark.parametrize("name", ["", "x" * 2049, "\udcff"])
def test_a_claim_needs_a_valid_name(name: str) -> None:
    with pytest.raises(BadLockName):
        claim_once(name)
