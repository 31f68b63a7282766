"""The reply is lost, or the request: each step of a change that waits still happens once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command

from accounts.emails.change import Confirmed, cancel_change, confirm_change, request_change
from accounts.models import User
from accounts.services import change_email, delete
from tests import engines
from tests.emailchanges import NEW, again, token_of, told_by_link, waiting_user
from tests.emptying import empty
from tests.factories import (
    assert_guards_match_users,
    changes_of,
    make_user,
    stored_items,
    stored_user,
)
from tests.faults.kinds import CloseBefore, DropReply, Meanwhile, TimeOut
from tests.faults.proxy import FaultProxy, through

LOST = {"reply": DropReply(), "request": CloseBefore(), "patience": TimeOut()}
OLD = "old@example.org"
THIRD = "third@example.org"

Stored = tuple[str, str | None]

# What is done to an account that waits for NEW; what is stored then: its address, and the awaited.
STEPS: dict[str, tuple[Callable[[User], object], Stored | None]] = {
    "replace": (lambda user: request_change(user, THIRD), (OLD, THIRD)),
    "renew": (lambda user: request_change(user, NEW), (OLD, NEW)),
    "confirm": (lambda user: confirm_change(token_of(user)), (NEW, None)),
    "cancel": (cancel_change, (OLD, None)),
    "take": (lambda user: change_email(user, NEW), (NEW, None)),
    "change": (lambda user: change_email(user, THIRD), (THIRD, None)),
    "respell": (lambda user: change_email(user, "Old@example.org"), ("Old@example.org", None)),
    "delete": (delete, None),
}
each_step = pytest.mark.parametrize("name", STEPS)


def assert_done_once(name: str, user: User, result: object) -> None:
    """What was asked for is stored, the guards are right, and the object in hand is as stored."""
    assert_guards_match_users()
    call_command("checkguards", "--json")  # a CommandError where it finds anything
    stored = STEPS[name][1]
    if stored is None:
        assert stored_items() == {}
        return
    read = again(user)
    assert (read.email, read.awaited_email, changes_of(user)) == (*stored, 2)
    in_hand = result.user if isinstance(result, Confirmed) else user
    assert in_hand.to_dynamodb_dict() == stored_user(user.pk)
    if isinstance(result, Confirmed):
        # So the old address is told.
        assert result.former == OLD


@each_step
@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
@pytest.mark.fault_of("moto", "ignores request tokens")
def test_each_step_happens_once_whatever_was_lost(proxy: FaultProxy, name: str, lost: Any) -> None:
    user = waiting_user(email=OLD)
    proxy.forget()
    proxy.plan("TransactWriteItems", lost)

    result = STEPS[name][0](user)

    assert proxy.count("TransactWriteItems") >= 2
    assert_done_once(name, user, result)


# The engine forgets its request tokens, as DynamoDB does after 10 minutes -------------------------


@each_step
def test_each_step_recognises_its_own_work_when_the_engine_restarted_meanwhile(
    own_engine: tuple[engines.Durable, FaultProxy], name: str
) -> None:
    engine, proxy = own_engine
    with through(proxy):
        empty(User.table())
        user = waiting_user(email=OLD)
        proxy.forget()
        proxy.plan("TransactWriteItems", DropReply())
        proxy.plan("TransactWriteItems", Meanwhile(engine.restart))

        result = STEPS[name][0](user)

        assert proxy.count("TransactWriteItems") >= 2
        assert_done_once(name, user, result)


def test_the_second_try_of_a_request_mails_the_link_that_is_stored(proxy: FaultProxy) -> None:
    user = make_user()
    proxy.plan("TransactWriteItems", DropReply())

    request_change(user, NEW)

    assert told_by_link(user) == told_by_link(again(user))


def test_who_follows_a_link_just_after_another_tells_the_old_address_too(proxy: FaultProxy) -> None:
    # The other may have died before telling it.
    user = waiting_user(email=OLD)
    proxy.plan("TransactWriteItems", Meanwhile(lambda: confirm_change(token_of(user))))

    confirmed = confirm_change(token_of(user))

    assert (confirmed.user.email, confirmed.former) == (NEW, OLD)
    assert changes_of(user) == 2
