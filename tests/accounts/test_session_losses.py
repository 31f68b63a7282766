"""The reply is lost, or comes late: each write of a session happens once, and ends stay ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from accounts.models import User
from accounts.services import change_password
from accounts.sessions import services as sessions
from dynamo.client.sending import send
from dynamo.exceptions import ConditionFailed
from tests.factories import make_user, stored_items
from tests.faults.kinds import CloseBefore, DropReply, Meanwhile, TimeOut
from tests.faults.proxy import FaultProxy
from tests.session_maps import begun, let_pass, only, read_for, stored_ids

each_loss = pytest.mark.parametrize(
    "lost", [DropReply(), CloseBefore(), TimeOut()], ids=["reply", "request", "patience"]
)


@each_loss
def test_a_sign_in_to_a_full_account_is_noted_once_whatever_was_lost(
    proxy: FaultProxy, lost: Any
) -> None:
    user = make_user()
    ids = [begun(user) for _ in range(sessions.MOST)]
    proxy.plan("UpdateItem", lost)

    newest = begun(user)

    assert newest in stored_ids(user)
    assert len(stored_ids(user) - set(ids)) == 1
    assert len(stored_ids(user)) == sessions.MOST


@each_loss
@pytest.mark.parametrize("way", ["end", "end_others", "own"])
def test_a_session_is_ended_whatever_was_lost(proxy: FaultProxy, lost: Any, way: str) -> None:
    user = make_user()
    mine, other = begun(user), begun(user)
    page = read_for(user, mine)
    ends: dict[str, Callable[[], None]] = {
        "end": partial(sessions.end, page, other),
        "end_others": partial(sessions.end_others, page),
        "own": partial(sessions.end, page, mine),
    }
    proxy.plan("UpdateItem", lost)

    ends[way]()

    assert stored_ids(user) == ({other} if way == "own" else {mine})


@each_loss
def test_to_be_seen_is_noted_whatever_was_lost(proxy: FaultProxy, lost: Any) -> None:
    user = make_user()
    let_pass(user, begun(user), "seenAt", 3600)
    proxy.plan("UpdateItem", lost)

    sessions.seen(User.get(user.pk), only(user), address="")

    assert time.time() - only(user).seen_at.timestamp() < 60


@each_loss
def test_a_password_ends_the_other_sessions_whatever_was_lost(proxy: FaultProxy, lost: Any) -> None:
    user = make_user()
    mine, _other = begun(user), begun(user)
    proxy.plan("UpdateItem", lost)

    change_password(read_for(user, mine), "another good password")

    assert stored_ids(user) == {mine}


def test_a_session_ended_between_a_lost_reply_and_the_second_try_stays_ended(
    proxy: FaultProxy,
) -> None:
    user = make_user()
    mine = begun(user)
    proxy.plan("UpdateItem", DropReply())
    proxy.plan("UpdateItem", Meanwhile(lambda: sessions.end(User.get(user.pk), mine)))

    change_password(read_for(user, mine), "another good password")

    assert stored_ids(user) == set()


def test_a_late_double_of_any_write_brings_no_ended_session_back(proxy: FaultProxy) -> None:
    user = make_user()
    proxy.forget()
    mine = begun(user)
    let_pass(user, mine, "seenAt", 3600)
    sessions.seen(User.get(user.pk), only(user), address="")
    other = begun(user)
    change_password(read_for(user, mine), "another good password")
    sessions.end(User.get(user.pk), mine)
    late = [seen.body for seen in proxy.seen if seen.operation == "UpdateItem"]
    before = stored_items()

    for body in late:
        if ":passed" in body.get("ExpressionAttributeValues", {}):
            continue  # the test's own
        with pytest.raises(ConditionFailed):
            send("UpdateItem", body)

    assert stored_items() == before
    assert other not in stored_ids(user)
