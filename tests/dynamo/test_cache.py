"""The cache: what Django documents for every backend, and what conditional writes add."""

from __future__ import annotations

import copy
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
from django.core.cache import CacheKeyWarning, cache, caches
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils.crypto import salted_hmac
from django.utils.safestring import mark_safe
from django.views.decorators.cache import cache_page

from dynamo import cache as cache_module
from dynamo._internal.client.deadline import within
from dynamo._internal.client.sending import send
from dynamo._internal.items import Item
from dynamo.cache import VALUE_MAX_BYTES, CacheItem, CacheValueTooLarge, DynamoCache
from dynamo.exceptions import Unavailable
from tests.faults.kinds import Answer, CloseBefore, DropReply, Meanwhile, Reply, nothing_processed
from tests.faults.proxy import NOWHERE, FaultProxy, through
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

THROTTLED = Answer(400, "ThrottlingException")
SECOND = DynamoCache("", {"VERSION": 2})


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
    monkeypatch.setattr(cache_module, "now_ms", clock)
    return clock


def stored_key(key: str) -> str:
    return hashlib.sha256(f"2|:1:{key}".encode()).hexdigest()


def stored(key: str) -> Item | None:
    request = {"TableName": CacheItem.table(), "Key": {"key": {"S": stored_key(key)}}}
    return send("GetItem", request).get("Item") or None


def put(key: str, value: dict[str, Any]) -> None:
    """Store `value` under `key` as it stands."""
    item = {"key": {"S": stored_key(key)}, "value": value}
    send("PutItem", {"TableName": CacheItem.table(), "Item": item})


def items() -> list[Item]:
    found: list[Item] = send("Scan", {"TableName": CacheItem.table()})["Items"]
    return found


# Values -------------------------------------------------------------------------------------------


class Flag(enum.Flag):
    A = 1


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
    ],
    ids=lambda each: type(each).__name__ if each not in ("N", "S", "B") else each,
)
def test_a_value_is_stored_as_json_if_that_keeps_it_and_otherwise_as_a_signed_pickle(
    value: Any, kind: str
) -> None:
    cache.set("key", value)

    item = stored("key")
    assert item is not None
    assert list(item["value"]) == [kind]
    found = cache.get("key", "the default")
    assert type(found) is type(value)
    # Pickled, as 0.0 and -0.0 are equal, and so are True and 1 in a list.
    assert pickle.dumps(found) == pickle.dumps(value)
    assert cache.get_many(["key"]) == {"key": value}


def test_objects_that_occur_twice_in_a_value_are_one_object_in_the_copy() -> None:
    shared: list[Any] = [1]
    cache.set("twice", {"a": shared, "b": shared})
    circle: list[Any] = []
    circle.append(circle)
    cache.set("circle", circle)

    found = cache.get("twice")
    found["a"].append(2)
    assert found["b"] == [1, 2]
    assert cache.get("twice") == {"a": [1], "b": [1]}
    again = cache.get("circle")
    assert again[0] is again


@pytest.mark.parametrize("depth", [99, 101, 300])
def test_a_deeply_nested_value_can_be_read(depth: int) -> None:
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


def pickled_size(size_bytes: int) -> bytes:
    """A value whose pickle has so many bytes."""
    overhead = len(pickle.dumps(bytes(300_000), pickle.HIGHEST_PROTOCOL)) - 300_000
    return bytes(size_bytes - overhead)


@pytest.mark.fault_of("moto", "takes at most 405,000 bytes an item")
def test_the_largest_value_fits() -> None:
    value = pickled_size(VALUE_MAX_BYTES)

    assert cache.add("key", value) is True
    assert cache.get("key") == value


