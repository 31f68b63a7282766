"""Every operation works on locks and claims of released versions."""

from __future__ import annotations

import json

import pytest

from locks._internal.lock import Lock, claim_once
from locks._internal.registry import State, break_lock
from tests.commands import run
from tests.locks import items
from tests.stored.releases import Stored, each_release

pytestmark = each_release


@pytest.mark.parametrize(("name", "data"), [("held", b"page 7"), ("released", b"done")])
def test_a_lock_is_acquired_with_a_higher_fencing_token_and_its_data(
    stored: Stored, name: str, data: bytes
) -> None:
    [before] = [item for item in stored.items("locks") if item["key"]["S"] == name]

    with Lock(name, poll_seconds=0.05) as lease:
        assert lease.fence > int(before["fencingToken"]["N"])
        assert lease.data == data
        lease.renew()
        lease.leave(b"new")

    assert items.stored(name)["isReleased"] == {"S": "1"}
    assert Lock(name).acquire().data == b"new"


def test_a_held_lock_is_not_acquired_at_once(stored: Stored) -> None:
    assert Lock("held").try_acquire() is None


def test_a_claim_can_be_made_again_only_after_it_is_broken(stored: Stored) -> None:
    assert not claim_once("claimed")

    assert break_lock("claimed") is State.CLAIMED
    assert claim_once("claimed")


def test_a_broken_lock_is_acquired_with_a_higher_fencing_token(stored: Stored) -> None:
    fences = {
        item["key"]["S"]: int(item["fencingToken"]["N"])
        for item in stored.items("locks")
        if "fencingToken" in item
    }

    assert break_lock("held") is State.HELD
    assert break_lock("broken") is State.RELEASED
    for name in ("held", "broken"):
        lease = Lock(name).try_acquire()
        assert lease is not None
        assert lease.fence > fences[name]


def test_all_locks_are_listed(stored: Stored) -> None:
    out, err, code = run("listlocks", "--json")

    names = {json.loads(line)["key"] for line in out.splitlines()}
    assert names == {item["key"]["S"] for item in stored.items("locks")}
    assert (err, code) == ("", 0)
