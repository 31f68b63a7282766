"""The cache: what Django documents for every backend, and what conditional writes add."""

import datetime as dt
import enum
import hashlib
import pickle
import zlib
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.sessions.backends.base import UpdateError
from django.core.cache import CacheKeyWarning, cache, caches
from django.utils.crypto import salted_hmac
from django.utils.safestring import mark_safe

from dynamo.cache import DynamoCache, items as cache_items
from dynamo.cache.items import VALUE_MAX_BYTES, CacheItem, CacheValueTooLarge
from dynamo.exceptions import Unavailable
from dynamo.runtime.deadline import within
from dynamo.sessions import SessionStore
from tests.faults.kinds import CloseBefore, DropReply, Meanwhile, Reply, nothing_processed
from tests.faults.proxy import NOWHERE, FaultProxy, through
from tests.items import Item, put_item, scanned, stored_item
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


class Clock:
    """The cache's clock; only `advance` moves it."""

    ms = 1_800_000_000_400

    def __call__(self) -> int:
        return self.ms

    def advance(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(cache_items, "now_ms", clock)
    return clock


def stored_key(key: str) -> str:
    return hashlib.sha256(f"2|:1:{key}".encode()).hexdigest()


def stored(key: str) -> Item:
    return stored_item(CacheItem.table(), key=stored_key(key))


def put(key: str, value: dict[str, Any]) -> None:
    """Store `value` under `key` as it stands."""
    item = {"key": {"S": stored_key(key)}, "value": value}
    put_item(CacheItem.table(), **item)


def items() -> list[Item]:
    return scanned(CacheItem.table())


# Values -------------------------------------------------------------------------------------------


class Flag(enum.Flag):
    A = 1


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


SHARED = [1]
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *((value, "N") for value in (0, -1, 10**37, 10**38 - 1, -(10**38) + 1)),
        *(
            (value, "S")
            for value in ("", "text", "ünï, 漢字, \U0001f600", "\x00", None, True, False)
        ),
        *((value, "S") for value in (2.5, -0.0, 10**38, [], {}, {"a": [1, {"b": [None, 1e300]}]})),
        *((value, "B") for value in (b"", zlib.compress(b"value"), (1,), {1: "a"}, {None: 1})),
        *((value, "B") for value in ({"a": {1}}, [(1,)], float("inf"), 10**5000, "\udc80")),
        *((value, "B") for value in ({"\ud800": 1}, dt.datetime(2026, 11, 21, tzinfo=dt.UTC))),
        *((value, "B") for value in (mark_safe("<b>"), HTTPStatus.OK, OrderedDict(a=1), [Flag.A])),
        *((value, "B") for value in (zlib.compress, CacheKeyWarning)),
        # Of JSON, objects that occur twice would come back as two.
        *((value, "B") for value in ({"a": SHARED, "b": SHARED}, CIRCLE)),
        # Nested as deeply as JSON may be, deeper, and longer in JSON than an item.
        *((nested(99), "S"), (nested(101), "B"), (nested(300), "B"), ("\x00" * 200_000, "B")),
    ],
    ids=lambda each: each if each in ("N", "S", "B") else type(each).__name__,
)
def test_a_value_is_stored_as_json_if_that_keeps_it_and_otherwise_as_a_signed_pickle(
    value: Any, kind: str
) -> None:
    cache.set("key", value)

    assert list(stored("key")["value"]) == [kind]
    for found in (cache.get("key", "the default"), cache.get_many(["key"])["key"]):
        assert type(found) is type(value)
        # Pickled, as 0.0 and -0.0 are equal, and so are True and 1 in a list.
        assert pickle.dumps(found) == pickle.dumps(value)


def pickled_size(size_bytes: int) -> bytes:
    """A value whose pickle has so many bytes."""
    overhead = len(pickle.dumps(bytes(300_000), pickle.HIGHEST_PROTOCOL)) - 300_000
    return bytes(size_bytes - overhead)


