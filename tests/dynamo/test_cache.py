"""The cache: what Django states of every backend, and what only conditional writes can promise."""

from __future__ import annotations

import datetime as dt
import enum
import hashlib
import pickle
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.cache import CacheKeyWarning, cache, caches
from django.utils.crypto import salted_hmac
from django.utils.safestring import mark_safe

from dynamo import cache as cache_module
from dynamo.cache import VALUE_MAX_BYTES, CacheItem, CacheValueTooLarge, DynamoCache
from dynamo.client.deadline import within
from dynamo.client.sending import send
from dynamo.exceptions import Unavailable
from dynamo.models import Item
from tests.faults.kinds import Answer, CloseBefore, DropReply, Meanwhile, Reply, nothing_processed
from tests.faults.proxy import NOWHERE, FaultProxy, through
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

THROTTLED = Answer(400, "ThrottlingException")


class Flag(enum.Flag):
    A = 1


class Clock:
    """The cache's clock, which stands until it is told to go on."""

    ms = 1_800_000_000_400

    def __call__(self) -> int:
        return self.ms

    def advance(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(cache_module, "now_ms", clock)
    return clock


@pytest.fixture
def proxy(engine: str) -> Iterator[FaultProxy]:
    with FaultProxy(engine) as proxy, through(proxy):
        yield proxy


def stored(key: str) -> Item | None:
    at_rest = hashlib.sha256(f"2|:1:{key}".encode()).hexdigest()
    answer = send("GetItem", {"TableName": CacheItem.table(), "Key": {"key": {"S": at_rest}}})
    return answer.get("Item") or None


def items() -> list[Item]:
    found: list[Item] = send("Scan", {"TableName": CacheItem.table()})["Items"]
    return found


@pytest.mark.parametrize(
    "value",
    [
        "text",
        "",
        "ünïcödé, 漢字 and \U0001f600",
        b"\x00\xff binary",
        zlib.compress(b"value to be compressed"),
        None,
        True,
        False,
        0,
        -1,
        10**38 - 1,
        -(10**38) + 1,
        10**38,
        10**5000,
        10**37,
        2.5,
        float("inf"),
        {"a": [1, {"b": (2, 3)}], "c": {4}},
        dt.datetime(2026, 11, 21, 8, 30, tzinfo=dt.UTC),
    ],
    ids=lambda value: (
        f"{type(value).__name__}-{str(value)[:12]}"
        if not isinstance(value, int) or abs(value) < 10**40
        else "huge-int"
    ),
)
def test_a_value_comes_back_as_it_was_with_its_type(value: object) -> None:
    cache.set("key", value)

    found = cache.get("key", "the default")

    assert found == value
    assert type(found) is type(value)
    assert cache.get_many(["key"]) == {"key": value}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *((value, "N") for value in (0, -1, 10**38 - 1)),
        *((value, "S") for value in ("", "text", "漢字", "\x00", None, True, 2.5, -0.0, 10**38)),
        *((value, "S") for value in ([], {}, {"a": [1, {"b": [None, 1e300]}], "": {}})),
        *((value, "B") for value in (b"", (1,), {1: "a"}, {None: 1}, {"a": {1}}, [(1,)])),
        *((value, "B") for value in (float("inf"), "\udc80", {"\ud800": 1})),
        *((value, "B") for value in (mark_safe("<b>"), HTTPStatus.OK, OrderedDict(a=1), [Flag.A])),
    ],
    ids=lambda value: type(value).__name__ if value not in ("N", "S", "B") else value,
)
def test_a_value_is_stored_as_json_where_that_keeps_it_and_else_pickled(
    value: Any, kind: str
) -> None:
    cache.set("key", value)

    item = stored("key")
    assert item is not None
    assert list(item["value"]) == [kind]
    found = cache.get("key")
    assert (type(found), repr(found)) == (type(value), repr(value))


def test_a_value_that_contains_one_object_twice_or_itself_is_kept_as_it_is() -> None:
    shared: list[Any] = [1]
    cache.set("twice", {"a": shared, "b": shared})
    circle: list[Any] = []
    circle.append(circle)
    cache.set("circle", circle)

    found = cache.get("twice")
    found["a"].append(2)
    assert found["b"] == [1, 2]
    again = cache.get("circle")
    assert again[0] is again


