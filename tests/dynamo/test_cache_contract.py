"""What Django states of every cache backend, where `test_cache.py` does not say it already."""

from __future__ import annotations

import copy
import pickle
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.messages.api import MessageFailure
from django.core.cache import CacheKeyWarning, cache, caches
from django.core.cache.backends.base import InvalidCacheBackendError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.middleware.cache import FetchFromCacheMiddleware, UpdateCacheMiddleware
from django.template import Context, Template
from django.test import RequestFactory
from django.views.decorators.cache import cache_page, never_cache

from dynamo import cache as cache_module
from dynamo.cache import DynamoCache

pytestmark = pytest.mark.usefixtures("engine")

SECOND = DynamoCache("", {"VERSION": 2})


def plain_key(key: str, _prefix: str, _version: int) -> str:
    """Keys as they are, which Django's own function would lengthen."""
    return key


class Unpicklable:
    def __getstate__(self) -> object:
        raise pickle.PickleError("not this")


@pytest.mark.parametrize(
    "store",
    [
        lambda key, value: cache.set(key, value),
        lambda key, value: cache.add(key, value),
        lambda key, value: cache.set_many({key: value}),
        lambda key, value: cache.get_or_set(key, value),
        lambda key, value: cache.get_or_set(key, lambda: value),
        lambda key, value: async_to_sync(cache.aset)(key, value),
        lambda key, value: async_to_sync(cache.aadd)(key, value),
        lambda key, value: async_to_sync(cache.aget_or_set)(key, value),
    ],
    ids=["set", "add", "set_many", "get_or_set", "called", "aset", "aadd", "aget_or_set"],
)
@pytest.mark.parametrize(
    "value", ["Iñtërnâtiônàlizætiøn", zlib.compress(b"value"), None, {"x": (1,)}]
)
def test_every_way_to_store_keeps_every_kind_of_value(
    store: Callable[[str, object], object], value: object
) -> None:
    store("Iñtërnâtiônàlizætiøn", value)

    assert cache.get("Iñtërnâtiônàlizætiøn", "the default") == value


@pytest.mark.parametrize("value", [zlib.compress, MessageFailure], ids=["function", "class"])
def test_functions_and_classes_are_values_too(value: object) -> None:
    cache.set("key", value)

    assert cache.get("key") is value


def test_what_comes_back_is_a_copy() -> None:
    value = {"list": [1]}
    cache.set("key", value)
    value["list"].append(2)

    found = cache.get("key")
    found["list"].append(3)

    assert cache.get("key") == {"list": [1]}


def test_two_ways_to_open_a_cache_see_the_same_values() -> None:
    cache.set("key", "value")

    assert caches["default"].get("key") == "value"
    assert DynamoCache("", {}).get("key") == "value"
    with pytest.raises(InvalidCacheBackendError):
        caches["unknown"]


def test_closing_a_cache_loses_nothing() -> None:
    cache.set("key", "value")

    cache.close()

    assert cache.get("key") == "value"


@pytest.mark.parametrize("timeout", [None, 100.2, 60 * 60 * 24 * 30 + 1])
def test_every_way_to_store_takes_any_timeout(timeout: float | None) -> None:
    cache.set("set", 1, timeout)
    cache.add("added", 1, timeout)
    cache.set_many({"many": 1}, timeout)
    cache.get_or_set("got", 1, timeout)

    assert len(cache.get_many(["set", "added", "many", "got"])) == 4


def test_touching_without_a_timeout_takes_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.set("key", "value", timeout=100)
    assert cache.touch("key") is True
    later = cache_module.now_ms() + 299_000
    monkeypatch.setattr(cache_module, "now_ms", lambda: later)

    assert cache.get("key") == "value"


def test_nothing_is_culled_however_many_entries_there_are() -> None:
    small = DynamoCache("", {"OPTIONS": {"MAX_ENTRIES": 3, "CULL_FREQUENCY": 1}})
    for number in range(8):
        small.set(f"key{number}", number)

    assert len(small.get_many(f"key{number}" for number in range(8))) == 8


