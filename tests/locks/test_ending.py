"""The end of a process: it releases the leases that it still holds, in bounded time."""

import multiprocessing
from collections.abc import Iterator

import pytest

from dynamo.runtime.clock import now
from locks import LeaseLost, Lock, leases
from tests.commands import run_for_real
from tests.faults.kinds import CloseBefore
from tests.faults.proxy import FaultProxy
from tests.locks.items import put, stored, taken
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

#: For tests that would otherwise wait for it.
BRIEFLY = 0.3


@pytest.fixture(autouse=True)
def _the_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # So long that a stall of the machine does not use it up.
    monkeypatch.setattr(leases, "ENDING_SECONDS", 60.0)
    yield
    leases._of_process().drop_all()
    leases._of_process.reset()


def end() -> None:
    """Do what the process does at its end."""
    leases._of_process().end()


def is_free(name: str) -> bool:
    return "isReleased" in stored(name)


def test_a_process_that_ends_releases_its_lease() -> None:
    code = "from locks import Lock; print(Lock('a', lease_seconds=60).acquire().fence)"

    fence, err, ended = run_for_real("shell", "--no-imports", "-c", code)

    assert (err, ended) == ("", 0)
    assert stored("a")["fencingToken"] == {"N": fence.strip()}
    assert is_free("a")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_worker_of_multiprocessing_that_ends_releases_its_own_lease_only() -> None:
    ours = taken("ours")
    child = multiprocessing.get_context("fork").Process(target=taken, args=("theirs",))

    child.start()
    child.join(60)

    assert child.exitcode == 0
    assert is_free("theirs")
    assert not is_free("ours")
    ours.check()


def test_the_end_releases_all_leases_and_no_lock_of_another_holder(requests_sent: Requests) -> None:
    taken("lost")
    put("lost", ownerName={"S": "another"}, recordVersionNumber={"S": "theirs"})
    before = stored("lost")
    leases = [taken(name) for name in "abc"]
    requests_sent.clear()

    end()

    assert requests_sent.operations == ["UpdateItem"] * 4
    assert stored("lost") == before
    for lease in leases:
        assert is_free(lease.name)
        with pytest.raises(LeaseLost, match="it was released"):
            lease.check()


def test_no_lock_can_be_acquired_while_the_process_ends() -> None:
    end()

    with pytest.raises(LeaseLost, match=r"'a' .* is lost: the process is ending"):
        Lock("a").acquire()
    assert is_free("a")


def test_the_end_does_not_wait_for_an_engine_that_is_down(
    proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "ENDING_SECONDS", BRIEFLY)
    for number in range(20):
        taken(f"{number}")
    proxy.plan("UpdateItem", CloseBefore(), times=10_000)
    began = now()

    end()

    # With a deadline each, one after another, they would take 90 seconds.
    assert now() - began < 20
    proxy.forget()
    assert not is_free("19")


def test_the_end_does_not_wait_for_a_renewal_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "ENDING_SECONDS", BRIEFLY)
    waiting = taken("a")
    with waiting._writing:
        end()

    assert not is_free("a")
    with pytest.raises(LeaseLost):
        waiting.check()