STORES: dict[str, Callable[[str, Any], object]] = {
    "set": cache.set,
    "add": cache.add,
    "set_if_present": cache.set_if_present,
    "set_many": lambda key, value: cache.set_many({"small": 1, key: value}),
}


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
@pytest.mark.filterwarnings("ignore::django.core.cache.CacheKeyWarning")
def test_a_value_over_400_kb_is_rejected_before_it_is_sent(
    requests_sent: Requests, store: Callable[[str, Any], object]
) -> None:
    with pytest.raises(CacheValueTooLarge) as caught:
        store("the key", pickled_size(VALUE_MAX_BYTES + 1))

    assert isinstance(caught.value, ValueError)
    assert "'the key'" in str(caught.value)
    assert "409,345 bytes" in str(caught.value)
    assert "at most 409,344" in str(caught.value)
    assert requests_sent.operations == []


class Unpicklable:
    def __getstate__(self) -> object:
        raise pickle.PickleError("not this")


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_a_value_that_cannot_be_pickled_is_an_error_and_changes_nothing(
    store: Callable[[str, Any], object],
) -> None:
    with pytest.raises(pickle.PickleError):
        store("key", Unpicklable())

    assert items() == []


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


def test_keys_are_hashed_with_the_number_of_the_format() -> None:
    cache.set("secret", "x")

    (item,) = items()
    assert item["key"] == {"S": hashlib.sha256(b"2|:1:secret").hexdigest()}
    assert "secret" not in str(item)


def test_prefixes_versions_and_key_functions_keep_values_apart() -> None:
    prefixed = DynamoCache("", {"KEY_PREFIX": "other"})
    own = DynamoCache("", {"KEY_FUNCTION": lambda key, prefix, version: f"{version}-{key}"})
    for number, one in enumerate([cache, prefixed, SECOND, own]):
        one.set("key", number)

    assert [one.get("key") for one in (cache, prefixed, SECOND, own)] == [0, 1, 2, 3]
    assert cache.get("key", version=3) is None


@pytest.mark.parametrize(
    ("store", "first", "second"),
    [
        (lambda: cache.set("key", 42), 42, None),
        (lambda: cache.set("key", 42, version=2), None, 42),
        (lambda: SECOND.set("key", 42, version=1), 42, None),
        (lambda: cache.add("key", 42, version=2), None, 42),
        (lambda: SECOND.add("key", 42), None, 42),
        (lambda: cache.set_many({"key": 42}, version=2), None, 42),
        (lambda: SECOND.set_many({"key": 42}), None, 42),
        (lambda: cache.get_or_set("key", 42, version=2), None, 42),
    ],
)
def test_a_value_is_stored_under_its_version(
    store: Callable[[], object], first: int | None, second: int | None
) -> None:
    store()

    assert [cache.get("key"), SECOND.get("key", version=1)] == [first, first]
    assert [cache.get("key", version=2), SECOND.get("key")] == [second, second]
    assert cache.get_many(["key"], version=2) == ({"key": second} if second else {})
    assert cache.has_key("key", version=2) is (second is not None)


@pytest.mark.parametrize(
    ("change", "first", "second"),
    [
        (lambda: cache.incr("key", version=2), 37, 43),
        (lambda: SECOND.decr("key", version=1), 36, 42),
        (lambda: cache.set_if_present("key", 1, version=2), 37, 1),
        (lambda: cache.delete("key", version=2), 37, None),
        (lambda: cache.delete_many(["key"], version=2), 37, None),
        (lambda: cache.touch("key", 0, version=2), 37, None),
        (lambda: cache.end("key", 60, version=2), 37, None),
        (lambda: cache.incr_version("key"), None, 37),
    ],
)
def test_a_change_affects_its_version_only(
    change: Callable[[], object], first: int | None, second: int | None
) -> None:
    cache.set("key", 37, version=1)
    cache.set("key", 42, version=2)

    change()

    assert [cache.get("key", version=1), cache.get("key", version=2)] == [first, second]