@pytest.mark.parametrize("depth", [99, 101, 300])
def test_a_deeply_nested_value_comes_back(depth: int) -> None:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]

    cache.set("key", value)

    assert cache.get("key") == value


def test_a_value_whose_json_is_too_long_for_an_item_is_pickled() -> None:
    value = "\x00" * 200_000
    cache.set("key", value)

    assert cache.get("key") == value
    with pytest.raises(CacheValueTooLarge):
        cache.set("key", "\x00" * 500_000)


RAN: list[str] = []


def run() -> None:
    RAN.append("!")


class RunsCode:
    """A value that runs code in the process that unpickles it."""

    def __reduce__(self) -> Any:
        return (run, ())


def plant(key: str, value: dict[str, Any]) -> None:
    """Store `value` under `key` as an attacker does who may write the table."""
    at_rest = hashlib.sha256(f"2|:1:{key}".encode()).hexdigest()
    send(
        "PutItem", {"TableName": CacheItem.table(), "Item": {"key": {"S": at_rest}, "value": value}}
    )


def signed(key: str, pickled: bytes) -> bytes:
    """The signature that the cache makes for `pickled` under `key`."""
    at_rest = hashlib.sha256(f"2|:1:{key}".encode()).hexdigest()
    return salted_hmac(
        "dynamo.cacheitems.pickle", at_rest.encode() + pickled, algorithm="sha256"
    ).digest()


EVIL = pickle.dumps(RunsCode())


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"B": EVIL}, id="unsigned"),
        pytest.param({"B": bytes(32) + EVIL}, id="wrongly-signed"),
        pytest.param({"B": b"short"}, id="too-short"),
        pytest.param({"S": "no json"}, id="no-json"),
        pytest.param({"S": "[" * 100_000}, id="too-deep"),
        pytest.param({"BOOL": True}, id="another-type"),
    ],
)
def test_what_the_cache_did_not_store_is_a_miss(value: dict[str, Any]) -> None:
    RAN.clear()
    plant("key", value)

    assert cache.get("key", "default") == "default"
    assert not cache.has_key("key")
    assert cache.get_many(["key"]) == {}
    assert RAN == []
    cache.set("key", (1,))
    assert cache.get("key") == (1,)


@pytest.mark.parametrize("pickled", [b"cgone\nThing\n.", b"cdecimal\nGone\n.", b"no pickle"])
def test_a_value_of_a_class_that_no_longer_exists_is_a_miss(pickled: bytes) -> None:
    plant("key", {"B": signed("key", pickled) + pickled})

    assert cache.get("key", "default") == "default"


def test_a_signed_value_is_a_miss_under_another_key() -> None:
    cache.set("key", (1, 2))
    item = stored("key")
    assert item is not None

    plant("other", item["value"])

    assert cache.get("other") is None


def test_a_signature_is_made_from_key_and_value_with_the_secret_key() -> None:
    RAN.clear()
    plant("key", {"B": signed("key", EVIL) + EVIL})

    cache.get("key")

    assert RAN == ["!"]


def test_a_value_that_was_signed_with_a_former_secret_key_is_read_while_it_is_a_fallback(
    settings: Any,
) -> None:
    cache.set("key", (1, 2))
    former, settings.SECRET_KEY = settings.SECRET_KEY, "the new key of this test"

    settings.SECRET_KEY_FALLBACKS = ["another", former]
    assert cache.get("key") == (1, 2)

    settings.SECRET_KEY_FALLBACKS = []
    assert cache.get("key") is None


def test_a_value_that_the_version_before_stored_is_never_looked_at() -> None:
    at_rest = hashlib.sha256(b":1:key").hexdigest()
    item = {"key": {"S": at_rest}, "value": {"B": EVIL}}
    send("PutItem", {"TableName": CacheItem.table(), "Item": item})

    assert cache.get("key") is None
    assert cache.add("key", "new")
    assert len(items()) == 2


# Ended for good -----------------------------------------------------------------------------------


