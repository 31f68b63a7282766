"""Cache items of released versions can be read or are missing, without errors."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from django.core.cache import cache

from accounts.exceptions import TooManyAttempts
from accounts.limits.attempts import begin_client, begin_sign_in, forget
from accounts.limits.windows import limit
from accounts.models import User
from tests.stored.releases import Stored, each_release

pytestmark = each_release

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
def test_a_value_is_read_or_missing_and_can_be_replaced(stored: Stored, key: str) -> None:
    found = cache.get(key)

    assert found in (VALUES[key], None)
    assert cache.get_many([key]) == ({} if found is None else {key: found})
    cache.touch(key, 3600)
    cache.set(key, "new")
    assert cache.get(key) == "new"
    assert cache.delete(key)


def test_a_number_can_be_counted_up_or_is_missing(stored: Stored) -> None:
    try:
        assert cache.incr("number") == 42
    except ValueError:
        assert cache.add("number", 1)


def test_a_stored_or_new_limit_stops_too_many_attempts(stored: Stored) -> None:
    hal = User.get(stored.pk("hal"))
    times = limit("sign_in").times
    assert times is not None

    def try_too_often() -> None:
        for _attempt in range(times + 1):
            begin_sign_in("hal", hal.pk, CLIENT, begin_client(CLIENT))

    with pytest.raises(TooManyAttempts):
        try_too_often()
    forget(hal)
    begin_sign_in("hal", hal.pk, CLIENT, begin_client(CLIENT))