@pytest.mark.parametrize(
    "operation",
    [
        lambda one, key: one.add(key, 1),
        lambda one, key: one.get(key),
        lambda one, key: one.has_key(key),
        lambda one, key: one.set(key, 1),
        lambda one, key: one.touch(key),
        lambda one, key: one.delete(key),
        lambda one, key: one.get_many([key, "b"]),
        lambda one, key: one.set_many({key: 1, "b": 2}),
        lambda one, key: one.delete_many([key, "b"]),
    ],
)
@pytest.mark.parametrize("key", ["with spaces and 清", "a" * 250 + "清", "new\nline"])
def test_every_operation_warns_of_a_key_that_memcached_rejects(
    operation: Callable[[Any, str], object], key: str
) -> None:
    plain = DynamoCache("", {"KEY_FUNCTION": lambda key, _prefix, _version: key})

    with pytest.warns(CacheKeyWarning, match="will cause errors if used with memcached"):
        operation(plain, key)


# Reading and storing ------------------------------------------------------------------------------


def test_get_returns_the_default_for_a_missing_key_and_a_stored_none_as_none() -> None:
    cache.set("none", None)

    assert cache.get("missing") is None
    assert cache.get("missing", "default") == "default"
    assert "missing" not in cache
    assert cache.get("none", "default") is None
    assert "none" in cache


def test_get_or_set_returns_the_value_that_another_caller_stored_first() -> None:
    def slow() -> str:
        cache.add("key", "theirs")
        return "mine"

    assert cache.get_or_set("key", slow) == "theirs"
    assert cache.get_or_set("none", None) is None
    assert cache.has_key("none")


def test_delete_returns_whether_there_was_a_value() -> None:
    cache.set("key", "value")

    assert cache.delete("key") is True
    assert cache.delete("key") is False
    assert cache.get("key") is None


@pytest.mark.fault_of("moto", "lets conditional writes that meet both win")
def test_of_many_callers_that_add_at_once_one_succeeds(at_once: Callable[..., list[Any]]) -> None:
    won = at_once(lambda number: cache.add("prize", number), 16)

    assert won.count(True) == 1
    assert cache.get("prize") == won.index(True)


def test_add_recognizes_its_own_value_after_a_lost_reply(proxy: FaultProxy) -> None:
    proxy.plan("PutItem", DropReply())
    proxy.plan("PutItem", Meanwhile(lambda: cache.touch("key", 1000)))

    assert cache.add("key", "mine") is True
    assert proxy.count("PutItem") == 2
    assert proxy.count("GetItem") == 1


def test_add_is_refused_if_another_value_was_stored_after_a_lost_request(proxy: FaultProxy) -> None:
    proxy.plan("PutItem", CloseBefore())
    proxy.plan("PutItem", Meanwhile(lambda: cache.add("key", "theirs")))

    assert cache.add("key", "mine") is False
    assert cache.get("key") == "theirs"


def test_set_if_present_replaces_a_value_and_its_expiry(clock: Clock) -> None:
    cache.set("key", "old", timeout=10)

    assert cache.set_if_present("key", "new", 20) is True

    clock.advance(19)
    assert cache.get("key") == "new"
    assert cache.set_if_present("missing", "new") is False
    assert "missing" not in cache


def test_a_repeated_set_if_present_does_not_restore_a_deleted_value(proxy: FaultProxy) -> None:
    cache.set("key", "old")
    proxy.plan("PutItem", DropReply())
    proxy.plan("PutItem", Meanwhile(lambda: cache.delete("key")))

    assert cache.set_if_present("key", "new") is False
    assert items() == []


# Counting -----------------------------------------------------------------------------------------


def test_incr_and_decr_return_the_sum() -> None:
    cache.set("count", 41)

    assert cache.incr("count") == 42
    assert cache.incr("count", 10) == 52
    assert cache.decr("count", 2) == 50
    assert cache.decr("count", -1) == 51
    assert cache.get("count") == 51
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


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_of_many_callers_that_count_at_once_each_is_counted(
    at_once: Callable[..., list[Any]],
) -> None:
    cache.set("count", 0)

    counted = at_once(lambda _number: cache.incr("count"), 16)

    assert sorted(counted) == list(range(1, 17))
    assert cache.get("count") == 16