def test_an_ended_key_has_no_value_and_takes_none_before_its_time(clock: Clock) -> None:
    cache.set("key", 1)

    cache.end("key", 60)

    assert cache.get("key") is None
    assert "key" not in cache
    assert cache.get_many(["key"]) == {}
    assert cache.add("key", 2) is False
    assert cache.set_if_present("key", 2) is False
    assert cache.touch("key", 1000) is False
    with pytest.raises(ValueError, match="no integer"):
        cache.incr("key")
    assert cache.get("key") is None
    clock.advance(60)
    assert cache.add("key", 2) is True


def test_an_ended_key_can_be_set_or_deleted() -> None:
    for key in ("set", "deleted"):
        cache.end(key, 60)

    cache.set("set", 1)
    assert cache.delete("deleted") is False

    assert cache.get("set") == 1
    assert cache.add("deleted", 1) is True


def test_ending_a_key_twice_changes_nothing(proxy: FaultProxy) -> None:
    cache.set("key", 1)
    proxy.plan("PutItem", DropReply())

    cache.end("key", 60)

    assert proxy.count("PutItem") == 2 + 1
    assert cache.get("key") is None


def test_a_key_without_a_value_gives_the_default() -> None:
    assert cache.get("missing") is None
    assert cache.get("missing", "default") == "default"
    assert "missing" not in cache


def test_none_is_a_value_and_no_default() -> None:
    cache.set("key", None)

    assert cache.get("key", "default") is None
    assert cache.has_key("key")
    assert "key" in cache


def test_a_value_can_be_set_over_one_of_another_type() -> None:
    cache.set("key", 1)
    cache.set("key", "one")

    assert cache.get("key") == "one"


def test_get_or_set_stores_a_default_once_and_calls_one_that_can_be_called() -> None:
    assert cache.get_or_set("key", "first") == "first"
    assert cache.get_or_set("key", "second") == "first"
    assert cache.get_or_set("called", lambda: "made") == "made"
    assert cache.get_or_set("none", None) is None
    assert cache.has_key("none")


def test_deleting_tells_whether_there_was_a_value() -> None:
    cache.set("key", "value")

    assert cache.delete("key") is True
    assert cache.delete("key") is False
    assert cache.get("key") is None


def test_an_expired_value_is_absent_although_its_item_still_stands(clock: Clock) -> None:
    cache.set("key", 1, timeout=10)
    clock.advance(9.999)
    assert cache.get("key") == 1

    clock.advance(0.001)

    assert stored("key") is not None
    assert cache.get("key") is None
    assert not cache.has_key("key")
    assert cache.get_many(["key"]) == {}
    assert cache.touch("key", 10) is False
    with pytest.raises(ValueError, match="no integer"):
        cache.incr("key")
    assert cache.set_if_present("key", 2) is False
    assert cache.delete("key") is False


def test_expiry_is_kept_in_milliseconds_and_for_ttl_in_whole_seconds_rounded_up(
    clock: Clock,
) -> None:
    cache.set("key", "value", timeout=0.5)

    item = stored("key")
    assert item is not None
    assert item["expiresAt"] == {"N": str(clock.ms + 500)}
    assert item["expires"] == {"N": "1800000001"}


def test_without_a_timeout_the_default_of_the_settings_counts(clock: Clock) -> None:
    cache.set("set", 1)
    cache.add("added", 1)
    cache.set_many({"many": 1})
    clock.advance(299)
    assert sorted(cache.get_many(["set", "added", "many"])) == ["added", "many", "set"]

    clock.advance(1)

    assert cache.get_many(["set", "added", "many"]) == {}


def test_a_timeout_of_none_never_ends(clock: Clock) -> None:
    cache.set("set", 1, timeout=None)
    cache.add("added", 1, timeout=None)
    cache.set("touched", 1, timeout=10)
    cache.touch("touched", None)

    clock.advance(100 * 365 * 86400)

    assert len(cache.get_many(["set", "added", "touched"])) == 3
    assert cache.incr("set") == 2
    assert all("expires" not in item for item in items())


def test_a_timeout_may_be_longer_than_memcached_has_them(clock: Clock) -> None:
    cache.set("key", "value", 60 * 60 * 24 * 30 + 1)
    clock.advance(60 * 60 * 24 * 30)

    assert cache.get("key") == "value"


