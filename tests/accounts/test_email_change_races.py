"""A change that waits for its link, at the same moment as others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from accounts.emails.change import Confirmed, cancel_change, confirm_change, request_change
from accounts.exceptions import BadLink, EmailTaken, StaleUser
from accounts.models import User
from accounts.services import change_email, delete, edit_profile
from dynamo.unique import guards
from tests.emailchanges import (
    NEW,
    NEW_KEY,
    again,
    assert_all_is_well,
    token_of,
    told_by_link,
    waiting_user,
)
from tests.factories import (
    changes_of,
    guard_owner,
    make_user,
    stored_items,
    stored_user,
)
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.together import together

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")

ROUNDS = 15


# At the same moment -------------------------------------------------------------------------------


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the clock of the thread that calls it, as machines have each their own."""
    local = threading.local()

    def at(now: int) -> None:
        local.now = now

    monkeypatch.setattr(guards, "now", lambda: getattr(local, "now", int(time.time())))
    return at


@pytest.mark.parametrize("take", ["register", "change", "reserve"])
@pytest.mark.usefixtures("engine")
def test_an_address_that_another_wants_the_second_it_lapses_has_one_winner(
    take: str, clocks: Callable[[int], None]
) -> None:
    for number in range(ROUNDS):
        email = f"prize{number}@example.org"
        user = waiting_user(email)
        other = make_user()
        token, end = token_of(user), int(user.pending_until)

        def confirm(token: str = token, end: int = end) -> Confirmed:
            clocks(end - 1)
            return confirm_change(token)

        def rival(email: str = email, end: int = end, other: User = other) -> object:
            clocks(end)
            if take == "register":
                return make_user(email=email)
            return (change_email if take == "change" else request_change)(other, email)

        confirmed, rivals = together(confirm, rival)

        owner = guard_owner(f"email#{email}")
        if isinstance(confirmed, Confirmed):
            assert isinstance(rivals, EmailTaken)
            assert (owner, again(user).email) == (user.pk, email)
        else:
            assert isinstance(confirmed, BadLink | EmailTaken)
            assert not isinstance(rivals, Exception)
            assert owner not in {None, user.pk}
        clocks(end)
        assert_all_is_well()
        clocks(int(time.time()))
        delete(again(user))


@pytest.mark.usefixtures("engine")
def test_two_who_take_a_lapsed_address_at_once_have_one_winner(
    clocks: Callable[[int], None],
) -> None:
    for number in range(ROUNDS):
        email = f"prize{number}@example.org"
        end = int(waiting_user(email).pending_until)

        def take(end: int = end, email: str = email) -> User:
            clocks(end)
            return make_user(email=email)

        results = together(take, take, take)

        assert sorted(type(each).__name__ for each in results) == ["EmailTaken"] * 2 + ["User"]
        clocks(end)
        assert_all_is_well()
        clocks(int(time.time()))


@pytest.mark.usefixtures("engine")
def test_a_change_confirmed_while_the_account_is_deleted_leaves_nothing_or_is_deleted_too() -> None:
    for _ in range(ROUNDS):
        user = waiting_user()

        confirmed, deleted = together(
            partial(confirm_change, token_of(user)), partial(delete, again(user))
        )

        if deleted is None:
            assert isinstance(confirmed, BadLink)
            assert stored_items() == {}
        else:
            assert isinstance(deleted, StaleUser)
            assert again(user).email == NEW
            assert_all_is_well()
            delete(again(user))


@pytest.mark.usefixtures("engine")
def test_one_address_is_reserved_for_one_of_two_accounts_that_ask_at_once() -> None:
    for number in range(ROUNDS):
        ann, bob = make_user(), make_user()

        results = together(
            partial(request_change, ann, f"prize{number}@example.org"),
            partial(request_change, bob, f"PRIZE{number}@example.org"),
        )

        assert sorted(type(result).__name__ for result in results) == ["EmailTaken", "NoneType"]
    assert_all_is_well()


@pytest.mark.usefixtures("engine")
def test_a_form_that_is_sent_twice_at_once_makes_one_reservation_and_one_link() -> None:
    for _ in range(ROUNDS):
        user = make_user()
        tabs = [again(user), again(user)]

        results = together(*(partial(request_change, tab, NEW) for tab in tabs))

        assert results == [None, None]
        assert told_by_link(tabs[0]) == told_by_link(tabs[1]) == told_by_link(again(user))
        assert_all_is_well()
        delete(again(user))


@pytest.mark.usefixtures("engine")
def test_a_link_that_is_followed_twice_at_once_changes_the_address_once() -> None:
    for _ in range(ROUNDS):
        user = waiting_user()

        results = together(*[partial(confirm_change, token_of(user))] * 3)

        assert all(isinstance(result, Confirmed) for result in results)
        assert changes_of(user) == 2
        assert_all_is_well()
        delete(again(user))


@pytest.mark.usefixtures("engine")
def test_a_link_followed_while_its_change_is_cancelled_is_followed_or_void() -> None:
    for _ in range(ROUNDS):
        user = waiting_user()

        confirmed, cancelled = together(
            partial(confirm_change, token_of(user)), partial(cancel_change, again(user))
        )

        if isinstance(confirmed, Confirmed):
            # The one who cancels may find that nothing waits any more.
            assert cancelled is None
            assert again(user).email == NEW
        else:
            assert (type(confirmed), cancelled) == (BadLink, None)
            assert guard_owner(NEW_KEY) is None
        assert_all_is_well()
        delete(again(user))


def test_a_link_is_followed_whatever_else_changes_the_account_meanwhile(proxy: FaultProxy) -> None:
    user = waiting_user()
    proxy.plan("TransactWriteItems", Meanwhile(lambda: edit_profile(again(user), full_name="Ann")))

    confirmed = confirm_change(token_of(user))

    assert (confirmed.user.email, confirmed.user.full_name) == (NEW, "Ann")
    assert_all_is_well()


def test_a_link_gives_up_in_the_end_where_each_try_meets_another_change(proxy: FaultProxy) -> None:
    user = waiting_user()
    for number in range(9):
        edit = partial(edit_profile, full_name=f"Ann {number}")
        proxy.plan("TransactWriteItems", Meanwhile(lambda edit=edit: edit(again(user))))

    with pytest.raises(StaleUser):
        confirm_change(token_of(user))

    proxy.forget()
    assert again(user).awaited_email == NEW
    assert_all_is_well()


def test_a_reservation_that_is_taken_between_the_two_tries_of_a_deletion_is_left(
    proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = waiting_user()
    end = int(user.pending_until)
    monkeypatch.setattr(guards, "now", lambda: end)
    proxy.plan("TransactWriteItems", Meanwhile(lambda: make_user(email=NEW)))

    delete(user)

    assert stored_user(user.pk) is None
    assert guard_owner(NEW_KEY) is not None
    assert_all_is_well()
