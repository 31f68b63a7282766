"""Sessions: an ended session stays ended, and each page costs the requests that are stated."""

from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.sessions.backends.base import CreateError, UpdateError
from django.contrib.sessions.exceptions import SessionInterrupted
from django.core.management import call_command
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import path

from dynamo.cache.items import CacheItem, CacheValueTooLarge, now_ms
from dynamo.client.sending import send
from dynamo.exceptions import ConditionFailed, Unavailable
from dynamo.middleware import SessionMiddleware
from dynamo.runtime.deadline import within
from dynamo.sessions import KEY_LENGTH, SessionStore
from tests.emptying import empty
from tests.faults.kinds import CloseBefore
from tests.faults.proxy import FaultProxy
from tests.items import put_item, scanned
from tests.requests import Requests

DAY_MS = 86_400_000

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.urls(__name__)]


def nothing(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def visits(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.session.get("visits", 0))


def visit(request: HttpRequest) -> HttpResponse:
    request.session["visits"] = request.session.get("visits", 0) + 1
    return HttpResponse()


def sign_in(request: HttpRequest) -> HttpResponse:
    """What Django's `login` does to the session of a visitor."""
    if "user" not in request.session:
        request.session.cycle_key()
    request.session["user"] = "ann"
    return HttpResponse(request.session.session_key)


def sign_out(request: HttpRequest) -> HttpResponse:
    request.session.flush()
    return HttpResponse()


urlpatterns = [
    path("", nothing),
    path("visits", visits),
    path("visit", visit),
    path("sign-in", sign_in),
    path("sign-out", sign_out),
]


def started(**values: Any) -> SessionStore:
    """A stored session."""
    session = SessionStore()
    session.update(values)
    session.save()
    return session


def stored(session: SessionStore) -> dict[str, Any]:
    """The values that another request reads."""
    return dict(SessionStore(session.session_key).items())


def items() -> list[dict[str, Any]]:
    """The stored sessions, without the tombstones of ended ones."""
    found: list[dict[str, Any]] = scanned(CacheItem.table())
    return [item for item in found if "value" in item]


def tombstone() -> dict[str, Any]:
    [item] = scanned(CacheItem.table())
    assert item.keys() == {"key", "location", "expires", "expiresAt"}
    return item


@pytest.mark.parametrize("begin", [SessionStore, lambda: started(user="ann")])
def test_a_session_whose_expiry_is_in_the_past_is_deleted(begin: Callable[[], Any]) -> None:
    session = begin()
    session.set_expiry(timedelta(seconds=-10))

    session.save()

    assert items() == []


def test_create_stores_the_values_under_a_new_key(requests_sent: Requests) -> None:
    session = SessionStore()
    session["user"] = "ann"
    session.create()

    assert requests_sent.operations == ["PutItem"]
    assert stored(SessionStore(session.session_key)) == {"user": "ann"}
    first = session.session_key
    session.create()
    assert session.session_key != first
    assert stored(SessionStore(first)) == stored(session) == {"user": "ann"}


def test_a_session_with_a_new_key_is_stored_when_it_is_saved_and_not_before(
    requests_sent: Requests,
) -> None:
    session = SessionStore()
    session.cycle_key()

    key = session.session_key
    assert key is not None
    assert len(key) == KEY_LENGTH
    assert (session.load(), session.modified) == ({}, True)
    assert requests_sent.operations == []
    session["user"] = "ann"
    session.save()
    assert requests_sent.operations == ["PutItem"]
    assert (session.session_key, stored(session)) == (key, {"user": "ann"})


@pytest.mark.parametrize("age_days", [7, 90])
def test_what_a_late_copy_of_the_first_request_stores_has_expired_with_the_tombstone(
    proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch, age_days: int
) -> None:
    session = SessionStore()
    session.set_expiry(timedelta(days=age_days))
    session.save()
    key, late = session.session_key, proxy.seen[0].body
    session.flush()
    expires_at = int(tombstone()["expiresAt"]["N"])
    empty(CacheItem.table())  # as TTL does

    send("PutItem", late)

    monkeypatch.setattr("dynamo.cache.items.now_ms", lambda: expires_at)
    assert not SessionStore().exists(key)


@pytest.mark.parametrize(("days", "writes"), [(7, 1), (90, 2)])
def test_a_session_ends_when_it_says_and_one_that_outlasts_the_settings_costs_a_second_write(
    monkeypatch: pytest.MonkeyPatch, requests_sent: Requests, days: int, writes: int
) -> None:
    session = SessionStore()
    session["user"] = "ann"
    session.set_expiry(timedelta(days=days))
    session.save()
    ends_at = now_ms() + days * DAY_MS

    assert requests_sent.operations == ["PutItem"] * writes
    [item] = items()
    assert abs(int(item["expiresAt"]["N"]) - ends_at) < 60_000
    assert abs(SessionStore(session.session_key).get_expiry_age() - days * 86400) < 60
    monkeypatch.setattr("dynamo.cache.items.now_ms", lambda: ends_at - DAY_MS)
    assert stored(session)["user"] == "ann"
    monkeypatch.setattr("dynamo.cache.items.now_ms", lambda: ends_at)
    assert stored(session) == {}


def test_a_session_and_an_item_are_read_in_one_request(requests_sent: Requests) -> None:
    place: Any = ("counters", {"counterName": {"S": "a"}})
    new = SessionStore()
    new["visits"] = 1
    assert new.load_with(*place) is None
    new.save()
    counter = {"counterName": {"S": "a"}, "currentValue": {"N": "7"}}
    put_item("counters", **counter)
    session = SessionStore(new.session_key)
    ended = SessionStore("x" * KEY_LENGTH)
    requests_sent.clear()

    assert session.load_with(*place) == counter
    assert session["visits"] == 1
    # It is read already.
    assert session.load_with(*place) is None
    assert ended.load_with(*place) == counter
    assert (dict(ended.items()), ended.session_key) == ({}, None)
    assert requests_sent.operations == ["BatchGetItem"] * 2


def test_a_session_that_may_have_been_stored_is_ended(proxy: FaultProxy) -> None:
    proxy.plan("PutItem", CloseBefore(), times=1000)
    session = SessionStore()
    session["user"] = "ann"
    with within(0.1), pytest.raises(Unavailable):
        session.save()
    key, late = session.session_key, proxy.seen[0].body
    proxy.forget()

    session.flush()

    with pytest.raises(ConditionFailed):
        send("PutItem", late)
    assert not SessionStore().exists(key)


def test_a_session_that_was_never_stored_ends_without_a_request_and_cannot_be_saved(
    requests_sent: Requests,
) -> None:
    session = SessionStore()
    session.cycle_key()
    session.delete()
    call_command("clearsessions")
    assert requests_sent.operations == []

    with pytest.raises(UpdateError):
        session.save()

    assert items() == []


def test_a_key_in_use_is_refused_and_a_new_session_draws_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = started(user="ann")
    with pytest.raises(CreateError):
        SessionStore(first.session_key).save(must_create=True)
    keys = iter([first.session_key, "0" * KEY_LENGTH])
    monkeypatch.setattr(SessionStore, "_get_new_session_key", lambda _self: next(keys))

    second = started(user="bob")

    assert second.session_key == "0" * KEY_LENGTH
    assert (stored(first), stored(second)) == ({"user": "ann"}, {"user": "bob"})


@pytest.mark.parametrize("age_days", [1, -1])
def test_an_ended_session_stays_ended_when_a_late_request_saves_it(age_days: int) -> None:
    session = started(user="ann")
    late = SessionStore(session.session_key)
    late["visits"] = 1
    late.set_expiry(timedelta(days=age_days))
    session.flush()

    with pytest.raises(UpdateError) if age_days > 0 else nullcontext():
        late.save()

    assert tombstone()


def test_cycle_key_keeps_the_values_and_flush_does_not_and_both_end_the_old_session() -> None:
    session = started(cart=[1, 2])
    keys = [session.session_key]

    session.cycle_key()
    session.save()
    keys.append(session.session_key)
    assert stored(session) == {"cart": [1, 2]}

    session.flush()
    assert (session.session_key, session.modified, session.is_empty()) == (None, True, True)
    assert items() == []

    session["user"] = "bob"
    session.save()
    assert len({*keys, session.session_key}) == 3
    SessionStore().delete(session.session_key)
    assert stored(session) == {}


@pytest.mark.parametrize("key", ["", "short", "x" * 33, "X" * 32, "é" * 32])
def test_a_cookie_without_a_valid_key_costs_no_request_and_gets_a_new_key(
    client: Client, requests_sent: Requests, key: str
) -> None:
    client.cookies["sessionid"] = key

    assert client.get("/visits").content == b"0"
    assert requests_sent.operations == []
    client.get("/visit")
    assert client.cookies["sessionid"].value != key
    assert client.get("/visits").content == b"1"
    assert len(items()) == 1


def test_a_session_over_400_kb_is_rejected_without_its_key_in_the_error() -> None:
    session = started(user="ann")
    session["much"] = "x" * 500_000

    with pytest.raises(CacheValueTooLarge, match="'a session'") as caught:
        session.save()

    assert session.session_key not in str(caught.value)
    assert caught.value.__suppress_context__
    assert stored(session) == {"user": "ann"}


def test_the_asynchronous_forms_do_the_same(requests_sent: Requests) -> None:
    async def live() -> None:
        session = SessionStore()
        await session.acreate()
        await session.aset("user", "ann")
        await session.asave()
        late = SessionStore(session.session_key)
        assert await late.aget("user") == "ann"
        await session.acycle_key()
        await session.asave()
        with pytest.raises(UpdateError):
            await late.asave()
        await session.aflush()
        assert (await session.acache_key()).endswith(session.session_key)

    async_to_sync(live)()

    # Begun, saved and read; cycled, which ends one session and stores another; refused; ended.
    assert requests_sent.operations == ["PutItem", "PutItem", "GetItem", *["PutItem"] * 4]
    assert items() == []


COSTS: dict[str, tuple[str, str, list[str]]] = {
    "no session is needed": ("", "/", []),
    "there is none": ("", "/visits", []),
    "there is none to end": ("", "/sign-out", []),
    "it begins": ("", "/sign-in", ["PutItem"]),
    "an old one ends": ("/visit", "/sign-in", ["GetItem", "PutItem", "PutItem"]),
    "the old one has ended": ("e" * 32, "/sign-in", ["GetItem", "PutItem"]),
    "it is not used": ("/sign-in", "/", []),
    "it is read": ("/sign-in", "/visits", ["GetItem"]),
    "it is changed": ("/sign-in", "/visit", ["GetItem", "PutItem"]),
    "it ends": ("/sign-in", "/sign-out", ["PutItem"]),
}


@pytest.mark.parametrize(("before", "page", "operations"), COSTS.values(), ids=COSTS)
def test_a_page_costs_the_requests_that_are_stated(
    client: Client, requests_sent: Requests, before: str, page: str, operations: list[str]
) -> None:
    """`before` is a page, or the key of an ended session."""
    if before.startswith("/"):
        client.get(before)
    elif before:
        client.cookies["sessionid"] = before
    old = client.cookies["sessionid"].value if before else None
    requests_sent.clear()

    answer = client.get(page)

    assert (answer.status_code, requests_sent.operations) == (200, operations)
    if page == "/sign-in":
        assert answer.content.decode() == client.cookies["sessionid"].value != old
        assert old is None or not SessionStore().exists(old)
        assert client.get("/visits").content == (b"1" if before == "/visit" else b"0")


def test_a_page_whose_session_ends_meanwhile_is_a_bad_request(rf: RequestFactory) -> None:
    def view(request: HttpRequest) -> HttpResponse:
        request.session["late"] = True
        SessionStore(request.session.session_key).flush()
        return HttpResponse()

    request = rf.get("/", headers={"cookie": f"sessionid={started(user='ann').session_key}"})

    with pytest.raises(SessionInterrupted):
        SessionMiddleware(view)(request)

    assert items() == []
