"""Password hashing: its parameters, and how many hashes a process makes at once."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher, MD5PasswordHasher, make_password
from django.test import Client

from accounts.models import User
from dynamo.auth import passwords
from dynamo.auth.passwords import AT_ONCE, WAIT_SECONDS, WAITING_OF_CLIENT, Argon2idHasher
from dynamo.runtime import deadline
from dynamo.runtime.gates import NICENESS
from tests.accounts.test_page_limits import WRONG, attempt
from tests.conftest import PAGE_SECONDS
from tests.factories import PASSWORD, make_user, stored_items
from tests.forked import in_a_child
from tests.mailbox import link
from tests.pages import (
    RESET,
    SIGN_IN,
    SIGN_UP,
    Page,
    form_values,
    let_in,
    new_account,
    sign_up,
    signed_in_as,
)
from tests.passwords import password_history
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

OWASP = "argon2$argon2id$v=19$m=19456,t=2,p=1$"
NEW = "quite another one"


class Counting(Argon2idHasher):
    """Counts the hashes that are made at once, and their threads."""

    now = most = 0
    threads: ClassVar[set[int]] = set()
    lock = threading.Lock()

    def encode(self, password: str, salt: str) -> str:
        with self.one_more():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        with self.one_more():
            return super().verify(password, encoded)

    @contextmanager
    def one_more(self) -> Iterator[None]:
        with self.lock:
            Counting.now += 1
            Counting.most = max(Counting.most, Counting.now)
            Counting.threads.add(threading.get_native_id())
        yield
        with self.lock:
            Counting.now -= 1


class Blocking(MD5PasswordHasher):
    """Hashes the password `blocks` only after `may_end` was set."""

    algorithm = "blocking"
    entered = threading.Semaphore(0)
    may_end = threading.Event()

    def encode(self, password: str, salt: str) -> str:
        if password == "blocks":
            Blocking.entered.release()
            assert Blocking.may_end.wait(120)
        return super().encode(password, salt)


@contextmanager
def all_slots_taken(settings: Any) -> Iterator[None]:
    """As many hashes are under way as the process makes at once."""
    settings.PASSWORD_HASHERS = [f"{__name__}.Blocking", *settings.PASSWORD_HASHERS]
    Blocking.may_end.clear()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _each in range(AT_ONCE):
            pool.submit(passwords.make_password, "blocks")
            assert Blocking.entered.acquire(timeout=120)
        try:
            yield
        finally:
            Blocking.may_end.set()


@pytest.fixture
def busy(settings: Any) -> Iterator[None]:
    """All slots are taken until the test ends."""
    with all_slots_taken(settings):
        yield


def outdated_hash() -> str:
    """A hash by the same hasher with other parameters, such as those of Django."""
    hasher = Argon2PasswordHasher()
    hasher.time_cost, hasher.memory_cost = 1, 1024
    return hasher.encode(PASSWORD, hasher.salt())


@pytest.mark.parametrize("page", ["sign-in", "re-entering"])
def test_a_hash_with_other_parameters_is_upgraded_when_the_password_is_entered(
    client: Client, settings: Any, real_hashers: list[str], page: str
) -> None:
    settings.PASSWORD_HASHERS = real_hashers
    user = make_user(username="ann", password=None, password_hash=outdated_hash())
    assert not user.password.startswith(OWASP)

    if page == "sign-in":
        client.post(SIGN_IN, {"username": "ann", "password": PASSWORD})
    else:
        client.force_login(user)
        client.post("/accounts/reauthenticate/", {"password": PASSWORD})

    read = User.get(user.pk)
    assert read.password.startswith(OWASP)
    assert read.check_password(PASSWORD)
    assert read.version == user.version
    assert signed_in_as(client) == "ann"


def test_a_process_hashes_at_most_a_few_passwords_at_once_and_pages_go_first(
    settings: Any, at_once: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 60.0)
    settings.PASSWORD_HASHERS = [f"{__name__}.Counting"]
    make_user(username="ann")
    Counting.most = 0
    Counting.threads.clear()

    found = at_once(lambda n: attempt(["ann", f"nobody{n}"][n % 2]).status_code, 24)

    assert sorted(set(found)) == [200, 429]  # the account's own limit is ten
    assert 1 <= Counting.most <= AT_ONCE
    # Each thread that ever made a hash keeps its memory.
    assert len(Counting.threads) <= AT_ONCE
    if sys.platform == "linux":  # elsewhere all threads are equally nice
        niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, 19)
        for thread in Counting.threads:
            assert os.getpriority(os.PRIO_PROCESS, thread) == niceness


@pytest.mark.parametrize("prevent_enumeration", [False, True])
def test_a_page_that_cannot_hash_in_time_is_a_503_and_changes_nothing(
    ann: User,
    client: Client,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    prevent_enumeration: bool,
) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = prevent_enumeration
    signing_up = form_values(client, SIGN_UP, **new_account("bob"))
    client.post("/accounts/password_reset/", {"email": ann.email})
    resetting = client.get(link())["Location"]
    before = stored_items()

    with all_slots_taken(settings), monkeypatch.context() as patch:
        patch.setattr(passwords, "WAIT_SECONDS", 0.1)
        answers = [
            attempt("nobody"),
            client.post(SIGN_UP, signing_up),
            client.post(resetting, {"new_password1": NEW, "new_password2": NEW}),
        ]

    for response in answers:
        assert response.status_code == 503
        assert int(response["Retry-After"]) > 0
        assert "Nothing was stored or sent." in Page(response).text
    assert stored_items() == before


def test_a_client_with_too_many_passwords_at_once_is_refused_before_a_request_is_sent(
    ann: User, requests_sent: Requests
) -> None:
    with ExitStack() as queue:
        for _hash in range(AT_ONCE + WAITING_OF_CLIENT):
            queue.enter_context(passwords._gate().place("127.0.0.1"))

        refused = attempt("ann", PASSWORD)

        assert (refused.status_code, requests_sent.operations) == (429, [])
        assert int(refused["Retry-After"]) > 0
        typed = {"username": "ann", "password": PASSWORD}
        assert Client(REMOTE_ADDR="192.0.2.9").post(SIGN_IN, typed).status_code == 302

    assert attempt("ann", PASSWORD).status_code == 302


def test_waiting_for_a_hash_ends_at_the_deadline_of_the_page(busy: None, settings: Any) -> None:
    assert WAIT_SECONDS <= PAGE_SECONDS - 2  # for the page's requests
    settings.DYNAMODB_PAGE_SECONDS = 0.5

    assert attempt("nobody").status_code == 503


def test_an_attempt_that_was_not_checked_is_not_counted(
    settings: Any, limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    limits |= {"sign_in": (2, 900), "sign_in_client": (2, 900), "reauthentication": (2, 900)}
    ann = make_user(username="ann")
    client.force_login(ann)
    again = ("/accounts/reauthenticate/", {"password": PASSWORD})
    with monkeypatch.context() as patch, all_slots_taken(settings):
        patch.setattr(passwords, "WAIT_SECONDS", 0.05)
        for _time in range(4):
            assert attempt("ann", WRONG).status_code == 503
            assert client.post(*again).status_code == 503

    assert client.post(*again).status_code == 302
    assert attempt("ann", PASSWORD).status_code == 302


def test_checking_an_outdated_hash_does_not_deadlock(
    settings: Any, real_hashers: list[str], at_once: Callable[..., list[Any]]
) -> None:
    settings.PASSWORD_HASHERS = real_hashers
    old = outdated_hash()
    users = [make_user(password=None, password_hash=old) for _each in range(AT_ONCE + 1)]

    assert all(at_once(lambda n: users[n].check_password(PASSWORD), len(users)))

    assert all(User.get(user.pk).password.startswith(OWASP) for user in users)


def test_an_unusable_password_takes_no_slot(busy: None) -> None:
    assert make_user(password=None).has_usable_password() is False
    assert make_password(None).startswith("!")


def test_a_forked_child_has_all_slots(busy: None) -> None:
    assert in_a_child(lambda: passwords.make_password(PASSWORD)) == 0


# Password validators ------------------------------------------------------------------------------


def new_password_page(url: str, client: Client, **old: str) -> None:
    assert client.post(url, {"new_password1": NEW, "new_password2": NEW, **old}).status_code == 302


def reset(ann: User) -> None:
    visitor = Client()
    visitor.post(RESET, {"email": ann.email})
    new_password_page(visitor.get(link())["Location"], visitor)


STORED_BY: dict[str, Callable[[User], object]] = {
    "the sign-up page": lambda _ann: sign_up(Client(), **new_account("bob", NEW)),
    "the page of a change": lambda ann: new_password_page(
        "/accounts/password_change/", let_in(ann), old_password=PASSWORD
    ),
    "a reset": reset,
}


@pytest.mark.parametrize("store", STORED_BY.values(), ids=STORED_BY)
def test_validators_are_told_when_a_new_password_is_stored(store: Callable[[User], object]) -> None:
    ann = make_user(username="ann")

    with password_history() as history:
        store(ann)

        assert [password for _name, password in history] == [NEW]


def test_validators_are_not_told_of_a_hash_or_a_registration_that_is_repeated() -> None:
    hashed = make_password(NEW, hasher="md5")

    with password_history() as history:
        make_user(username="ann", password=None, password_hash=hashed)
        for _time in range(2):
            make_user(username="bob", email="bob@example.org", password=NEW, request_id="form-1")

        assert history == [("bob", NEW)]