def test_a_lost_reply_to_a_count_is_an_error_and_never_counts_twice(proxy: FaultProxy) -> None:
    cache.set("count", 0)
    proxy.plan("UpdateItem", DropReply())

    with pytest.raises(Unavailable) as caught:
        cache.incr("count")

    assert caught.value.maybe_written
    assert proxy.count("UpdateItem") == 1
    assert cache.get("count") == 1


# Expiry -------------------------------------------------------------------------------------------


@pytest.mark.fault_of("moto", "returns no attribute that an update leaves as it is")
def test_an_expired_value_is_absent_although_its_item_is_still_stored(clock: Clock) -> None:
    cache.set("key", 1, timeout=10)
    clock.advance(9.999)
    assert cache.incr("key", 0) == 1

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
    cache.set("key", 1, timeout=1)
    clock.advance(1)
    assert cache.add("key", 2) is True


def test_expiry_is_stored_in_milliseconds_and_for_ttl_in_whole_seconds_rounded_up(
    clock: Clock,
) -> None:
    cache.set("key", "value", timeout=0.5)

    item = stored("key")
    assert item is not None
    assert item["expiresAt"] == {"N": str(clock.ms + 500)}
    assert item["expires"] == {"N": "1800000001"}


def test_the_default_timeout_is_that_of_the_settings(clock: Clock) -> None:
    cache.set("touched", 1, timeout=10)
    cache.touch("touched")
    cache.set("set", 1)
    cache.add("added", 1)
    cache.set_many({"many": 1})
    clock.advance(299)
    assert len(cache.get_many(["set", "added", "touched", "many"])) == 4

    clock.advance(1)

    assert cache.get_many(["set", "added", "touched", "many"]) == {}


def test_a_timeout_of_none_never_ends(clock: Clock) -> None:
    cache.set("set", 1, timeout=None)
    cache.add("added", 1, timeout=None)
    cache.set_many({"many": 1}, timeout=None)
    cache.set("touched", 1, timeout=10)
    cache.touch("touched", None)

    clock.advance(100 * 365 * 86400)

    assert len(cache.get_many(["set", "added", "touched", "many"])) == 4
    assert cache.incr("set") == 2
    assert all("expires" not in item for item in items())


@pytest.mark.parametrize("timeout", [0, -1, -0.5, -1_000_000])
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


def test_touch_extends_the_life_of_a_value_and_stores_none(clock: Clock) -> None:
    cache.set("key", "value", timeout=10)
    clock.advance(9)

    assert cache.touch("key", 10) is True

    clock.advance(9)
    assert cache.get("key") == "value"
    assert cache.touch("absent") is False
    assert stored("absent") is None


# Ended keys ---------------------------------------------------------------------------------------


def test_an_ended_key_has_no_value_and_accepts_none_before_its_time(clock: Clock) -> None:
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


# Deleting one value -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["text", "", 7, None])
def test_a_value_is_deleted_only_if_it_is_the_expected_one(value: str | int | None) -> None:
    assert not cache.delete_if("key", value)

    cache.set("key", value)
    assert not cache.delete_if("key", "other")
    assert cache.has_key("key")

    assert cache.delete_if("key", value)
    assert not cache.has_key("key")


# Many keys ----------------------------------------------------------------------------------------


def test_more_values_than_a_batch_holds_are_set_found_and_deleted() -> None:
    values = {f"key{number}": number for number in range(130)}

    assert cache.set_many(values) == []
    assert cache.get_many([*values, "missing"]) == values

    cache.delete_many(list(values)[:100])
    assert sorted(cache.get_many(values).values()) == list(range(100, 130))


