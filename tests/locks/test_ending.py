"""The end of a process: what it still holds is given back, in little time, and nothing else."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator

import pytest

from dynamo.clock import now
from dynamo.transactions import Transaction
from locks import heartbeats
from locks.exceptions import LeaseLost
from locks.lock import Lock
from tests.faults.kinds import CloseBefore
from tests.faults.proxy import FaultProxy
from tests.lock_workers import heard, started
from tests.locks.items import put, stored, taken
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

#: In a test that has not to wait for it.
BRIEFLY = 0.3


@pytest.fixture(autouse=True)
def _the_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # A machine that stands still uses up none of it.
    monkeypatch.setattr(heartbeats, "ENDING_SECONDS", 60.0)
    yield
    for lease in list(heartbeats._of_process._due):
        heartbeats._of_process.drop(lease)
    heartbeats._forget_all()


def end() -> None:
    """What the process does at its end."""
    heartbeats._of_process.end()


def is_free(name: str) -> bool:
    return "isReleased" in stored(name)


def test_a_process_that_ends_gives_its_lease_back() -> None:
    with started("hold", "a", 60) as [worker]:
        heard(worker)
        assert not is_free("a")
        assert worker.stdin is not None
        worker.stdin.write("end\n")

        assert worker.wait(60) == 0
    assert is_free("a")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_so_does_a_worker_of_multiprocessing_and_keeps_its_parents() -> None:
    ours = taken("ours")
    child = multiprocessing.get_context("fork").Process(target=taken, args=("theirs",))

    child.start()
    child.join(60)

    assert child.exitcode == 0
    assert is_free("theirs")
    assert not is_free("ours")
    ours.check()


def test_all_leases_are_given_back_and_each_is_over(requests_sent: Requests) -> None:
    leases = [taken(name) for name in "abc"]
    requests_sent.clear()

    end()

    assert requests_sent.operations == ["UpdateItem"] * 3
    for lease in leases:
        assert is_free(lease.name)
        with pytest.raises(LeaseLost, match="it was released"):
            lease.check()
        with pytest.raises(LeaseLost), Transaction() as write:
            lease.hold_in(write)


def test_what_another_holds_by_now_stays_his() -> None:
    taken("a")
    put("a", ownerName={"S": "another"}, recordVersionNumber={"S": "theirs"})
    taken("b")

    end()

    assert stored("a")["recordVersionNumber"] == {"S": "theirs"}
    assert not is_free("a")
    assert is_free("b")


def test_a_thread_that_takes_a_lock_meanwhile_does_not_get_it() -> None:
    end()

    with pytest.raises(LeaseLost, match="the process is ending"):
        Lock("a").acquire()
    assert is_free("a")


def test_without_dynamodb_the_end_is_not_put_off(
    proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "ENDING_SECONDS", BRIEFLY)
    for number in range(20):
        taken(f"{number}")
    proxy.plan("UpdateItem", CloseBefore(), times=10_000)
    began = now()

    end()

    # One after the other, each with its own patience, they would take a minute and a half.
    assert now() - began < 20
    proxy.forget()
    assert not is_free("19")


def test_a_renewal_that_is_not_answered_does_not_put_off_the_end_or_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heartbeats, "ENDING_SECONDS", BRIEFLY)
    waiting = taken("a")
    with waiting._writing:
        end()

    assert not is_free("a")
    with pytest.raises(LeaseLost):
        waiting.check()