@pytest.mark.fault_of("moto", "takes at most 405,000 bytes an item")
@pytest.mark.parametrize("location", ["", "x" * 40])
def test_the_largest_value_fits(location: str) -> None:
    value = pickled_size(VALUE_MAX_BYTES)
    largest = DynamoCache(location, {}).sessions

    assert largest.add("key", value) is True
    assert largest.get("key") == value


@pytest.mark.parametrize(
    "store",
    [
        cache.set,
        cache.add,
        cache.set_if_present,
        lambda key, value: cache.set_many({"small": 1, key: value}),
    ],
)
@pytest.mark.filterwarnings("ignore::django.core.cache.CacheKeyWarning")
def test_a_value_over_400_kb_is_rejected_before_it_is_sent(
    requests_sent: Requests, store: Callable[[str, Any], object]
) -> None:
    with pytest.raises(CacheValueTooLarge) as caught:
        store("the key", pickled_size(VALUE_MAX_BYTES + 1))

    assert isinstance(caught.value, ValueError)
    assert all(text in str(caught.value) for text in ("'the key'", "409,345", "409,344"))
    assert requests_sent.operations == []


RAN: list[str] = []


def run() -> None:
    RAN.append("!")


class RunsCode:
    """A value that runs code in the process that unpickles it."""

    def __reduce__(self) -> Any:
        return (run, ())


def signed(key: str, pickled: bytes) -> bytes:
    """`pickled` with the signature that the cache makes for it under `key`."""
    data = stored_key(key).encode() + pickled
    return salted_hmac("dynamo.cacheitems.pickle", data, algorithm="sha256").digest() + pickled


EVIL = pickle.dumps(RunsCode())


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"B": EVIL}, id="unsigned"),
        pytest.param({"B": bytes(32) + EVIL}, id="wrongly-signed"),
        pytest.param({"B": signed("other", EVIL)}, id="signed-for-another-key"),
        pytest.param({"B": b"short"}, id="too-short"),
        pytest.param({"S": "no json"}, id="no-json"),
        pytest.param({"S": "[" * 100_000}, id="too-deep"),
        pytest.param({"BOOL": True}, id="another-type"),
        pytest.param({"B": signed("key", b"cgone\nThing\n.")}, id="module-is-gone"),
        pytest.param({"B": signed("key", b"cdecimal\nGone\n.")}, id="class-is-gone"),
        pytest.param({"B": signed("key", b"no pickle")}, id="no-pickle"),
    ],
)
def test_a_value_without_a_valid_signature_or_that_cannot_be_read_is_a_miss(
    value: dict[str, Any],
) -> None:
    RAN.clear()
    put("key", value)

    assert cache.get("key", "default") == "default"
    assert not cache.has_key("key")
    assert cache.get_many(["key"]) == {}
    assert RAN == []
    cache.set("key", (1,))
    assert cache.get("key") == (1,)
    # With a valid signature the same pickle is read.
    put("key", {"B": signed("key", EVIL)})
    cache.get("key")
    assert RAN == ["!"]


def test_a_value_that_was_signed_with_an_earlier_secret_key_is_read_while_that_is_a_fallback(
    settings: Any,
) -> None:
    cache.set("key", (1, 2))
    former, settings.SECRET_KEY = settings.SECRET_KEY, "the new key of this test"

    settings.SECRET_KEY_FALLBACKS = ["another", former]
    assert cache.get("key") == (1, 2)

    settings.SECRET_KEY_FALLBACKS = []
    assert cache.get("key") is None