def test_operations_on_many_keys_take_any_iterable_and_an_empty_one(
    requests_sent: Requests,
) -> None:
    assert cache.get_many([]) == {}
    assert cache.set_many({}) == []
    cache.delete_many([])
    assert requests_sent.operations == []

    cache.set("a", 1)
    assert cache.get_many(key for key in ("a", "a", "b")) == {"a": 1}
    cache.delete_many(key for key in ("a", "a"))
    assert cache.get("a") is None


def test_keys_with_the_same_text_are_one_key() -> None:
    cache.set_many({1: "number", "1": "text"})

    assert cache.get("1") == "text"
    cache.delete_many([1, "1"])
    assert items() == []


def test_a_request_for_many_keys_is_repeated_for_those_that_were_not_processed(
    proxy: FaultProxy,
) -> None:
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
def test_a_batch_that_is_never_processed_is_unavailable_at_the_deadline(
    proxy: FaultProxy, call: Callable[[], object], maybe_written: bool
) -> None:
    proxy.plan("*", Reply(nothing_processed), times=1000)

    with within(0.2), pytest.raises(Unavailable) as caught:
        call()

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


# Asynchronous forms, pages, costs -----------------------------------------------------------------


def test_the_asynchronous_forms_do_the_same(clock: Clock) -> None:
    async def calls() -> list[Any]:
        return [
            await cache.aget("key", "default"),
            await cache.aadd("key", 1),
            await cache.aincr("key"),
            await cache.adecr("key", 2),
            await cache.ahas_key("key"),
            await cache.atouch("key"),
            await cache.aget_or_set("key", 7),
            await cache.aincr_version("key"),
            await cache.adelete("key", version=2),
            await cache.aset_many({"key": 1, "other": 1}, 10, version=2),
            await cache.aincr("key", version=2),
            await cache.aget_many(["key", "other"], version=2),
            await cache.adelete_many(["other"]),
        ]

    assert async_to_sync(calls)() == [
        "default", True, 2, 0, True, True, 0, 2, True,
        [], 2, {"key": 2, "other": 1}, None,
    ]  # fmt: skip
    async_to_sync(cache.adelete_many)(["key"], version=2)
    assert cache.get_many(["key", "other"], version=2) == {"other": 1}
    clock.advance(10)
    assert cache.get("other", version=2) is None


def test_a_response_can_be_stored_and_copied() -> None:
    calls = []

    @cache_page(60)
    def view(request: HttpRequest) -> HttpResponse:
        calls.append(request.get_full_path())
        return HttpResponse("text", headers={"X-Own": "1"})

    view(RequestFactory().get("/"))
    found = copy.copy(view(RequestFactory().get("/")))

    assert (found.content, found["X-Own"], calls) == (b"text", "1", ["/"])


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
        (lambda: cache.delete_if("key", "value"), ["DeleteItem"]),
        (lambda: cache.get_many(map(str, range(101))), ["BatchGetItem"] * 2),
        (lambda: cache.set_many(dict.fromkeys(range(26), 1)), ["BatchWriteItem"] * 2),
        (lambda: cache.delete_many(range(25)), ["BatchWriteItem"]),
        (lambda: async_to_sync(cache.aincr)("key"), ["UpdateItem"]),
        (lambda: async_to_sync(cache.adecr)("key"), ["UpdateItem"]),
        (lambda: async_to_sync(cache.aget_many)(["key", "b"]), ["BatchGetItem"]),
        (lambda: async_to_sync(cache.aset_many)({"a": 1, "b": 2}), ["BatchWriteItem"]),
        (lambda: async_to_sync(cache.adelete_many)(["a", "b"]), ["BatchWriteItem"]),
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
def test_a_cache_out_of_reach_is_not_taken_for_an_empty_cache(call: Callable[[], object]) -> None:
    with through(NOWHERE), within(0.1), pytest.raises(Unavailable) as caught:
        call()

    assert not caught.value.maybe_written
