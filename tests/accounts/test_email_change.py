"""A change of the email address that waits for its link: requested, confirmed, replaced, lapsed.

Refusals, repetitions and faults of each operation: test_operation_faults.py.
"""

import time
from functools import partial

import pytest
from django.core.exceptions import ValidationError

from accounts.emails import links
from accounts.emails.links import confirm_change, mark_confirmed, request_change
from accounts.exceptions import BadLink, EmailTaken, StaleUser
from accounts.models import User
from accounts.services import change_email, edit_profile, find_user
from tests.emailchanges import (
    DAY,
    NEW,
    NEW_KEY,
    again,
    assert_guards_are_correct,
    days_later,
    put_reservation,
    refusal_of,
    token_of,
    waiting_user,
)
from tests.factories import changes_of, guard_owner, make_user, stored_items, stored_user
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy

pytestmark = pytest.mark.usefixtures("engine")

NOTES = {"pendingEmail", "pendingReservation", "pendingUntil"}


def has_notes(user: User) -> bool:
    return bool(NOTES & (stored_user(user.pk) or {}).keys())


# Requesting a change ------------------------------------------------------------------------------


def test_a_request_is_a_note_on_its_account_for_three_days_and_nothing_else() -> None:
    user = make_user(email="old@example.org")
    before = stored_items()

    request_change(user, "New@Example.org")

    items = stored_items()
    noted = {name: items[user.pk][name] for name in NOTES}
    assert noted["pendingEmail"] == {"S": "New@Example.org"}
    assert abs(int(noted["pendingUntil"]["N"]) - time.time() - 3 * DAY) < 60
    version = {"version": {"N": str(user.version)}}
    assert items == before | {user.pk: before[user.pk] | noted | version}
    assert user.to_dynamodb_dict() == items[user.pk]
    assert_guards_are_correct()


def test_a_waiting_change_keeps_the_address_from_nobody() -> None:
    user = waiting_user()
    assert not User.is_taken(email=NEW)
    with pytest.raises(User.DoesNotExist):
        User.named(NEW)

    other = make_user(email=NEW)

    assert find_user(NEW) == other
    assert refusal_of(lambda: confirm_change(token_of(user))) is EmailTaken
    assert again(user).awaited_email == NEW
    assert_guards_are_correct()


def test_the_same_request_again_waits_longer_and_voids_the_older_link() -> None:
    user = waiting_user()
    first, until = token_of(user), user.pending_until

    with days_later(1):
        request_change(user, "NEW@example.org")

    assert user.pending_until >= until + DAY - 60
    assert links.address_to_change_to(first) == ""
    assert refusal_of(lambda: confirm_change(first)) is BadLink
    assert links.address_to_change_to(token_of(user)) == "NEW@example.org"
    assert confirm_change(token_of(user))[0].email == "NEW@example.org"
    assert refusal_of(lambda: request_change(user, "no address")) is ValidationError


# Following the link -------------------------------------------------------------------------------


def test_the_link_takes_the_address_and_frees_the_old_one() -> None:
    user = waiting_user("New@Example.org", email="old@example.org")
    old_link = links.make(links.CONFIRM, user.pk, str(user.confirmation_id))

    changed, before = confirm_change(token_of(user))

    assert before
    assert (before.email, before.is_confirmed) == ("old@example.org", False)
    items = stored_items()
    assert changed.to_dynamodb_dict() == items[user.pk]
    assert guard_owner(NEW_KEY) == user.pk
    assert not has_notes(user)
    read = again(user)
    assert (read.email, read.is_confirmed, changes_of(user)) == ("New@Example.org", True, 2)
    assert find_user(NEW) == user
    assert refusal_of(lambda: links.confirm(old_link)) is BadLink
    make_user(email="old@example.org")
    assert_guards_are_correct()


def test_a_link_with_the_id_of_another_account_changes_nothing() -> None:
    user, other = waiting_user(), waiting_user("other@example.org")
    token = links.make(links.CHANGE, other.pk, str(user.pending_id))

    assert refusal_of(lambda: confirm_change(token)) is BadLink


def test_the_second_of_two_who_follow_a_link_at_once_learns_the_former_address_too(
    proxy: FaultProxy,
) -> None:
    # The first one may have died before it sent the mail to the former address.
    user = waiting_user(email="old@example.org")
    mark_confirmed(user)
    proxy.plan("TransactWriteItems", Meanwhile(lambda: confirm_change(token_of(user))))

    changed, before = confirm_change(token_of(user))

    assert before
    assert (before.email, before.is_confirmed) == ("old@example.org", True)
    assert (changed.email, changes_of(user)) == (NEW, 3)


def test_following_a_link_fails_if_every_attempt_meets_another_change(proxy: FaultProxy) -> None:
    user = waiting_user()
    for number in range(9):
        edit = partial(edit_profile, full_name=f"Ann {number}")
        proxy.plan("TransactWriteItems", Meanwhile(lambda edit=edit: edit(again(user))))

    with pytest.raises(StaleUser):
        confirm_change(token_of(user))

    proxy.forget()
    assert again(user).awaited_email == NEW


# Other changes while one waits --------------------------------------------------------------------


def test_an_immediate_change_to_the_same_address_ends_the_waiting_one() -> None:
    user = waiting_user()
    email = "New@Example.ORG"

    change_email(user, email)

    assert again(user).email == email
    assert not again(user).is_confirmed
    assert not has_notes(user)
    assert guard_owner(NEW_KEY) == user.pk
    assert_guards_are_correct()


def test_a_change_whose_link_is_too_old_is_not_shown_and_not_made() -> None:
    user = waiting_user()
    token = token_of(user)
    with days_later(2.999):
        assert again(user).awaited_email == NEW

    with days_later():
        assert again(user).awaited_email is None
        assert refusal_of(lambda: confirm_change(token)) is BadLink
        # Also by a link that was made later.
        assert refusal_of(lambda: confirm_change(token_of(user))) is BadLink
        request_change(user, NEW)
        assert confirm_change(token_of(user))[0].email == NEW
    assert_guards_are_correct()


def test_an_address_that_version_0_1_reserved_for_another_account_is_free() -> None:
    put_reservation(NEW, make_user())

    user, _before = confirm_change(token_of(waiting_user()))

    assert guard_owner(NEW_KEY) == user.pk