@pytest.mark.parametrize(
    ("store", "first", "second"),
    [
        (lambda: cache.set("key", 42), 42, None),
        (lambda: cache.set("key", 42, version=2), None, 42),
        (lambda: SECOND.set("key", 42), None, 42),
        (lambda: SECOND.set("key", 42, version=1), 42, None),
        (lambda: cache.add("key", 42), 42, None),
        (lambda: cache.add("key", 42, version=2), None, 42),
        (lambda: SECOND.add("key", 42), None, 42),
        (lambda: SECOND.add("key", 42, version=1), 42, None),
        (lambda: cache.set_many({"key": 42}, version=2), None, 42),
        (lambda: SECOND.set_many({"key": 42}), None, 42),
        (lambda: SECOND.set_many({"key": 42}, version=1), 42, None),
        (lambda: cache.get_or_set("key", 42, version=2), None, 42),
    ],
)
def test_a_value_is_stored_under_the_version_that_is_asked_for(
    store: Callable[[], object], first: int | None, second: int | None
) -> None:
    store()

    assert [cache.get("key"), cache.get("key", version=1)] == [first, first]
    assert [cache.get("key", version=2), SECOND.get("key")] == [second, second]
    assert SECOND.get("key", version=1) == first
    assert cache.get_many(["key"], version=2) == ({"key": second} if second else {})
    assert SECOND.has_key("key") is (second is not None)
    assert cache.has_key("key", version=2) is (second is not None)


@pytest.mark.parametrize(
    ("change", "first", "second"),
    [
        (lambda: cache.incr("key"), 38, 42),
        (lambda: cache.incr("key", version=2), 37, 43),
        (lambda: SECOND.incr("key"), 37, 43),
        (lambda: SECOND.decr("key", version=1), 36, 42),
        (lambda: cache.delete("key"), None, 42),
        (lambda: SECOND.delete("key"), 37, None),
        (lambda: cache.delete("key", version=2), 37, None),
        (lambda: cache.delete_many(["key"], version=2), 37, None),
        (lambda: SECOND.delete_many(["key"]), 37, None),
        (lambda: cache.touch("key", 0, version=2), 37, None),
    ],
)
def test_a_change_touches_the_version_that_is_asked_for(
    change: Callable[[], object], first: int | None, second: int | None
) -> None:
    cache.set("key", 37, version=1)
    cache.set("key", 42, version=2)

    change()

    assert [cache.get("key", version=1), cache.get("key", version=2)] == [first, second]


def test_a_value_moves_by_more_than_one_version_and_none_is_made_of_nothing() -> None:
    SECOND.set("key", 42)

    assert SECOND.incr_version("key", delta=3) == 5
    assert cache.get("key", version=5) == 42
    assert SECOND.decr_version("key", delta=4, version=5) == 1
    assert cache.get("key") == 42
    for missing in (cache.incr_version, cache.decr_version):
        with pytest.raises(ValueError, match="missing"):
            missing("missing")


def test_a_value_of_none_can_be_moved_to_another_version() -> None:
    cache.set("key", None)

    assert cache.incr_version("key") == 2
    assert cache.get("key", "default", version=2) is None


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
        lambda one, key: one.get_or_set(key, 1),
    ],
)
@pytest.mark.parametrize("key", ["with spaces and 清", "a" * 250 + "清"], ids=["spaces", "long"])
def test_every_operation_warns_of_a_key_that_memcached_would_refuse(
    operation: Callable[[Any, str], object], key: str
) -> None:
    plain = DynamoCache("", {"KEY_FUNCTION": plain_key})

    with pytest.warns(CacheKeyWarning, match="will cause errors if used with memcached"):
        operation(plain, key)


@pytest.mark.parametrize("store", [cache.set, cache.add], ids=["set", "add"])
def test_what_cannot_be_pickled_is_an_error_and_changes_nothing(
    store: Callable[[str, object], object],
) -> None:
    with pytest.raises(pickle.PickleError):
        store("key", Unpicklable())

    assert "key" not in cache


