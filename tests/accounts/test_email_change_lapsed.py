"""A change whose link nobody followed in three days: it counts as none, and holds nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from accounts.emails.change import (
    cancel_change,
    confirm_change,
    request_change,
)
from accounts.exceptions import EmailTaken
from accounts.models import User
from accounts.services import change_email, change_username, delete, find_user
from tests.emailchanges import (
    NEW,
    NEW_KEY,
    again,
    assert_all_is_well,
    assert_changes_nothing,
    days_later,
    token_of,
    waiting_user,
)
from tests.factories import (
    make_user,
    stored_items,
)

pytestmark = pytest.mark.usefixtures("engine")


def test_a_lapsed_change_is_shown_nowhere_and_its_address_is_anybodys() -> None:
    user = waiting_user()

    with days_later():
        assert again(user).awaited_email is None
        assert not User.unique.is_taken("email", NEW)
        taker = make_user(email=NEW)
        assert find_user(NEW) == taker
        assert stored_items()[NEW_KEY] == {"pk": {"S": NEW_KEY}, "owner": {"S": taker.pk}}
        assert_all_is_well()


def test_until_then_it_is_not() -> None:
    user = waiting_user()

    with days_later(2.999):
        assert again(user).awaited_email == NEW
        assert_changes_nothing(lambda: make_user(email=NEW), EmailTaken)


TAKES = {
    "register": lambda: make_user(email=NEW),
    "change_email": lambda: change_email(make_user(), NEW),
    "request_change": lambda: waiting_user(),
}


@pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)
@pytest.mark.parametrize(
    "act",
    [
        delete,
        cancel_change,
        lambda user: change_email(user, "third@example.org"),
        lambda user: request_change(user, "third@example.org"),
        lambda user: change_username(user, "Somebody"),
    ],
    ids=["delete", "cancel", "change", "replace", "rename"],
)
def test_an_account_whose_lapsed_reservation_was_taken_is_held_by_nothing(
    take: Callable[[], object], act: Callable[[User], None]
) -> None:
    user = waiting_user()

    with days_later():
        take()
        taken = stored_items()[NEW_KEY]
        assert taken["owner"]["S"] != user.pk

        act(user)

        assert stored_items()[NEW_KEY] == taken
        assert_all_is_well()


@pytest.mark.parametrize(("days", "outcome"), [(2, "rejected"), (3, "created")])
def test_an_import_foresees_what_becomes_of_a_reserved_address(
    days: int, outcome: str, tmp_path: Path
) -> None:
    waiting_user()
    file = tmp_path / "users.csv"
    file.write_text(f"username,email\nanna,{NEW}\n")
    out = StringIO()

    with days_later(days), suppress(CommandError):
        call_command("importusers", str(file), "--dry-run", "--json", stdout=out)

    assert json.loads(out.getvalue())[outcome] == 1


def test_an_account_can_have_its_own_lapsed_reservation_again() -> None:
    user = waiting_user()

    with days_later():
        request_change(user, NEW)
        assert confirm_change(token_of(user)).user.email == NEW
        assert_all_is_well()


def test_an_account_is_told_that_its_lapsed_reservation_was_taken_when_it_asks_again() -> None:
    user = waiting_user()

    with days_later():
        make_user(email=NEW)
        assert_changes_nothing(lambda: request_change(user, NEW), EmailTaken)
        assert_changes_nothing(lambda: change_email(user, NEW), EmailTaken)