# Keys and versions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda key: cache.set(key, 1, version=2), [(37, 1), (None, 1)]),
        (lambda key: cache.add(key, 1, version=2), [(37, 42), (None, 1)]),
        (lambda key: cache.set_many({key: 1}, version=2), [(37, 1), (None, 1)]),
        (lambda key: cache.get(key) and cache.incr(key, version=2), [(37, 43), (None, None)]),
        (lambda key: cache.delete(key, version=2), [(37, None), (None, None)]),
        (lambda key: cache.delete_many([key], version=2), [(37, None), (None, None)]),
        (lambda key: cache.touch(key, 0, version=2), [(37, None), (None, None)]),
    ],
)
def test_a_change_affects_its_version_only(
    change: Callable[[str], object], left: list[tuple[int | None, int | None]]
) -> None:
    cache.set("key", 37, version=1)
    cache.set("key", 42, version=2)

    for key, (first, second) in zip(("key", "new"), left, strict=True):
        change(key)

        assert (cache.get(key), cache.get(key, version=2)) == (first, second)
        assert cache.get_many([key], version=2) == ({} if second is None else {key: second})
        assert cache.has_key(key, version=2) is (second is not None)


def test_a_key_that_memcached_rejects_is_warned_of() -> None:
    with pytest.warns(CacheKeyWarning, match="will cause errors if used with memcached"):
        cache.set("new\nline", 1)


# Reading and storing ------------------------------------------------------------------------------


def test_a_missing_key_is_told_from_a_stored_none() -> None:
    cache.set("none", None)

    assert (cache.get("missing"), cache.get("missing", "default")) == (None, "default")
    assert cache.get("none", "default") is None
    assert ("missing" in cache, "none" in cache) == (False, True)
    assert [cache.delete("none"), cache.delete("none")] == [True, False]


@pytest.mark.parametrize(
    ("lost", "meanwhile", "is_mine"),
    [
        (DropReply(), lambda: cache.touch("key", 1000), True),
        (CloseBefore(), lambda: cache.add("key", "theirs"), False),
    ],
    ids=["reply", "request"],
)
def test_add_recognizes_whose_value_is_stored_when_it_is_repeated(
    proxy: FaultProxy, lost: Any, meanwhile: Callable[[], object], is_mine: bool
) -> None:
    proxy.plan("PutItem", lost)
    proxy.plan("PutItem", Meanwhile(meanwhile))

    assert cache.add("key", "mine") is is_mine

    assert proxy.count("GetItem") == 1
    assert cache.get("key") == ("mine" if is_mine else "theirs")


def test_set_if_present_replaces_a_value_and_its_expiry(clock: Clock) -> None:
    cache.set("key", "old", timeout=10)

    assert cache.set_if_present("key", "new", 20) is True

    clock.advance(19)
    assert cache.get("key") == "new"


def test_a_repeated_set_if_present_does_not_restore_a_deleted_value(proxy: FaultProxy) -> None:
    cache.set("key", "old")
    proxy.plan("PutItem", DropReply())
    proxy.plan("PutItem", Meanwhile(lambda: cache.delete("key")))

    assert cache.set_if_present("key", "new") is False
    assert items() == []


# Counting -----------------------------------------------------------------------------------------


def test_incr_and_decr_return_the_sum() -> None:
    cache.set("count", 41)

    assert [cache.incr("count"), cache.incr("count", 10)] == [42, 52]
    assert [cache.decr("count", 2), cache.decr("count", -1)] == [50, 51]
    with pytest.raises(TypeError):
        cache.incr("count", 0.5)
    assert cache.get("count") == 51


@pytest.mark.parametrize("value", [None, "41", 4.1, True, 10**38, b"41"])
def test_incr_and_decr_refuse_a_missing_key_and_a_value_that_is_not_an_integer(
    value: object,
) -> None:
    cache.set("key", value)

    for key in ("key", "missing"):
        for count in (cache.incr, cache.decr):
            with pytest.raises(ValueError, match=f"no integer under the key '{key}'"):
                count(key)

    assert cache.get("key") == value
    assert len(items()) == 1


