"""A change of address that waits for its link: reserved, made once, replaced, cancelled, lapsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    activate,
    change_email,
    change_password,
    change_username,
    deactivate,
    delete,
    edit_profile,
    find_user,
)
from dynamo.unique import guards
from tests.emailchanges import (
    NEW,
    NEW_KEY,
    again,
    assert_all_is_well,
    assert_changes_nothing,
    days_later,
    link_of_days_ago,
    token_of,
    waiting_user,
)
from tests.factories import (
    changes_of,
    guard_owner,
    make_user,
    stored_items,
    stored_user,
)
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

NOTES = {"pendingEmail", "pendingReservation", "pendingUntil"}


# Asking -------------------------------------------------------------------------------------------


def test_a_request_reserves_the_new_address_for_three_days_and_changes_nothing_else() -> None:
    user = make_user(email="old@example.org")
    before = stored_items()

    request_change(user, "New@Example.org")

    items = stored_items()
    noted = {name: items[user.pk][name] for name in NOTES}
    until = noted["pendingUntil"]["N"]
    assert noted["pendingEmail"] == {"S": "New@Example.org"}
    assert abs(int(until) - guards.now() - 3 * 24 * 60 * 60) < 60
    assert items.pop(NEW_KEY) == {
        "pk": {"S": NEW_KEY},
        "owner": {"S": user.pk},
        "reservation": noted["pendingReservation"],
        "expires": {"N": until},
    }
    version = {"version": {"N": str(user.version)}}
    assert items == before | {user.pk: before[user.pk] | noted | version}
    assert user.to_dynamodb_dict() == items[user.pk]
    assert_all_is_well()


def test_a_reserved_address_finds_nobody_and_is_taken_for_everybody_else() -> None:
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
        assert_changes_nothing(act, EmailTaken)


def test_an_address_that_another_has_is_refused_and_nothing_changes() -> None:
    make_user(email=NEW)
    user = make_user()

    assert_changes_nothing(lambda: request_change(user, "New@example.org"), EmailTaken)


def test_what_is_no_address_is_refused_and_nothing_changes() -> None:
    user = make_user()

    assert_changes_nothing(lambda: request_change(user, "new"), ValidationError)


@pytest.mark.parametrize("change", [request_change, lambda user, _email: cancel_change(user)])
def test_a_stale_account_is_told_and_nothing_changes(change: Any) -> None:
    user = waiting_user("other@example.org")
    edit_profile(again(user), full_name="Ann")

    assert_changes_nothing(lambda: change(user, NEW), StaleUser)


def test_a_deleted_account_reserves_nothing() -> None:
    user = make_user()
    delete(again(user))

    with pytest.raises(StaleUser) as refused:
        request_change(user, NEW)

    assert refused.value.deleted
    assert stored_items() == {}


def test_another_request_frees_the_address_of_the_first_and_voids_its_link() -> None:
    user = waiting_user("first@example.org")
    first = token_of(user)

    request_change(user, NEW)

    assert guard_owner("email#first@example.org") is None
    assert_changes_nothing(lambda: confirm_change(first), BadLink)
    assert confirm_change(token_of(user)).user.email == NEW
    assert_all_is_well()


def test_the_same_request_again_renews_the_reservation_and_voids_the_older_link() -> None:
    user = waiting_user()
    first, until = token_of(user), user.pending_until

    with days_later(1):
        request_change(user, "NEW@example.org")

    assert user.pending_until >= until + 24 * 60 * 60 - 60
    assert user.pending_email == "NEW@example.org"
    assert_changes_nothing(lambda: confirm_change(first), BadLink)
    assert_all_is_well()
    assert confirm_change(token_of(user)).user.email == "NEW@example.org"


@pytest.mark.parametrize("email", ["old@example.org", "Old@Example.org"])
def test_the_address_that_one_has_waits_for_nothing_and_drops_what_waits(email: str) -> None:
    user = waiting_user(email="old@example.org")
    confirmed_by = user.confirmation_id

    request_change(user, email)

    read = again(user)
    assert (read.email, read.awaited_email, read.confirmation_id) == (email, None, confirmed_by)
    assert not NOTES & (stored_user(user.pk) or {}).keys()
    assert guard_owner(NEW_KEY) is None
    assert_all_is_well()


# Following the link -------------------------------------------------------------------------------


def test_the_link_makes_the_reservation_the_guard_and_frees_the_old_address() -> None:
    user = waiting_user("New@example.org", email="old@example.org")
    old_link = links.make(confirmation.PURPOSE, user.pk, str(user.confirmation_id))

    confirmed = confirm_change(token_of(user))

    assert confirmed == Confirmed(user, "old@example.org")
    items = stored_items()
    assert confirmed.user.to_dynamodb_dict() == items[user.pk]
    assert items[NEW_KEY] == {"pk": {"S": NEW_KEY}, "owner": {"S": user.pk}}
    assert "email#old@example.org" not in items
    assert not NOTES & items[user.pk].keys()
    read = again(user)
    assert (read.email, read.is_confirmed, changes_of(user)) == ("New@example.org", True, 2)
    assert find_user(NEW) == user
    assert_changes_nothing(lambda: confirmation.confirm(old_link), BadLink)
    assert_all_is_well()


def test_the_old_address_is_free_at_once() -> None:
    user = waiting_user(email="old@example.org")
    confirm_change(token_of(user))

    make_user(email="old@example.org")

    assert_all_is_well()


def test_a_link_followed_twice_is_told_the_same_and_changes_nothing() -> None:
    user = waiting_user()
    token = token_of(user)
    confirm_change(token)
    before = stored_items()

    assert confirm_change(token) == Confirmed(user, None)

    assert stored_items() == before


def test_a_link_followed_three_days_later_does_nothing() -> None:
    user = waiting_user()
    late = link_of_days_ago(user, 3.001)

    assert_changes_nothing(lambda: confirm_change(late), BadLink)


def test_a_link_whose_reservation_lapsed_does_nothing_though_nobody_took_the_address() -> None:
    user = waiting_user()
    token = token_of(user)

    with days_later():
        assert_changes_nothing(lambda: confirm_change(token), BadLink)


def test_a_link_whose_reservation_another_took_does_nothing() -> None:
    user = waiting_user()

    with days_later():
        taker = make_user(email=NEW)
        assert_changes_nothing(lambda: confirm_change(token_of(user)), BadLink)

    # By a clock that is slow it has not lapsed yet.
    assert_changes_nothing(lambda: confirm_change(token_of(user)), EmailTaken)
    assert guard_owner(NEW_KEY) == taker.pk


def test_a_link_for_another_account_does_nothing() -> None:
    user, other = waiting_user(), waiting_user("other@example.org")
    crossed = links.make(PURPOSE, other.pk, str(user.pending_reservation))

    assert_changes_nothing(lambda: confirm_change(crossed), BadLink)


def test_a_link_for_another_purpose_does_nothing() -> None:
    user = waiting_user()
    other = links.make(confirmation.PURPOSE, user.pk, str(user.pending_reservation))

    assert_changes_nothing(lambda: confirm_change(other), BadLink)
    assert_changes_nothing(lambda: confirmation.confirm(token_of(user)), BadLink)


def test_a_link_followed_after_the_address_changed_does_nothing() -> None:
    user = waiting_user()
    token = token_of(user)
    change_email(user, "third@example.org")

    assert_changes_nothing(lambda: confirm_change(token), BadLink)


def test_a_link_that_was_followed_is_void_once_the_address_changed_again() -> None:
    user = waiting_user()
    token = token_of(user)
    change_email(confirm_change(token).user, "third@example.org")

    assert_changes_nothing(lambda: confirm_change(token), BadLink)


def test_a_link_followed_after_the_account_was_deleted_and_made_anew_does_nothing() -> None:
    user = waiting_user(request_id="ann", email="ann@example.org", username="ann")
    token = token_of(user)
    delete(user)
    assert_changes_nothing(lambda: confirm_change(token), BadLink)

    anew = make_user(request_id="ann", email="ann@example.org", username="ann")

    assert anew.pk == user.pk
    assert_changes_nothing(lambda: confirm_change(token), BadLink)


@pytest.mark.parametrize(
    "end",
    [
        lambda user: change_password(user, "another good password"),
        lambda user: (deactivate(user), activate(user)),
    ],
    ids=["password", "deactivation"],
)
def test_a_link_followed_after_what_ends_sessions_does_nothing(end: Callable[[User], Any]) -> None:
    user = waiting_user()
    token = token_of(user)

    end(again(user))

    assert again(user).awaited_email is None
    assert_changes_nothing(lambda: confirm_change(token), BadLink)
    assert_all_is_well()
    request_change(again(user), NEW)
    confirm_change(token_of(again(user)))
    assert again(user).email == NEW
    assert_all_is_well()


def test_a_request_renewed_while_a_password_ends_it_is_told() -> None:
    read = again(waiting_user())
    change_password(again(read), "another good password")

    with pytest.raises(StaleUser):
        request_change(read, NEW)

    assert again(read).awaited_email is None


def test_what_else_changed_meanwhile_is_in_no_links_way() -> None:
    user = waiting_user()
    token = token_of(user)
    change_username(user, "Somebody")
    edit_profile(again(user), full_name="Some Body")

    confirm_change(token)

    read = again(user)
    assert (read.email, read.username, read.full_name) == (NEW, "Somebody", "Some Body")
    assert_all_is_well()


# Dropping it --------------------------------------------------------------------------------------


def test_a_cancelled_change_frees_the_address_and_voids_the_link() -> None:
    user = waiting_user()
    token = token_of(user)

    cancel_change(user)

    assert not NOTES & (stored_user(user.pk) or {}).keys()
    assert guard_owner(NEW_KEY) is None
    assert_changes_nothing(lambda: confirm_change(token), BadLink)
    make_user(email=NEW)
    assert_all_is_well()


def test_cancelling_where_nothing_waits_sends_nothing(requests_sent: Requests) -> None:
    user = make_user()
    requests_sent.clear()

    cancel_change(user)

    assert requests_sent.operations == []


def test_a_change_cancelled_meanwhile_is_a_success_all_the_same() -> None:
    user = waiting_user()
    cancel_change(again(user))

    cancel_change(user)

    assert user.awaited_email is None
    assert user.to_dynamodb_dict() == stored_user(user.pk)


def test_an_immediate_change_drops_the_one_that_waits() -> None:
    user = waiting_user()

    change_email(user, "third@example.org")

    assert again(user).email == "third@example.org"
    assert guard_owner(NEW_KEY) is None
    assert_all_is_well()


@pytest.mark.parametrize("email", [NEW, "New@Example.ORG"])
def test_an_immediate_change_to_the_awaited_address_makes_its_reservation_the_guard(
    email: str,
) -> None:
    user = waiting_user()

    change_email(user, email)

    assert again(user).email == email
    assert not again(user).is_confirmed
    assert stored_items()[NEW_KEY] == {"pk": {"S": NEW_KEY}, "owner": {"S": user.pk}}
    assert_all_is_well()


def test_an_immediate_change_of_spelling_drops_the_one_that_waits() -> None:
    user = waiting_user(email="ann@example.org")

    change_email(user, "Ann@example.org")

    assert again(user).email == "Ann@example.org"
    assert guard_owner(NEW_KEY) is None
    assert_all_is_well()


def test_a_deleted_account_frees_the_reserved_address_too() -> None:
    delete(waiting_user())

    assert stored_items() == {}


def test_other_changes_leave_the_one_that_waits() -> None:
    user = waiting_user()

    change_username(user, "Somebody")
    edit_profile(user, vat_id="GB1")

    assert again(user).awaited_email == NEW
    assert_all_is_well()


# What it costs ------------------------------------------------------------------------------------


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
@pytest.mark.parametrize(
    ("act", "requests", "units"),
    [
        (cancel_change, 1, 4),
        (lambda user: request_change(user, NEW), 1, 4),
        (lambda user: request_change(user, "third@example.org"), 1, 6),
        (lambda user: change_email(user, NEW), 1, 6),
        (lambda user: change_email(user, "third@example.org"), 1, 8),
        (delete, 1, 8),
    ],
    ids=["cancel", "renew", "replace", "take", "change", "delete"],
)
def test_each_costs_one_request(
    act: Callable[[User], None], requests: int, units: int, requests_sent: Requests
) -> None:
    user = waiting_user()
    requests_sent.clear()

    act(user)

    assert requests_sent.operations == ["TransactWriteItems"] * requests
    assert requests_sent.units == units


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
def test_asking_costs_one_request_and_following_the_link_two(requests_sent: Requests) -> None:
    user = make_user()
    requests_sent.clear()

    request_change(user, NEW)
    assert (requests_sent.operations, requests_sent.units) == (["TransactWriteItems"], 4)
    requests_sent.clear()

    confirm_change(token_of(user))
    assert requests_sent.operations == ["GetItem", "TransactWriteItems"]
    assert requests_sent.units == 1 + 6
