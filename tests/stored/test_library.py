"""Every operation works on locks, claims and cache items of released versions."""

import json
from datetime import date
from typing import Any

import pytest
from django.core.cache import cache

from accounts.exceptions import TooManyAttempts
from accounts.limits.attempts import begin_client, begin_sign_in, clear_failures
from accounts.limits.windows import limit
from accounts.models import User
from locks import Lock, claim_once
from locks.registry import State, break_lock
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


def test_a_held_lock_and_a_claim_are_free_only_after_they_are_broken(stored: Stored) -> None:
    fences = {
        item["key"]["S"]: int(item.get("fencingToken", {"N": 0})["N"])
        for item in stored.items("locks")
    }
    assert Lock("held").try_acquire() is None
    assert not claim_once("claimed")

    broken = [break_lock(name) for name in ("held", "broken", "claimed")]

    assert broken == [State.HELD, State.RELEASED, State.CLAIMED]
    assert claim_once("claimed")
    for name in ("held", "broken"):
        lease = Lock(name).try_acquire()
        assert lease is not None
        assert lease.fence > fences[name]


def test_all_locks_are_listed(stored: Stored) -> None:
    out, err, code = run("listlocks", "--json")

    names = {json.loads(line)["key"] for line in out.splitlines()}
    assert names == {item["key"]["S"] for item in stored.items("locks")}
    assert (err, code) == ("", 0)


# Cache items --------------------------------------------------------------------------------------

CLIENT = "192.0.2.1"

VALUES: dict[str, Any] = {
    "number": 41,
    "text": "ねこ",
    "tree": {"a": [1, 2.5, None, True]},
    "truth": True,
    "added": b"bytes",
    "object": date(2026, 3, 14),
}


@pytest.mark.parametrize("key", VALUES)
def test_a_value_is_read_and_can_be_replaced(stored: Stored, key: str) -> None:
    assert cache.get(key) == VALUES[key]
    assert cache.get_many([key]) == {key: VALUES[key]}
    cache.touch(key, 3600)
    cache.set(key, "new")
    assert cache.get(key) == "new"
    assert cache.delete(key)


def test_a_number_can_be_counted_up(stored: Stored) -> None:
    assert cache.incr("number") == 42


def test_a_stored_or_new_limit_stops_too_many_attempts(stored: Stored) -> None:
    hal = User.get(stored.pk("hal"))
    times = limit("sign_in").times
    assert times is not None

    def try_too_often() -> None:
        for _attempt in range(times + 1):
            attempt = begin_sign_in("hal", hal.pk, CLIENT, begin_client(CLIENT))
            assert not attempt.is_right(lambda _password: False, "wrong")

    with pytest.raises(TooManyAttempts):
        try_too_often()
    clear_failures(hal)
    begin_sign_in("hal", hal.pk, CLIENT, begin_client(CLIENT))