def test_a_lost_reply_to_a_count_is_an_error_and_never_counts_twice(proxy: FaultProxy) -> None:
    cache.set("count", 0)
    proxy.plan("UpdateItem", DropReply())

    with pytest.raises(Unavailable) as caught:
        cache.incr("count")

    assert caught.value.maybe_written
    assert proxy.count("UpdateItem") == 1
    assert cache.get("count") == 1


# Expiry -------------------------------------------------------------------------------------------


def assert_has_no_value(key: str) -> None:
    assert cache.get(key) is None
    assert not cache.has_key(key)
    assert cache.get_many([key]) == {}
    assert cache.touch(key, 1000) is False
    assert cache.set_if_present(key, 2) is False
    with pytest.raises(ValueError, match="no integer"):
        cache.incr(key)


@pytest.mark.fault_of("moto", "returns no attribute that an update leaves as it is")
def test_an_expired_value_is_absent_although_its_item_is_still_stored(clock: Clock) -> None:
    cache.set("key", 1, timeout=10)
    clock.advance(9.999)
    assert cache.incr("key", 0) == 1

    clock.advance(0.001)

    assert stored("key")
    assert_has_no_value("key")
    assert cache.delete("key") is False
    cache.set("key", 1, timeout=1)
    clock.advance(1)
    assert cache.add("key", 2) is True


def test_expiry_is_stored_in_milliseconds_and_for_ttl_in_whole_seconds_rounded_up(
    clock: Clock,
) -> None:
    cache.set("key", "value", timeout=0.5)

    assert stored("key")["expiresAt"] == {"N": str(clock.ms + 500)}
    assert stored("key")["expires"] == {"N": "1800000001"}


@pytest.mark.parametrize(
    ("given", "seconds"), [({}, 300), ({"timeout": None}, None)], ids=["default", "never"]
)
def test_a_value_without_a_timeout_ends_after_that_of_the_settings_or_never(
    clock: Clock, given: dict[str, None], seconds: int | None
) -> None:
    cache.set("touched", 1, timeout=10)
    cache.touch("touched", **given)
    cache.set("set", 1, **given)
    cache.add("added", 1, **given)
    cache.set_many({"many": 1}, **given)
    clock.advance(100 * 365 * 86400 if seconds is None else seconds - 1)
    assert len(cache.get_many(["set", "added", "touched", "many"])) == 4
    assert all("expires" in item for item in items()) is (seconds is not None)

    clock.advance(1)

    assert len(cache.get_many(["set", "added", "touched", "many"])) == (4 if seconds is None else 0)


@pytest.mark.parametrize("timeout", [0, -0.5])
def test_a_timeout_that_is_over_stores_nothing_and_deletes_the_value(timeout: float) -> None:
    for key in ("set", "touched", "replaced", "many"):
        cache.set(key, "old", None)

    cache.set("set", "new", timeout)
    assert cache.touch("touched", timeout) is True
    assert cache.set_if_present("replaced", "new", timeout) is True
    cache.set_many({"many": "new"}, timeout)
    assert cache.add("added", "new", timeout) is True

    assert items() == []
    assert cache.touch("absent", timeout) is False


# Ended keys ---------------------------------------------------------------------------------------


def test_an_ended_key_has_no_value_and_is_in_use_until_its_time_or_until_it_is_set_or_deleted(
    clock: Clock,
) -> None:
    for key in ("key", "set", "deleted"):
        cache.set(key, 1)
        cache.end(key, 60)
        assert_has_no_value(key)
        assert cache.add(key, 2) is False

    cache.set("set", 2)
    assert cache.delete("deleted") is False
    assert (cache.get("set"), cache.add("deleted", 2)) == (2, True)
    clock.advance(60)
    assert cache.add("key", 2) is True


@pytest.mark.parametrize("value", ["text", "", 7, None])
def test_a_value_is_deleted_only_if_it_is_the_expected_one(value: str | int | None) -> None:
    assert not cache.delete_if("key", value)

    cache.set("key", value)
    assert not cache.delete_if("key", "other")
    assert cache.has_key("key")

    assert cache.delete_if("key", value)
    assert not cache.has_key("key")