@pytest.mark.parametrize("timeout", [0, -1, -0.5, -1_000_000])
def test_a_timeout_that_is_over_stores_nothing_and_ends_what_is_there(timeout: float) -> None:
    for key in ("set", "touched", "replaced", "many"):
        cache.set(key, "old", None)

    cache.set("set", "new", timeout)
    assert cache.touch("touched", timeout) is True
    assert cache.set_if_present("replaced", "new", timeout) is True
    cache.set_many({"many": "new"}, timeout)
    assert cache.add("added", "new", timeout) is True

    assert items() == []
    assert cache.touch("absent", timeout) is False


def test_touching_lets_a_value_live_on(clock: Clock) -> None:
    cache.set("key", "value", timeout=10)
    clock.advance(9)

    assert cache.touch("key", 10) is True

    clock.advance(9)
    assert cache.get("key") == "value"
    assert cache.touch("absent") is False
    assert stored("absent") is None


def test_adding_stores_only_where_nothing_is() -> None:
    assert cache.add("key", "first") is True
    assert cache.add("key", "second") is False
    assert cache.get("key") == "first"


def test_adding_over_an_expired_value_stores(clock: Clock) -> None:
    cache.add("key", "first", timeout=10)
    clock.advance(10)

    assert cache.add("key", "second", timeout=10) is True
    assert cache.get("key") == "second"


@pytest.mark.fault_of("moto", "lets conditional writes that meet both win")
def test_of_many_who_add_at_once_one_wins(at_once: Callable[..., list[Any]]) -> None:
    won = at_once(lambda number: cache.add("prize", number), 64)

    assert won.count(True) == 1
    assert cache.get("prize") == won.index(True)


def test_adding_knows_its_own_value_when_the_reply_was_lost(proxy: FaultProxy) -> None:
    proxy.plan("PutItem", DropReply())

    assert cache.add("key", "mine") is True
    assert proxy.count("PutItem") == 2
    assert proxy.count("GetItem") == 1


def test_adding_after_a_lost_request_yields_to_who_was_faster(proxy: FaultProxy) -> None:
    proxy.plan("PutItem", CloseBefore())
    proxy.plan("PutItem", Meanwhile(lambda: cache.add("key", "theirs")))

    assert cache.add("key", "mine") is False
    assert cache.get("key") == "theirs"


def test_an_own_value_is_still_known_after_it_was_touched(proxy: FaultProxy) -> None:
    proxy.plan("PutItem", DropReply())
    proxy.plan("PutItem", Meanwhile(lambda: cache.touch("key", 1000)))

    assert cache.add("key", "mine") is True


def test_counting_up_and_down_returns_the_sum() -> None:
    cache.set("count", 41)

    assert cache.incr("count") == 42
    assert cache.incr("count", 10) == 52
    assert cache.decr("count", 2) == 50
    assert cache.decr("count", -1) == 51
    assert cache.get("count") == 51


@pytest.mark.parametrize("value", [None, "41", 4.1, True, 10**38, b"41"])
def test_what_is_no_integer_is_not_counted(value: object) -> None:
    cache.set("key", value)

    with pytest.raises(ValueError, match="no integer under the key 'key'"):
        cache.incr("key")

    assert cache.get("key") == value


def test_counting_a_missing_key_is_an_error_and_makes_none() -> None:
    with pytest.raises(ValueError, match="no integer under the key 'missing'"):
        cache.incr("missing")
    with pytest.raises(ValueError, match="no integer"):
        cache.decr("missing")

    assert items() == []


def test_counting_by_a_fraction_is_an_error() -> None:
    cache.set("count", 1)

    with pytest.raises(TypeError):
        cache.incr("count", 0.5)

    assert cache.get("count") == 1


def test_counting_keeps_the_expiry(clock: Clock) -> None:
    cache.set("count", 1, timeout=10)
    clock.advance(9)
    cache.incr("count")
    clock.advance(1)

    assert cache.get("count") is None


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_many_who_count_at_once_are_all_counted(at_once: Callable[..., list[Any]]) -> None:
    cache.set("count", 0)

    counted = at_once(lambda _number: cache.incr("count"), 64)

    assert sorted(counted) == list(range(1, 65))
    assert cache.get("count") == 64


