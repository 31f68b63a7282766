"""A change of the email address that waits for its link: requested, confirmed, canceled, lapsed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.exceptions import ValidationError

from accounts.emails import confirmation, links
from accounts.emails.change import (
    PURPOSE,
    Confirmed,
    cancel_change,
    confirm_change,
    request_change,
)
from accounts.exceptions import BadLink, EmailTaken, StaleUser
from accounts.models import User
from accounts.services import (
    change_email,
    change_password,
    change_username,
    delete,
    find_user,
)
from dynamo.unique import guards
from tests.emailchanges import (
    NEW,
    NEW_KEY,
    again,
    assert_guards_are_correct,
    days_later,
    link_of_days_ago,
    refusal_of,
    token_of,
    told_by_link,
    waiting_user,
)
from tests.factories import changes_of, guard_owner, make_user, stored_items, stored_user
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

THIRD = "third@example.org"
NOTES = {"pendingEmail", "pendingReservation", "pendingUntil"}
GUARD = {"pk": {"S": NEW_KEY}}


def has_notes(user: User) -> bool:
    return bool(NOTES & (stored_user(user.pk) or {}).keys())


# Requesting a change ------------------------------------------------------------------------------


def test_a_request_reserves_the_address_for_three_days_and_changes_nothing_else() -> None:
    user = make_user(email="old@example.org")
    before = stored_items()

    request_change(user, "New@Example.org")

    items = stored_items()
    noted = {name: items[user.pk][name] for name in NOTES}
    until = noted["pendingUntil"]["N"]
    assert noted["pendingEmail"] == {"S": "New@Example.org"}
    assert abs(int(until) - guards.now() - 3 * 24 * 60 * 60) < 60
    assert items.pop(NEW_KEY) == GUARD | {
        "owner": {"S": user.pk},
        "reservation": noted["pendingReservation"],
        "expires": {"N": until},
    }
    version = {"version": {"N": str(user.version)}}
    assert items == before | {user.pk: before[user.pk] | noted | version}
    assert user.to_dynamodb_dict() == items[user.pk]
    assert_guards_are_correct()


def test_a_reserved_address_finds_no_account_and_is_taken_for_others() -> None:
    waiting_user()
    other = make_user()

    with pytest.raises(User.DoesNotExist):
        User.find(NEW)
    assert User.unique.is_taken("email", NEW)
    for act in (
        lambda: make_user(email=NEW),
        lambda: change_email(other, "NEW@example.org"),
        lambda: request_change(other, NEW),
    ):
        assert refusal_of(act) is EmailTaken


@pytest.mark.parametrize(("email", "error"), [(NEW, EmailTaken), ("new", ValidationError)])
def test_a_request_for_a_taken_or_invalid_address_changes_nothing(
    email: str, error: type[Exception]
) -> None:
    make_user(email=NEW)
    user = make_user()

    assert refusal_of(lambda: request_change(user, email)) is error


def test_the_same_request_again_extends_the_reservation_and_voids_the_older_link() -> None:
    user = waiting_user()
    first, until = token_of(user), user.pending_until

    with days_later(1):
        request_change(user, "NEW@example.org")

    assert user.pending_until >= until + 24 * 60 * 60 - 60
    assert refusal_of(lambda: confirm_change(first)) is BadLink
    assert_guards_are_correct()
    assert confirm_change(token_of(user)).user.email == "NEW@example.org"


def test_the_same_form_sent_twice_at_once_makes_one_reservation_and_one_link() -> None:
    user = make_user()
    tabs = [again(user), again(user)]

    for tab in tabs:
        request_change(tab, NEW)

    assert told_by_link(tabs[0]) == told_by_link(tabs[1]) == told_by_link(again(user))
    assert_guards_are_correct()


def test_a_request_after_a_password_change_ended_the_waiting_one_is_stale() -> None:
    read = again(waiting_user())
    change_password(again(read), "another good password")

    with pytest.raises(StaleUser):
        request_change(read, NEW)

    assert again(read).awaited_email is None


# Following the link -------------------------------------------------------------------------------


def test_the_link_turns_the_reservation_into_the_guard_and_frees_the_old_address() -> None:
    user = waiting_user("New@Example.org", email="old@example.org")
    old_link = links.make(confirmation.PURPOSE, user.pk, str(user.confirmation_id))

    confirmed = confirm_change(token_of(user))

    assert confirmed == Confirmed(user, "old@example.org")
    items = stored_items()
    assert confirmed.user.to_dynamodb_dict() == items[user.pk]
    assert items[NEW_KEY] == GUARD | {"owner": {"S": user.pk}}
    assert not has_notes(user)
    read = again(user)
    assert (read.email, read.is_confirmed, changes_of(user)) == ("New@Example.org", True, 2)
    assert find_user(NEW) == user
    assert refusal_of(lambda: confirmation.confirm(old_link)) is BadLink
    make_user(email="old@example.org")
    assert_guards_are_correct()


@pytest.mark.parametrize(
    "forged",
    [
        lambda user: link_of_days_ago(user, 3.001),
        lambda user: links.make(confirmation.PURPOSE, user.pk, str(user.pending_reservation)),
        lambda user: links.make(
            PURPOSE, waiting_user("other@example.org").pk, str(user.pending_reservation)
        ),
    ],
    ids=["too old", "another purpose", "another account"],
)
def test_a_link_that_does_not_fit_changes_nothing(forged: Callable[[User], str]) -> None:
    token = forged(waiting_user())

    assert refusal_of(lambda: confirm_change(token)) is BadLink


# Other changes while one waits --------------------------------------------------------------------


def test_canceling_without_a_waiting_change_sends_nothing(requests_sent: Requests) -> None:
    user = make_user()
    requests_sent.clear()

    cancel_change(user)

    assert requests_sent.operations == []


def test_canceling_frees_the_address_and_succeeds_if_it_was_canceled_meanwhile() -> None:
    user = waiting_user()
    cancel_change(again(user))
    assert not has_notes(user)
    make_user(email=NEW)

    cancel_change(user)

    assert user.awaited_email is None
    assert user.to_dynamodb_dict() == stored_user(user.pk)


@pytest.mark.parametrize("email", [NEW, "New@Example.ORG"])
def test_an_immediate_change_to_the_reserved_address_turns_it_into_the_guard(email: str) -> None:
    user = waiting_user()

    change_email(user, email)

    assert again(user).email == email
    assert not again(user).is_confirmed
    assert stored_items()[NEW_KEY] == GUARD | {"owner": {"S": user.pk}}
    assert_guards_are_correct()


# Reservations that lapse --------------------------------------------------------------------------


def test_a_lapsed_change_is_not_shown_and_its_address_is_free() -> None:
    user = waiting_user()
    with days_later(2.999):
        assert again(user).awaited_email == NEW
        assert refusal_of(lambda: make_user(email=NEW)) is EmailTaken

    with days_later():
        assert again(user).awaited_email is None
        assert not User.unique.is_taken("email", NEW)
        assert refusal_of(lambda: confirm_change(token_of(user))) is BadLink
        taker = make_user(email=NEW)
        assert find_user(NEW) == taker
        assert stored_items()[NEW_KEY] == GUARD | {"owner": {"S": taker.pk}}
        assert_guards_are_correct()


@pytest.mark.parametrize(
    "take",
    [
        lambda: make_user(email=NEW),
        lambda: change_email(make_user(), NEW),
        lambda: waiting_user(),
    ],
    ids=["register", "change_email", "request_change"],
)
@pytest.mark.parametrize(
    "act",
    [
        delete,
        cancel_change,
        lambda user: change_email(user, THIRD),
        lambda user: request_change(user, THIRD),
        lambda user: change_username(user, "Somebody"),
    ],
    ids=["delete", "cancel", "change", "replace", "rename"],
)
def test_an_account_whose_lapsed_reservation_was_taken_can_still_change(
    take: Callable[[], object], act: Callable[[User], None]
) -> None:
    user = waiting_user()

    with days_later():
        take()
        taken = stored_items()[NEW_KEY]
        assert taken["owner"]["S"] != user.pk

        act(user)

        assert stored_items()[NEW_KEY] == taken
        assert_guards_are_correct()


def test_a_link_by_a_slow_clock_does_not_take_the_address_back() -> None:
    user = waiting_user()
    with days_later():
        taker = make_user(email=NEW)
        assert refusal_of(lambda: confirm_change(token_of(user))) is BadLink

    assert refusal_of(lambda: confirm_change(token_of(user))) is EmailTaken
    assert guard_owner(NEW_KEY) == taker.pk


def test_an_account_can_reserve_its_lapsed_address_again_unless_it_was_taken() -> None:
    user, late = waiting_user(), waiting_user("late@example.org")

    with days_later():
        request_change(user, NEW)
        assert confirm_change(token_of(user)).user.email == NEW
        make_user(email="late@example.org")
        assert refusal_of(lambda: request_change(late, "late@example.org")) is EmailTaken
        assert refusal_of(lambda: change_email(late, "late@example.org")) is EmailTaken
        assert_guards_are_correct()


def test_a_reservation_taken_between_the_attempts_of_a_deletion_stays(
    proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = waiting_user()
    end = int(user.pending_until)
    monkeypatch.setattr(guards, "now", lambda: end)
    proxy.plan("TransactWriteItems", Meanwhile(lambda: make_user(email=NEW)))

    delete(user)

    assert stored_user(user.pk) is None
    assert guard_owner(NEW_KEY) is not None
    assert_guards_are_correct()


# Costs --------------------------------------------------------------------------------------------


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
@pytest.mark.parametrize(
    ("act", "units"),
    [
        (cancel_change, 4),
        (lambda user: request_change(user, NEW), 4),
        (lambda user: request_change(user, THIRD), 6),
        (lambda user: change_email(user, NEW), 6),
        (lambda user: change_email(user, THIRD), 8),
        (delete, 8),
    ],
    ids=["cancel", "renew", "replace", "take", "change", "delete"],
)
def test_a_change_with_a_reservation_costs_one_request(
    act: Callable[[User], None], units: int, requests_sent: Requests
) -> None:
    user = waiting_user()
    requests_sent.clear()

    act(user)

    assert requests_sent.operations == ["TransactWriteItems"]
    assert requests_sent.units == units


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
def test_a_request_costs_one_request_and_following_the_link_two(requests_sent: Requests) -> None:
    user = make_user()
    requests_sent.clear()

    request_change(user, NEW)
    assert (requests_sent.operations, requests_sent.units) == (["TransactWriteItems"], 4)
    requests_sent.clear()

    confirm_change(token_of(user))
    assert requests_sent.operations == ["GetItem", "TransactWriteItems"]
    assert requests_sent.units == 1 + 6
