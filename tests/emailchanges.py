"""Changes of an email address that wait for their link, and checks of what is stored."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command

from accounts.emails import links
from accounts.emails.links import request_change
from accounts.exceptions import AccountError
from accounts.models import User
from tests.factories import assert_guards_match_users, make_user, stored_items

NEW = "new@example.org"
NEW_KEY = f"email#{NEW}"

DAY = 24 * 60 * 60


def token_of(user: User) -> str:
    """The token of the link to the waiting change."""
    return links.make(links.CHANGE, user.pk, str(user.pending_id))


def waiting_user(new: str = NEW, **values: str) -> User:
    """An account whose email address changes to `new` when its link is followed."""
    user = make_user(**values)
    request_change(user, new)
    return user


def again(user: User) -> User:
    """The account as it is stored now."""
    return User.get(user.pk)


@contextmanager
def days_later(days: float = links.VALID_DAYS) -> Iterator[None]:
    """Let the time of day be so much later. By default links and their changes lapse then."""
    now = time.time() + days * DAY
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: now)
        yield


def assert_guards_are_correct() -> None:
    """Every user has its guards and every guard its user, also by the command `checkguards`."""
    assert_guards_match_users()
    call_command("checkguards", "--json")  # a CommandError if it finds anything


def refusal_of(act: Callable[[], object]) -> type[Exception] | None:
    """The error that `act` raises, after a check that nothing stored has changed."""
    before = stored_items()
    try:
        act()
    except (AccountError, ValidationError) as error:
        refusal = type(error)
    else:
        return None
    assert stored_items() == before
    return refusal