def test_a_lost_reply_to_a_count_is_an_error_and_never_counts_twice(proxy: FaultProxy) -> None:
    cache.set("count", 0)
    proxy.plan("UpdateItem", DropReply())

    with pytest.raises(Unavailable) as caught:
        cache.incr("count")

    assert caught.value.maybe_written
    assert proxy.count("UpdateItem") == 1
    assert cache.get("count") == 1


def test_a_count_that_was_certainly_not_made_is_repeated(proxy: FaultProxy) -> None:
    cache.set("count", 0)
    proxy.plan("UpdateItem", THROTTLED, times=2)

    assert cache.incr("count") == 1
    assert proxy.count("UpdateItem") == 3


def test_set_if_present_replaces_a_value_and_its_expiry(clock: Clock) -> None:
    cache.set("key", "old", timeout=10)

    assert cache.set_if_present("key", "new", 20) is True

    clock.advance(19)
    assert cache.get("key") == "new"


def test_set_if_present_does_not_store_where_nothing_is() -> None:
    assert cache.set_if_present("key", "new") is False
    assert items() == []


def test_set_if_present_is_repeated_when_the_reply_was_lost(proxy: FaultProxy) -> None:
    cache.set("key", "old")
    proxy.plan("PutItem", DropReply())

    assert cache.set_if_present("key", "new") is True
    assert cache.get("key") == "new"


def test_a_repeated_set_if_present_brings_nothing_deleted_back(proxy: FaultProxy) -> None:
    cache.set("key", "old")
    proxy.plan("PutItem", DropReply())
    proxy.plan("PutItem", Meanwhile(lambda: cache.delete("key")))

    assert cache.set_if_present("key", "new") is False
    assert items() == []


def test_more_values_than_a_batch_holds_are_set_found_and_deleted() -> None:
    values = {f"key{number}": number for number in range(130)}

    assert cache.set_many(values) == []
    assert cache.get_many([*values, "missing"]) == values

    cache.delete_many(list(values)[:100])
    assert sorted(cache.get_many(values).values()) == list(range(100, 130))


def test_many_take_any_iterable_and_nothing_at_all(requests_sent: Requests) -> None:
    assert cache.get_many([]) == {}
    assert cache.set_many({}) == []
    cache.delete_many([])
    assert requests_sent.operations == []

    cache.set("a", 1)
    assert cache.get_many(key for key in ("a", "b")) == {"a": 1}
    assert cache.get_many(["a", "a"]) == {"a": 1}
    cache.delete_many(key for key in ("a", "a"))
    assert cache.get("a") is None


def test_keys_that_read_alike_are_one_key() -> None:
    cache.set_many({1: "number", "1": "text"})

    assert cache.get("1") == "text"
    cache.delete_many([1, "1"])
    assert items() == []


def test_many_values_expire_together(clock: Clock) -> None:
    cache.set_many({"a": 1, "b": 2}, timeout=10)
    clock.advance(10)

    assert cache.get_many(["a", "b"]) == {}


def test_what_a_batch_left_undone_is_asked_for_again(proxy: FaultProxy) -> None:
    proxy.plan("BatchWriteItem", Reply(nothing_processed), times=2)
    proxy.plan("BatchGetItem", Reply(nothing_processed), times=2)

    cache.set_many({"a": 1, "b": 2})

    assert cache.get_many(["a", "b"]) == {"a": 1, "b": 2}
    assert proxy.count("BatchWriteItem") == 3
    assert proxy.count("BatchGetItem") == 3


@pytest.mark.parametrize(
    ("call", "maybe_written"),
    [(lambda: cache.get_many(["a"]), False), (lambda: cache.set_many({"a": 1}), True)],
    ids=["get_many", "set_many"],
)
def test_a_batch_that_stays_undone_is_unavailable_at_the_deadline(
    proxy: FaultProxy, call: Callable[[], object], maybe_written: bool
) -> None:
    proxy.plan("*", Reply(nothing_processed), times=1000)

    with within(0.2), pytest.raises(Unavailable) as caught:
        call()

    assert caught.value.maybe_written is maybe_written


