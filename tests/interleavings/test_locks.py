"""Leases taken, renewed and given back at once, in every order of requests, answers and time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from dynamo._internal.client.sending import send
from dynamo.transactions import Transaction
from locks._internal.leases import Lease
from locks._internal.registry import State, break_lock
from locks.exceptions import LockTaken
from sequences.models import Counter
from tests.interleavings.conftest import LOSSES, Explore, runs_of
from tests.interleavings.interception import Clock
from tests.interleavings.locks import (
    LEASE_SECONDS,
    NAME,
    Leases,
    LockScenario,
    answers,
    lock,
    noted,
    try_once,
    wait_and_take,
)


@pytest.fixture
def leases() -> Iterator[Leases]:
    with noted() as each:
        yield each


@pytest.fixture
def clock() -> Clock:
    return Clock()


def absent() -> None:
    """The lock was never taken."""


def released() -> None:
    wait_and_take().release()


def held() -> Lease:
    return wait_and_take()


def take(_lease: Any) -> Lease | None:
    return try_once()


def wait(_lease: Any) -> Lease:
    return wait_and_take()


def wait_longer(_lease: Any) -> Lease:
    """Wait for the lease of a holder that renews once while it is watched, and then dies."""
    return lock(wait_seconds=2 * LEASE_SECONDS + 1).acquire()


def take_and_release(_lease: Any) -> str:
    lease = wait_and_take()
    lease.renew()
    lease.release()
    return "done"


def renew(lease: Lease) -> str:
    lease.renew()
    return "renewed"


def release(lease: Lease) -> str:
    lease.release()
    return "released"


def break_it(_lease: Any) -> object:
    return break_lock(NAME)


@dataclass(frozen=True)
class Race:
    """Operations on the lease of `begin`, and every way in which they may end (`answers`).

    `quick` are the faults of `explore` that `make test` tries, `slow` those of `make test-slow`.
    """

    begin: Callable[[], Lease | None]
    operations: list[Callable[[Any], object]]
    ends: set[str]
    quick: dict[str, Any] | None
    slow: dict[str, Any] | None = None


FINE, FINE_LOSS, LOSS = {"fine": True}, {"fine": True, "losses": 1}, {"losses": 1}
ONE_OF_TWO = {"held none", "none held"}

RACES = {
    "two tries for a new lock": Race(absent, [take, take], ONE_OF_TWO, FINE, FINE_LOSS),
    "two tries for a released lock": Race(released, [take, take], ONE_OF_TWO, FINE, FINE_LOSS),
    # Nothing renews the lease of the first: a waiter that waits for long enough gets the next one.
    "two waiters for a holder that died": Race(
        held,
        [wait, wait],
        {*("held held", "held LockTaken", "LockTaken held"), *("held LeaseLost", "LeaseLost held")},
        {},
        FINE,
    ),
    "a renewal and a waiter": Race(
        held, [renew, wait], {"done LockTaken", "done held", "LeaseLost held"}, FINE
    ),
    "a release and a try": Race(held, [release, take], {"done held", "done none"}, FINE, FINE_LOSS),
    # A lost request to take the lock may arrive when its caller has given up: the lease expires.
    # And the lease of a holder that waits for its answer expires as well.
    "a release and a waiter": Race(
        held,
        [release, wait],
        {"done held", "done LockTaken", "LeaseLost held", "Unavailable held"},
        {},
        LOSS,
    ),
    "a holder that dies and a waiter": Race(
        absent,
        [take_and_release, wait_longer],
        {"done held", "done dead", "dead held", "LeaseLost held", "LeaseLost dead"},
        {"deaths": 1},
    ),
    "a renewal and a break": Race(
        held, [renew, break_it], {"done done", "LeaseLost done"}, {}, LOSS
    ),
}


@pytest.mark.parametrize(("race", "faults"), runs_of(RACES))
def test_a_lock_has_one_holder_and_calls_end_in_the_ways_that_are_allowed_and_no_other(
    explore: Explore, leases: Leases, clock: Clock, race: Race, faults: dict[str, Any]
) -> None:
    reached = set()

    def make() -> LockScenario:
        scenario = LockScenario(leases)
        lease = race.begin()
        scenario.operations = [partial(act, lease) for act in race.operations]

        def expects(outcomes: list[Any]) -> None:
            end = " ".join(answers(outcomes))
            assert end in race.ends
            reached.add(end)

        scenario.expects = expects
        return scenario

    explore(make, clock=clock, **faults)

    # Some ends need all of the faults.
    assert reached == race.ends or faults != (race.slow or race.quick)


WRITTEN = {"counterName": {"S": "written"}}
NOT_TAKEN = "not taken"


def written_items() -> list[Any]:
    """What is stored in the table that is written under the lease."""
    items: list[Any] = send("Scan", {"TableName": Counter.table()})["Items"]
    return items


@pytest.mark.parametrize("losses", LOSSES)
def test_nothing_is_written_under_a_lease_that_is_lost(
    explore: Explore, leases: Leases, clock: Clock, losses: int
) -> None:
    """Its transaction commits before the next holder has the lock, or not at all."""

    def write(lease: Lease) -> str:
        with Transaction() as transaction:
            lease.hold_in(transaction)
            written = Counter("written")
            transaction.put(written, Counter.name.does_not_exist(), otherwise=ValueError())
        return "written"

    def take_and_look() -> object:
        try:
            wait_and_take()
        except LockTaken:
            # By its own lost request, which arrived late.
            return NOT_TAKEN
        return written_items()

    def make() -> LockScenario:
        scenario = LockScenario(leases)
        send("DeleteItem", {"TableName": Counter.table(), "Key": WRITTEN})
        lease = held()
        scenario.operations = [lambda: write(lease), take_and_look]

        def expects(outcomes: list[Any]) -> None:
            written = answers(outcomes)[0]
            # The answer to a lost request may come too late, while a whole lease passes.
            assert written in {"done", "LeaseLost"} | ({"Unavailable"} if losses else set())
            if written != "Unavailable":
                assert written_items() == ([WRITTEN] if written == "done" else [])
            if outcomes[1] != NOT_TAKEN:
                assert outcomes[1] == written_items()
            seen.add(written)

        scenario.expects = expects
        return scenario

    seen: set[str] = set()
    explore(make, clock=clock, fine=True, losses=losses)

    assert seen >= {"done", "LeaseLost"}


# A lock that is broken has a holder that does not know it yet, so its leases may overlap.
@pytest.mark.slow
@pytest.mark.parametrize("is_broken", [True, False])
def test_a_lock_is_taken_under_a_higher_fencing_token_while_it_is_broken_or_time_passes(
    explore: Explore, leases: Leases, clock: Clock, is_broken: bool
) -> None:
    def make() -> LockScenario:
        scenario = LockScenario(leases)
        scenario.breaks = is_broken
        lease = held()
        half = partial(clock.pass_seconds, LEASE_SECONDS / 2)
        scenario.operations = [
            partial(renew, lease),
            *([lambda: break_lock(NAME), try_once] if is_broken else [wait_and_take, half]),
        ]

        def expects(outcomes: list[Any]) -> None:
            if is_broken:
                assert answers(outcomes)[0] in {"done", "LeaseLost"}
                assert outcomes[1] == State.HELD
            for taken in (each for each in outcomes if isinstance(each, Lease)):
                assert taken.fence > lease.fence

        scenario.expects = expects
        return scenario

    explore(make, clock=clock, losses=1)
