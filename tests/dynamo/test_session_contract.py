"""What Django states of every session engine, where `test_sessions.py` does not say it already."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.core.management import call_command
from django.utils import timezone

from dynamo.cache import CacheItem
from dynamo.client.sending import send
from dynamo.sessions import SessionStore
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def session() -> SessionStore:
    return SessionStore()


def untouched(session: SessionStore, **values: Any) -> SessionStore:
    """`session` with these values, as if nobody had read or written it."""
    session.update(values)
    session.modified = session.accessed = False
    return session


def again(session: SessionStore) -> SessionStore:
    """The session as the next request reads it."""
    return SessionStore(session.session_key)


def test_the_engine_is_the_one_of_the_settings() -> None:
    assert import_module(settings.SESSION_ENGINE).SessionStore is SessionStore


def test_a_new_session_is_empty_and_neither_read_nor_written(session: SessionStore) -> None:
    assert (session.modified, session.accessed) == (False, False)
    assert session.is_empty()
    assert session.get("missing") is None
    assert session.get("missing", "default") == "default"
    assert (session.modified, session.accessed) == (False, True)


@pytest.mark.parametrize(
    ("act", "answer", "modified"),
    [
        (lambda s: s["x"], 1, False),
        (lambda s: s.get("x"), 1, False),
        (lambda s: "x" in s, True, False),
        (lambda s: s.has_key("x"), True, False),
        (lambda s: list(s.keys()), ["x"], False),
        (lambda s: list(s.values()), [1], False),
        (lambda s: list(s.items()), [("x", 1)], False),
        (lambda s: s.pop("x"), 1, True),
        (lambda s: s.pop("missing", "default"), "default", False),
        (lambda s: s.pop("missing", None), None, False),
        (lambda s: s.setdefault("x", 2), 1, False),
        (lambda s: s.setdefault("y", 2), 2, True),
        (lambda s: s.update({"y": 2}), None, True),
        (lambda s: s.__setitem__("y", 2), None, True),
        (lambda s: s.__delitem__("x"), None, True),
        (lambda s: s.clear(), None, True),
    ],
)
def test_what_reads_marks_it_read_and_what_writes_marks_it_written(
    session: SessionStore, act: Callable[[SessionStore], object], answer: object, modified: bool
) -> None:
    untouched(session, x=1)

    assert act(session) == answer

    assert (session.accessed, session.modified) == (True, modified)


def test_a_value_that_is_not_there_is_an_error_without_a_default(session: SessionStore) -> None:
    with pytest.raises(KeyError):
        session.pop("missing")
    with pytest.raises(KeyError):
        session["missing"]
    with pytest.raises(KeyError):
        del session["missing"]


def test_clearing_forgets_the_values_and_is_stored(session: SessionStore) -> None:
    session["x"] = 1
    session.save()

    session.clear()
    session.save()

    assert dict(again(session).items()) == {}
    assert session.exists(str(session.session_key))


def test_values_set_to_none_are_values(session: SessionStore) -> None:
    session["x"] = None
    session.save()

    assert "x" in again(session)
    assert again(session).get("x", "default") is None


def test_a_saved_session_exists_and_a_deleted_one_does_not(session: SessionStore) -> None:
    session.save()
    key = str(session.session_key)
    assert session.exists(key)

    session.delete(key)

    assert not session.exists(key)
    assert not SessionStore().exists("x" * 32)


def test_deleting_without_a_key_deletes_the_session_itself(session: SessionStore) -> None:
    session["x"] = 1
    session.save()

    session.delete()

    assert "x" not in again(session)


def test_the_key_cannot_be_set(session: SessionStore) -> None:
    with pytest.raises(AttributeError):
        session.session_key = "x" * 32  # type: ignore[misc]  # that is the point


@pytest.mark.parametrize(
    "key", ["1", "", "x" * 7, "x" * 33, "ümlaut" * 4, "a b c d e f g", "../../x"]
)
def test_a_key_that_is_none_is_replaced_and_nothing_is_stored_under_it(key: str) -> None:
    session = SessionStore(key)
    session.save()

    assert session.session_key != key
    assert session.get("x") is None
    assert len(send("Scan", {"TableName": CacheItem.table()})["Items"]) == 1


def test_a_key_that_was_never_given_out_is_not_taken(session: SessionStore) -> None:
    guessed = SessionStore("g" * 32)
    guessed["x"] = 1
    # Django's middleware reads first, which is when a key that is none is dropped.
    assert guessed.session_key is None
    guessed.save()

    assert guessed.session_key not in {None, "g" * 32}
    assert not session.exists("g" * 32)


def test_cycling_keeps_the_expiry_that_was_set(session: SessionStore) -> None:
    session["x"] = 1
    session.set_expiry(100)
    session.save()

    session.cycle_key()
    session.save()

    assert again(session)["x"] == 1
    assert again(session).get_expiry_age() == 100


def test_cycling_and_flushing_a_session_that_was_never_stored_costs_nothing(
    session: SessionStore, requests_sent: Requests
) -> None:
    session["x"] = 1
    session.cycle_key()
    session.flush()

    assert requests_sent.operations == []
    assert (session.is_empty(), session.session_key) == (True, None)


def test_flushing_marks_it_written_and_takes_the_key(session: SessionStore) -> None:
    untouched(session, x=1).save()
    key = str(session.session_key)

    session.flush()

    assert (session.modified, session.accessed) == (True, True)
    assert session.session_key is None
    assert not session.exists(key)


def test_a_copy_that_was_read_before_the_end_cannot_save_after_it(session: SessionStore) -> None:
    session["x"] = 1
    session.save()
    late = again(session)
    late["x"] = 2
    session.flush()

    with pytest.raises(UpdateError):
        late.save()

    assert not any(
        "value" in item for item in send("Scan", {"TableName": CacheItem.table()})["Items"]
    )


def test_without_an_expiry_of_its_own_a_session_has_that_of_the_settings(
    session: SessionStore,
) -> None:
    assert session.get_expiry_age() == settings.SESSION_COOKIE_AGE
    session.set_expiry(0)
    assert session.get_expiry_age() == settings.SESSION_COOKIE_AGE
    session.set_expiry(10)
    session.set_expiry(None)
    assert session.get_expiry_age() == settings.SESSION_COOKIE_AGE


@pytest.mark.parametrize("kind", ["seconds", "timedelta", "datetime"])
def test_an_expiry_can_be_seconds_a_span_or_a_moment(session: SessionStore, kind: str) -> None:
    modified = timezone.now()
    ten = timedelta(seconds=10)
    session.set_expiry({"seconds": 10, "timedelta": ten, "datetime": modified + ten}[kind])

    date = session.get_expiry_date(modification=modified)
    age = session.get_expiry_age(modification=modified)

    # A span is counted from when it was set, some microseconds later.
    assert abs(date - (modified + ten)) < timedelta(seconds=1)
    assert age in {10, 11} if kind == "timedelta" else age == 10


@pytest.mark.parametrize("kind", ["seconds", "timedelta", "datetime"])
def test_an_expiry_is_stored_with_the_session(session: SessionStore, kind: str) -> None:
    far = timedelta(days=30)
    session.set_expiry(
        {"seconds": far.total_seconds(), "timedelta": far, "datetime": timezone.now() + far}[kind]
    )
    session.save()

    assert abs(again(session).get_expiry_age() - far.total_seconds()) < 60
    (item,) = send("Scan", {"TableName": CacheItem.table()})["Items"]
    left = int(item["expiresAt"]["N"]) / 1000 - timezone.now().timestamp()
    assert abs(left - far.total_seconds()) < 60


@pytest.mark.parametrize(
    ("at_close", "expiry", "ends"),
    [
        (False, 10, False),
        (False, 0, True),
        (False, None, False),
        (True, 10, False),
        (True, 0, True),
        (True, None, True),
    ],
)
def test_whether_it_ends_with_the_browser_is_its_own_to_say_else_the_settings(
    session: SessionStore, settings: Any, at_close: bool, expiry: int | None, ends: bool
) -> None:
    settings.SESSION_EXPIRE_AT_BROWSER_CLOSE = at_close

    session.set_expiry(expiry)

    assert session.get_expire_at_browser_close() is ends


def test_what_is_encoded_can_be_decoded_and_garbage_is_an_empty_session(
    session: SessionStore, caplog: pytest.LogCaptureFixture
) -> None:
    assert session.decode(session.encode({"a": "b"})) == {"a": "b"}
    assert session.decode("flaskdj:alkdjf") == {}
    assert session.decode(session.encode({"a": "b"})[:-2]) == {}
    assert "alkdjf" not in caplog.text


def test_test_cookies_work_as_elsewhere(session: SessionStore) -> None:
    session.set_test_cookie()
    assert session.test_cookie_worked()

    session.delete_test_cookie()

    assert not session.test_cookie_worked()


def test_clearsessions_has_nothing_to_do(session: SessionStore) -> None:
    session["x"] = 1
    session.save()

    call_command("clearsessions")

    assert again(session)["x"] == 1