def test_clearing_deletes_everything() -> None:
    cache.set_many({f"key{number}": "x" for number in range(60)})
    caches["default"].set("other", 1, version=7)

    cache.clear()

    assert items() == []


def test_clearing_follows_a_scan_over_all_its_pages(proxy: FaultProxy) -> None:
    cache.set_many({"a": 1, "b": 2})
    (first, second) = [{"key": item["key"]} for item in items()]
    proxy.plan("Scan", Reply(lambda _body: {"Items": [first], "LastEvaluatedKey": first}))

    cache.clear()

    assert proxy.seen[-2].operation == "Scan"
    assert proxy.seen[-2].body["ExclusiveStartKey"] == first
    assert second not in [{"key": item["key"]} for item in items()]


def test_keys_are_hashed_at_rest() -> None:
    cache.set("secret", "x")

    (item,) = items()
    assert item["key"] == {"S": hashlib.sha256(b"2|:1:secret").hexdigest()}
    assert "secret" not in str(item)


def test_versions_and_prefixes_keep_values_apart() -> None:
    prefixed = DynamoCache("", {"KEY_PREFIX": "other"})
    second = DynamoCache("", {"VERSION": 2})
    own = DynamoCache("", {"KEY_FUNCTION": lambda key, prefix, version: f"{version}-{key}"})
    for number, one in enumerate([cache, prefixed, second, own]):
        one.set("key", number)

    assert [one.get("key") for one in (cache, prefixed, second, own)] == [0, 1, 2, 3]
    assert cache.get("key", version=2) == 2
    assert cache.get("key", version=3) is None


def test_the_asynchronous_forms_keep_to_version_and_timeout(clock: Clock) -> None:
    async def story() -> list[Any]:
        return [
            await cache.aset_many({"key": 1, "other": 1}, 10, version=2),
            await cache.aincr("key", version=2),
            await cache.aset_if_present("key", 3, 20, version=2),
            await cache.aget_many(["key", "other"], version=2),
        ]

    cache.set("key", "first")

    assert async_to_sync(story)() == [[], 2, True, {"key": 3, "other": 1}]
    clock.advance(10)
    assert cache.get_many(["key", "other"], version=2) == {"key": 3}
    clock.advance(10)
    assert cache.get("key", version=2) is None

    async_to_sync(cache.adelete_many)(["key"], version=2)
    assert cache.get("key") == "first"


def test_a_value_moves_to_the_next_version_and_back() -> None:
    cache.set("key", "value", version=1)

    assert cache.incr_version("key") == 2
    assert cache.get("key") is None
    assert cache.get("key", version=2) == "value"
    assert cache.decr_version("key", version=2) == 1
    assert cache.get("key") == "value"
    with pytest.raises(ValueError, match="missing"):
        cache.incr_version("missing")


@pytest.mark.parametrize("key", ["x" * 5000, "with spaces", "new\nline", "snow\u2603 man"])
def test_a_key_that_memcached_would_refuse_is_warned_of_and_works(key: str) -> None:
    with pytest.warns(CacheKeyWarning):
        cache.set(key, "value")
    with pytest.warns(CacheKeyWarning):
        assert cache.get(key) == "value"


def bytes_that_pickle_to(size_bytes: int) -> bytes:
    overhead = len(pickle.dumps(bytes(300_000), pickle.HIGHEST_PROTOCOL)) - 300_000
    return bytes(size_bytes - overhead)


@pytest.mark.fault_of("moto", "takes at most 405,000 bytes an item")
def test_the_largest_value_fits() -> None:
    value = bytes_that_pickle_to(VALUE_MAX_BYTES)

    assert cache.add("key", value) is True
    assert cache.get("key") == value