# Many keys ----------------------------------------------------------------------------------------


def test_more_values_than_a_batch_holds_are_set_found_and_deleted(requests_sent: Requests) -> None:
    values = {f"key{number}": number for number in range(130)}

    assert cache.set_many(values) == []
    assert cache.get_many([*values, "missing"]) == values
    cache.delete_many(list(values)[:100])
    assert sorted(cache.get_many(values).values()) == list(range(100, 130))
    assert requests_sent.operations == [
        *(["BatchWriteItem"] * 6 + ["BatchGetItem"] * 2),
        *(["BatchWriteItem"] * 4 + ["BatchGetItem"] * 2),
    ]


def test_operations_on_many_keys_take_any_iterable_without_keys_or_with_repeated_ones(
    requests_sent: Requests,
) -> None:
    assert cache.get_many([]) == {}
    assert cache.set_many({}) == []
    cache.delete_many([])
    assert requests_sent.operations == []

    # As keys, texts and numbers that are written alike are the same.
    cache.set_many({1: "number", "1": "text"})
    assert cache.get_many(key for key in ("1", "1", "b")) == {"1": "text"}
    cache.delete_many(key for key in (1, "1"))
    assert items() == []


def test_values_that_were_not_processed_are_sent_again(proxy: FaultProxy) -> None:
    proxy.plan("BatchWriteItem", Reply(nothing_processed), times=2)

    cache.set_many({"a": 1, "b": 2})

    assert proxy.count("BatchWriteItem") == 3
    assert cache.get_many(["a", "b"]) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("operation", "maybe_written"),
    [(lambda: cache.get_many(["a"]), False), (lambda: cache.set_many({"a": 1}), True)],
)
def test_a_batch_that_is_never_processed_is_unavailable_at_the_deadline(
    proxy: FaultProxy, operation: Callable[[], object], maybe_written: bool
) -> None:
    proxy.plan("*", Reply(nothing_processed), times=1000)

    with within(0.2), pytest.raises(Unavailable) as caught:
        operation()

    assert caught.value.maybe_written is maybe_written


def test_clear_deletes_everything_on_all_pages_of_the_table(proxy: FaultProxy) -> None:
    cache.set_many({f"key{number}": "x" for number in range(60)})
    caches["default"].set("other", 1, version=7)
    first = {"key": items()[0]["key"]}
    proxy.plan("Scan", Reply(lambda _body: {"Items": [first], "LastEvaluatedKey": first}))

    cache.clear()

    scans = [seen.body for seen in proxy.seen if seen.operation == "Scan"]
    assert scans[-1]["ExclusiveStartKey"] == first
    assert items() == []


LOCATIONS = ["", "a", "A", "a.b", "2", "x" * 40]
#: Caches whose keys would be the same if LOCATION, KEY_PREFIX and VERSION were written in a row.
PLACES = {
    f"{location} {prefix} {version}": {
        "BACKEND": "dynamo.cache.DynamoCache",
        "LOCATION": location,
        "KEY_PREFIX": prefix,
        "VERSION": version,
    }
    for location in LOCATIONS
    for prefix, version in [("", 1), ("", 2), ("a|", 1), ("@a|", 1), ("a:1", 1)]
}


