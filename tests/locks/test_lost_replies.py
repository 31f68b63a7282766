"""Locks on a bad day: what was carried out though its reply was lost is recognised."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dynamo.client.sending import send
from dynamo.exceptions import ConditionFailed, Unavailable
from locks import heartbeats
from locks.exceptions import LeaseLost
from locks.lock import Lock, claim_once
from tests.clocks import LeapingClock
from tests.faults.kinds import Answer, CloseBefore, DropReply, Fault, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.locks.items import abandoned, beating, put, stored, taken
from tests.waiting import wait_until

LOST = {
    "reply lost": DropReply(),
    "500 after the work": Answer(500, "InternalServerError", carried_out=True),
    "request lost": CloseBefore(),
    "500 instead of the work": Answer(500, "InternalServerError"),
    "throttled": Answer(400, "ThrottlingException"),
}
lost = pytest.mark.parametrize("fault", LOST.values(), ids=LOST.keys())


@lost
def test_an_acquisition_is_recognised(proxy: FaultProxy, fault: Fault) -> None:
    proxy.plan("UpdateItem", fault)

    with Lock("a", wait_seconds=0, lease_seconds=600) as lease:
        assert lease.fence == int(stored("a")["fencingToken"]["N"])
        lease.check()
    assert proxy.count("UpdateItem") == 3


@lost
def test_a_take_over_is_recognised_and_counts_once(proxy: FaultProxy, fault: Fault) -> None:
    dead = abandoned("a", lease_seconds=0.3)
    proxy.plan("UpdateItem", fault, when=lambda body: ":seen" in body["ExpressionAttributeValues"])

    lease = taken("a", poll_seconds=0.02, wait_seconds=60)

    assert lease.fence == dead.fence + 1
    lease.renew()


@lost
def test_a_renewal_is_recognised(proxy: FaultProxy, fault: Fault) -> None:
    lease = taken("a")
    proxy.plan("UpdateItem", fault)

    lease.renew()

    lease.renew()
    assert proxy.count("UpdateItem") == 4


@lost
def test_a_release_is_recognised(proxy: FaultProxy, fault: Fault) -> None:
    lease = taken("a")
    proxy.plan("UpdateItem", fault)

    lease.release()

    assert lease.released
    assert stored("a")["isReleased"] == {"S": "1"}


@lost
def test_a_removal_is_recognised(proxy: FaultProxy, fault: Fault) -> None:
    lease = taken("a")
    proxy.plan("DeleteItem", fault)

    lease.release(remove=True)

    assert lease.released
    assert stored("a") == {}


@lost
def test_a_claim_is_recognised(proxy: FaultProxy, fault: Fault) -> None:
    proxy.plan("PutItem", fault)

    assert claim_once("a")
    assert not claim_once("a")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("arrives", [True, False])
def test_a_lease_outlives_renewals_whose_replies_never_come(
    proxy: FaultProxy, arrives: bool
) -> None:
    lease = taken("a")
    for _time in range(2):
        proxy.plan(
            "UpdateItem", Answer(500, "InternalServerError", carried_out=arrives), times=10_000
        )
        with pytest.raises(Unavailable):
            lease.renew()
        proxy.forget()
    lease.check()

    lease.renew()
    lease.release()

    assert stored("a")["isReleased"] == {"S": "1"}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("arrives", [True, False])
def test_a_release_whose_reply_never_came_can_be_repeated(proxy: FaultProxy, arrives: bool) -> None:
    lease = taken("a")
    proxy.plan("UpdateItem", Answer(500, "InternalServerError", carried_out=arrives), times=10_000)
    with pytest.raises(Unavailable):
        lease.release()
    proxy.forget()

    assert not lease.released
    lease.release()

    assert lease.released
    assert stored("a")["isReleased"] == {"S": "1"}


@pytest.mark.usefixtures("impatient")
def test_from_its_release_on_a_lease_is_over_though_no_answer_comes(proxy: FaultProxy) -> None:
    lease = taken("a")
    proxy.plan("UpdateItem", Answer(500, "InternalServerError", carried_out=True), times=10_000)
    with pytest.raises(Unavailable):
        lease.release()
    proxy.forget()
    assert Lock("a").try_acquire() is not None

    with pytest.raises(LeaseLost, match="it was released"):
        lease.check()


def test_a_lease_is_over_while_its_release_is_under_way(proxy: FaultProxy) -> None:
    lease = taken("a")
    refused = threading.Event()

    def try_to_go_on() -> None:
        with pytest.raises(LeaseLost):
            lease.check()
        refused.set()

    proxy.plan("UpdateItem", Meanwhile(try_to_go_on))
    lease.release()

    assert refused.is_set()


@pytest.mark.usefixtures("impatient")
def test_a_body_whose_release_gets_no_answer_ends_well_and_it_is_said(
    proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    with Lock("a", lease_seconds=600):
        proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=10_000)

    proxy.forget()
    assert "isReleased" not in stored("a")
    assert [each for each in caplog.messages if "'a' was not released" in each]


@pytest.mark.usefixtures("impatient")
def test_an_exception_comes_out_though_the_release_gets_no_answer(proxy: FaultProxy) -> None:
    def work() -> None:
        with Lock("a"):
            proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=10_000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as error:
        work()

    assert "no answer" in error.value.__notes__[0]


@pytest.mark.usefixtures("impatient")
def test_a_lost_lease_is_said_though_its_release_gets_no_answer(proxy: FaultProxy) -> None:
    def work() -> None:
        with Lock("a") as lease:
            lease._sent_at -= 20
            proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=10_000)

    with pytest.raises(LeaseLost):
        work()


@pytest.mark.usefixtures("impatient")
def test_an_acquisition_that_never_gets_an_answer_leaves_no_lease(proxy: FaultProxy) -> None:
    proxy.plan("UpdateItem", Answer(500, "InternalServerError", carried_out=True), times=10_000)
    with pytest.raises(Unavailable):
        Lock("a", lease_seconds=0.4).acquire()
    proxy.forget()

    # Nobody renews it, so it lapses.
    taken("a", poll_seconds=0.02, wait_seconds=60)
    assert len(heartbeats._of_process._due) == 1


def test_an_answer_that_comes_after_the_lease_is_no_lease(
    proxy: FaultProxy, clock: LeapingClock
) -> None:
    proxy.plan("UpdateItem", Meanwhile(lambda: clock.leap(60)))

    lease = taken("a", lease_seconds=60)

    lease.check()
    assert proxy.count("UpdateItem") == 2


def test_answers_slower_than_a_lease_are_said(proxy: FaultProxy, clock: LeapingClock) -> None:
    proxy.plan("UpdateItem", Meanwhile(lambda: clock.leap(60)), times=10)

    with pytest.raises(LeaseLost):
        taken("a", lease_seconds=60)

    assert stored("a")["isReleased"] == {"S": "1"}


def test_a_thread_that_cannot_start_leaves_the_lock_free(
    proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: not beating())
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "lock heartbeats":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        Lock("a").acquire()

    assert stored("a")["isReleased"] == {"S": "1"}
    assert proxy.count("UpdateItem") == 2


def _requests(proxy: FaultProxy) -> list[dict[str, Any]]:
    return [copy.deepcopy(seen.body) for seen in proxy.seen if seen.operation == "UpdateItem"]


@pytest.mark.parametrize("since", ["renewed", "released", "taken by another", "removed"])
def test_a_delayed_duplicate_of_an_old_renewal_changes_nothing(
    proxy: FaultProxy, since: str
) -> None:
    lease = taken("a")
    lease.renew()
    duplicate = _requests(proxy)[-1]
    if since == "renewed":
        lease.renew()
    else:
        lease.release(remove=since == "removed")
    if since == "taken by another":
        taken("a", owner="another")
    before = stored("a")

    with pytest.raises(ConditionFailed):
        send("UpdateItem", duplicate)

    assert stored("a") == before


def test_a_delayed_duplicate_of_an_acquisition_takes_no_held_lock(proxy: FaultProxy) -> None:
    taken("a").release()
    duplicate = _requests(proxy)[0]
    lease = taken("a")

    with pytest.raises(ConditionFailed):
        send("UpdateItem", duplicate)
    lease.renew()


def test_a_duplicate_that_takes_a_free_lock_for_nobody_lapses(proxy: FaultProxy) -> None:
    first = taken("a")
    first.release()
    duplicate = _requests(proxy)[0]
    values = duplicate["ExpressionAttributeValues"]
    [lease_duration] = [name for name in values if values[name] == {"S": "600000"}]
    # As if the lease had been a short one, which could end before its release.
    values[lease_duration] = {"S": "300"}
    send("UpdateItem", duplicate, repeatable=True)
    assert Lock("a").try_acquire() is None

    lease = taken("a", poll_seconds=0.02, wait_seconds=60)

    assert lease.fence > first.fence
    with pytest.raises(LeaseLost):
        first.check()


def test_a_lost_reply_of_an_acquisition_that_another_has_overtaken_is_no_lease(
    proxy: FaultProxy,
) -> None:
    proxy.plan("UpdateItem", DropReply())
    proxy.plan("UpdateItem", Meanwhile(lambda: put("a", ownerName={"S": "another"})))

    assert Lock("a").try_acquire() is None


def test_a_waiter_looks_again_where_the_engine_does_not_say_what_stands(proxy: FaultProxy) -> None:
    taken("a", owner="the holder")
    refusal = Answer(400, "ConditionalCheckFailedException")
    proxy.plan("UpdateItem", refusal)

    assert Lock("a").try_acquire() is None
    assert proxy.count("GetItem") == 1


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_many_threads_that_lose_replies_are_never_two(proxy: FaultProxy) -> None:
    lock = Lock("a", poll_seconds=0.01, wait_seconds=300, lease_seconds=60)
    inside: list[int] = []

    def work(number: int) -> None:
        if number % 3 == 0:
            proxy.plan("UpdateItem", DropReply())
        with lock:
            inside.append(number)
            assert inside == [number]
            inside.clear()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(30)))


@pytest.mark.parametrize("remove", [True, False])
def test_a_release_whose_reply_is_lost_may_have_made_room_for_another(
    proxy: FaultProxy, remove: bool
) -> None:
    lease = taken("a")
    after: list[Any] = []
    operation = "DeleteItem" if remove else "UpdateItem"
    proxy.plan(operation, DropReply())
    proxy.plan(
        operation, Meanwhile(lambda: after.append(taken("a"))), when=lambda body: not _takes(body)
    )

    lease.release(remove=remove)

    assert lease.released
    after[0].renew()


def _takes(body: dict[str, Any]) -> bool:
    return ":clock" in body.get("ExpressionAttributeValues", {})


@pytest.mark.usefixtures("impatient")
def test_a_release_that_may_have_arrived_is_repeated_to_no_harm(proxy: FaultProxy) -> None:
    lease = taken("a")
    proxy.plan("UpdateItem", Answer(500, "InternalServerError", carried_out=True), times=10_000)
    with pytest.raises(Unavailable):
        lease.release()
    proxy.forget()
    theirs = taken("a")

    lease.release()

    theirs.renew()