@pytest.mark.parametrize(
    "store",
    [
        lambda value: cache.set("the key", value),
        lambda value: cache.add("the key", value),
        lambda value: cache.set_if_present("the key", value),
        lambda value: cache.set_many({"small": 1, "the key": value}),
    ],
    ids=["set", "add", "set_if_present", "set_many"],
)
@pytest.mark.filterwarnings("ignore::django.core.cache.CacheKeyWarning")
def test_a_value_over_400_kb_is_refused_before_it_is_sent(
    requests_sent: Requests, store: Callable[[bytes], object]
) -> None:
    value = bytes_that_pickle_to(VALUE_MAX_BYTES + 1)

    with pytest.raises(CacheValueTooLarge) as caught:
        store(value)

    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == (
        "The cache cannot hold the value of 'the key': pickled it has 409,345 bytes, "
        "and DynamoDB stores at most 409,344."
    )
    assert requests_sent.operations == []


@pytest.mark.parametrize(
    ("call", "operations"),
    [
        (lambda: cache.get("key"), ["GetItem"]),
        (lambda: cache.has_key("key"), ["GetItem"]),
        (lambda: cache.set("key", 1), ["PutItem"]),
        (lambda: cache.set("key", 1, 0), ["DeleteItem"]),
        (lambda: cache.add("new", 1), ["PutItem"]),
        (lambda: cache.add("key", 1), ["PutItem"]),
        (lambda: cache.add("key", 1, 0), ["GetItem"]),
        (lambda: cache.set_if_present("key", 1), ["PutItem"]),
        (lambda: cache.touch("key"), ["UpdateItem"]),
        (lambda: cache.touch("key", None), ["UpdateItem"]),
        (lambda: cache.incr("key"), ["UpdateItem"]),
        (lambda: cache.delete("key"), ["DeleteItem"]),
        (lambda: cache.end("key", 60), ["PutItem"]),
        (lambda: cache.get_many(map(str, range(101))), ["BatchGetItem"] * 2),
        (lambda: cache.set_many(dict.fromkeys(range(26), 1)), ["BatchWriteItem"] * 2),
        (lambda: cache.delete_many(range(25)), ["BatchWriteItem"]),
        (lambda: async_to_sync(cache.aincr)("key"), ["UpdateItem"]),
        (lambda: async_to_sync(cache.adecr)("key"), ["UpdateItem"]),
        (lambda: async_to_sync(cache.aget_many)(["key", "b"]), ["BatchGetItem"]),
        (lambda: async_to_sync(cache.aset_many)({"a": 1, "b": 2}), ["BatchWriteItem"]),
        (lambda: async_to_sync(cache.adelete_many)(["a", "b"]), ["BatchWriteItem"]),
        (lambda: async_to_sync(cache.aset_if_present)("key", 1), ["PutItem"]),
    ],
)
def test_an_operation_costs_the_requests_that_it_states(
    requests_sent: Requests, call: Callable[[], object], operations: list[str]
) -> None:
    cache.set("key", 1)
    requests_sent.clear()

    call()

    assert requests_sent.operations == operations


@pytest.mark.fault_of("moto", "counts half a unit for an update")
def test_a_write_and_a_read_cost_one_unit_each(requests_sent: Requests) -> None:
    cache.add("key", 1)
    cache.incr("key")
    cache.touch("key")
    cache.get("key")

    assert requests_sent.units == 4


def test_every_read_is_strongly_consistent(requests_sent: Requests) -> None:
    cache.get("key")
    cache.has_key("key")
    cache.get_many(["key"])
    cache.clear()

    get, has, many, scan = requests_sent.requests
    assert get["ConsistentRead"]
    assert has["ConsistentRead"]
    assert many["RequestItems"][CacheItem.table()]["ConsistentRead"]
    assert scan["ConsistentRead"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: cache.get("key", "default"),
        lambda: cache.set("key", 1),
        lambda: cache.add("key", 1),
        lambda: cache.touch("key"),
        lambda: cache.incr("key"),
        lambda: cache.delete("key"),
        lambda: cache.end("key", 60),
        lambda: cache.get_many(["key"]),
    ],
    ids=["get", "set", "add", "touch", "incr", "delete", "end", "get_many"],
)
def test_a_cache_out_of_reach_is_not_an_empty_cache(call: Callable[[], object]) -> None:
    with through(NOWHERE), within(0.1), pytest.raises(Unavailable) as caught:
        call()

    assert not caught.value.maybe_written
