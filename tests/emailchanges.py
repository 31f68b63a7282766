"""Email addresses that are reserved until a link is followed, and time that passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.core.management import call_command

from accounts.emails import links
from accounts.emails.change import PURPOSE, request_change
from accounts.models import User
from dynamo.unique import guards
from tests.factories import assert_guards_match_users, make_user, stored_items

NEW = "new@example.org"
NEW_KEY = f"email#{NEW}"

DAY = 24 * 60 * 60


def token_of(user: User) -> str:
    """The token of the link that was sent for the change that waits."""
    return links.make(PURPOSE, user.pk, str(user.pending_reservation))


def told_by_link(user: User) -> list[str]:
    """Whom and which change the link names; two tokens of it differ in the second they are made."""
    return links.read(PURPOSE, token_of(user), 2)


def waiting_user(new: str = NEW, **values: str) -> User:
    """An account whose address changes to `new` once its link is followed."""
    user = make_user(**values)
    request_change(user, new)
    return user


def again(user: User) -> User:
    """The account as it is stored now."""
    return User.get(user.pk)


@contextmanager
def days_later(days: float = links.VALID_DAYS) -> Iterator[None]:
    """Let reservations be so much older; by default they have lapsed this very second."""
    now = guards.now() + int(days * DAY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guards, "now", lambda: now)
        yield


def link_of_days_ago(user: User, days: float) -> str:
    """The token as it would be if it had been made so long ago."""
    made_at = time.time() - days * DAY
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: made_at)
        return token_of(user)


def assert_all_is_well() -> None:
    """The rule that always holds, by the tests' own look and by the command."""
    assert_guards_match_users()
    call_command("checkguards", "--json")  # a CommandError where it finds anything


def assert_changes_nothing(act: Callable[[], object], error: type[Exception]) -> None:
    """It is refused with `error`, and all is stored as before."""
    before = stored_items()
    with pytest.raises(error):
        act()
    assert stored_items() == before