def test_a_cache_has_its_own_keys_and_clear_deletes_those_of_its_location_but_no_session(
    settings: Any, requests_sent: Requests
) -> None:
    settings.CACHES = PLACES
    sessions = {}
    for name in PLACES:
        caches[name].set_many({"key": name})
        assert caches[name].add("counted", 1)
        settings.SESSION_CACHE_ALIAS = name
        sessions[name] = SessionStore()
        ended = SessionStore()
        for session in (sessions[name], ended):
            session["in"] = name
            session.save()
        ended.delete()
        with pytest.raises(UpdateError):
            ended.save()

    for number, location in enumerate(LOCATIONS, start=1):
        requests_sent.clear()
        caches[f"{location}  1"].clear()

        assert set(requests_sent.operations) == {"Scan", "BatchWriteItem"}
        for name, place in PLACES.items():
            is_cleared = place["LOCATION"] in LOCATIONS[:number]
            kept = {} if is_cleared else {"key": name, "counted": 1}
            assert caches[name].get_many(["key", "counted"]) == kept
            assert caches[name].get(sessions[name].cache_key) == {"in": name}
        # Tombstones stay, too.
        assert sum("value" not in item for item in items()) == len(PLACES)


# Asynchronous forms, pages, costs -----------------------------------------------------------------


def test_the_asynchronous_forms_send_the_same_requests(requests_sent: Requests) -> None:
    async def calls() -> list[Any]:
        return [
            await cache.aget("key", "default"),
            await cache.aadd("key", 1),
            await cache.aincr("key"),
            await cache.adecr("key", 2),
            await cache.aset_many({"key": 1, "other": 1}, 10, version=2),
            await cache.aget_many(["key", "other"], version=2),
            await cache.adelete_many(["key"], version=2),
        ]

    assert async_to_sync(calls)() == ["default", True, 2, 0, [], {"key": 1, "other": 1}, None]
    assert requests_sent.operations == [
        *("GetItem", "PutItem", "UpdateItem", "UpdateItem"),
        *("BatchWriteItem", "BatchGetItem", "BatchWriteItem"),
    ]
    assert cache.get_many(["key", "other"], version=2) == {"other": 1}


#: Each operation on a key, and the requests that it costs.
OPERATIONS: list[tuple[Callable[[str], object], list[str]]] = [
    (lambda key: cache.get(key, "default"), ["GetItem"]),
    (cache.has_key, ["GetItem"]),
    (lambda key: cache.set(key, 1), ["PutItem"]),
    (lambda key: cache.set(key, 1, 0), ["DeleteItem"]),
    (lambda key: cache.add(key, 1), ["PutItem"]),
    (lambda key: cache.add(key, 1, 0), ["GetItem"]),
    (lambda _key: cache.add("new", 1), ["PutItem"]),
    (lambda key: cache.set_if_present(key, 1), ["PutItem"]),
    (cache.touch, ["UpdateItem"]),
    (lambda key: cache.touch(key, None), ["UpdateItem"]),
    (cache.incr, ["UpdateItem"]),
    (cache.delete, ["DeleteItem"]),
    (lambda key: cache.delete_if(key, "value"), ["DeleteItem"]),
    (lambda key: cache.end(key, 60), ["PutItem"]),
    (lambda key: cache.get_many([key, "b"]), ["BatchGetItem"]),
    (lambda key: cache.set_many({key: 1, "b": 2}), ["BatchWriteItem"]),
    (lambda key: cache.delete_many([key, "b"]), ["BatchWriteItem"]),
]


@pytest.mark.parametrize(("operation", "operations"), OPERATIONS)
def test_an_operation_costs_the_requests_that_are_stated_and_fails_without_an_answer(
    requests_sent: Requests, operation: Callable[[str], object], operations: list[str]
) -> None:
    cache.set("key", 1)
    requests_sent.clear()

    operation("key")

    assert requests_sent.operations == operations
    # A cache out of reach is not taken for an empty one.
    with through(NOWHERE), within(0.1), pytest.raises(Unavailable) as caught:
        operation("key")
    assert not caught.value.maybe_written


@pytest.mark.fault_of("moto", "counts half a unit for an update")
def test_a_write_and_a_read_cost_one_unit_each(requests_sent: Requests) -> None:
    cache.add("key", 1)
    cache.incr("key")
    cache.get("key")

    assert requests_sent.units == 3