def test_a_default_that_is_none_is_kept_and_one_that_is_missing_is_an_error() -> None:
    assert cache.get_or_set("key", None) is None
    assert cache.get_or_set("key", "late") is None
    with pytest.raises(TypeError):
        cache.get_or_set("other")  # type: ignore[call-arg]  # that is the point


def test_get_or_set_yields_to_who_was_faster() -> None:
    def slow() -> str:
        cache.add("key", "theirs")
        return "mine"

    assert cache.get_or_set("key", slow) == "theirs"


def test_get_or_set_keeps_versions_apart() -> None:
    assert cache.get_or_set("key", "first") == "first"
    assert cache.get_or_set("key", "second", version=2) == "second"
    assert cache.get("key") == "first"


def test_the_asynchronous_forms_say_the_same() -> None:
    async def story() -> list[Any]:
        return [
            await cache.aget("key", "default"),
            await cache.aadd("key", 1),
            await cache.aadd("key", 2),
            await cache.aincr("key"),
            await cache.adecr("key", 2),
            await cache.ahas_key("key"),
            await cache.atouch("key"),
            await cache.aget_or_set("key", 7),
            await cache.aincr_version("key"),
            await cache.adecr_version("key", version=2),
            await cache.aset_many({"a": 1}),
            await cache.aget_many(["a", "key"]),
            await cache.adelete("key"),
            await cache.adelete_many(["a"]),
            await cache.aclear(),
            await cache.aclose(),
        ]

    assert async_to_sync(story)() == [
        "default", True, False, 2, 0, True, True, 0, 2, 1,
        [], {"a": 1, "key": 0}, True, None, None, None,
    ]  # fmt: skip


def test_a_page_is_kept_and_found_by_its_whole_address() -> None:
    calls = []

    @cache_page(60)
    def view(request: HttpRequest) -> HttpResponse:
        calls.append(request.get_full_path())
        return HttpResponse(f"page {len(calls)}")

    def content(path: str, method: str = "GET") -> bytes:
        return view(RequestFactory().generic(method, path)).content

    assert content("/a") == content("/a") == b"page 1"
    assert content("/a?x=1") == b"page 2"
    assert content("/a", "POST") == b"page 3"
    assert content("/a") == b"page 1"


def test_a_page_is_kept_for_each_value_of_what_it_varies_on() -> None:
    @cache_page(60)
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(request.headers["X-Own"], headers={"Vary": "X-Own"})

    def content(own: str) -> bytes:
        return view(RequestFactory().get("/", headers={"x-own": own})).content

    assert [content("a"), content("b"), content("a")] == [b"a", b"b", b"a"]


@pytest.mark.parametrize(
    "answer",
    [
        lambda: HttpResponse(status=500),
        lambda: HttpResponse(headers={"Cache-Control": "private"}),
        lambda: never_cache(lambda _request: HttpResponse())(RequestFactory().get("/")),
        lambda: StreamingHttpResponse(iter([b"piece"])),
    ],
    ids=["failed", "private", "never", "streamed"],
)
def test_a_page_that_is_not_to_be_kept_is_not(answer: Callable[[], Any]) -> None:
    request = RequestFactory().get("/")
    fetch = FetchFromCacheMiddleware(lambda _request: HttpResponse())
    assert fetch.process_request(request) is None

    UpdateCacheMiddleware(lambda _request: HttpResponse()).process_response(request, answer())

    assert fetch.process_request(RequestFactory().get("/")) is None


def test_a_part_of_a_template_is_kept() -> None:
    part = Template("{% load cache %}{% cache 60 part who %}{{ text }}{% endcache %}")

    def text(who: str, said: str) -> str:
        return part.render(Context({"who": who, "text": said}))

    assert [text("a", "one"), text("a", "two"), text("b", "two")] == ["one", "one", "two"]


def test_a_response_can_be_kept_and_copied() -> None:
    response = HttpResponse("text", headers={"X-Own": "1"})
    cache.set("response", response)

    found = copy.copy(cache.get("response"))

    assert (found.content, found["X-Own"]) == (b"text", "1")
