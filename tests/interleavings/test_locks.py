"""Leases taken, renewed and given back at once, in every order of requests, answers and time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from dynamo import DynamoError, Transaction
from locks import Lease, Lock, LockTaken, leases
from locks.models import LockItem
from locks.registry import State, break_lock
from locks.requests import read
from sequences.models import Counter
from tests.emptying import empty
from tests.interleavings.conftest import LOSSES, Explore, runs_of
from tests.interleavings.interception import Clock
from tests.interleavings.operations import DEAD
from tests.interleavings.scheduler import Scenario
from tests.items import scanned

NAME, LEASE_SECONDS = "report", 20.0


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Lease]:
    """Every lease that is taken. None is renewed unless an operation does it."""
    kept: list[Lease] = []
    monkeypatch.setattr(leases, "keep", kept.append)
    return kept


@pytest.fixture
def clock() -> Clock:
    return Clock()


def of_lock(
    kept: list[Lease],
    begin: Callable[[], Lease | None],
    operations: Sequence[Callable[[Any], object]],
    expects: Callable[[list[Any]], None],
    *,
    is_broken: bool = False,
) -> Scenario:
    """`operations` on the lease of `begin`. Before it the lock was never taken.

    A lock that `is_broken` has a holder that does not know it yet, so its leases may overlap.
    """
    empty(LockItem.table())
    kept.clear()
    lease = begin()

    def always(wrote: bool) -> None:
        fences = [item.fence for item in kept]
        if not is_broken:
            assert sum(item.remaining_seconds > 0 for item in kept) <= 1
            assert fences == sorted(set(fences))
        if wrote and kept:
            stored = read(NAME)
            assert stored is not None
            assert (stored.fence or 0) >= max(fences)

    def afterwards(outcomes: list[Any]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, DynamoError):
                raise outcome
        expects(outcomes)

    return Scenario([partial(act, lease) for act in operations], afterwards, always)


def word(outcome: Any) -> str:
    """An outcome in a word: held, none, dead, the name of the error, otherwise done."""
    if isinstance(outcome, Exception):
        return type(outcome).__name__
    if isinstance(outcome, Lease):
        return "held"
    return "none" if outcome is None else DEAD if outcome == DEAD else "done"


def lock(wait_seconds: float = LEASE_SECONDS + 1) -> Lock:
    """The lock of one operation; a waiter reads it again only when the lease may have expired."""
    return Lock(NAME, lease_seconds=LEASE_SECONDS, wait_seconds=wait_seconds, poll_seconds=1000)


def absent() -> None:
    """The lock was never taken."""


def released() -> None:
    lock().acquire().release()


def held() -> Lease:
    return lock().acquire()


def take(_lease: Any) -> Lease | None:
    """Take the lock if it is free."""
    return lock().try_acquire()


def wait(_lease: Any) -> Lease:
    """Take the lock, or wait until the lease of its holder expires."""
    return lock().acquire()


def wait_longer(_lease: Any) -> Lease:
    """Wait for the lease of a holder that renews once while it is watched, and then dies."""
    return lock(wait_seconds=2 * LEASE_SECONDS + 1).acquire()


def take_and_release(_lease: Any) -> str:
    lease = lock().acquire()
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
    """Operations on the lease of `begin`, and every way in which they may end (`word`).

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
    explore: Explore, kept: list[Lease], clock: Clock, race: Race, faults: dict[str, Any]
) -> None:
    reached = set()

    def expects(outcomes: list[Any]) -> None:
        end = " ".join(map(word, outcomes))
        assert end in race.ends
        reached.add(end)

    explore(lambda: of_lock(kept, race.begin, race.operations, expects), clock=clock, **faults)

    # Some ends need all of the faults.
    assert reached == race.ends or faults != (race.slow or race.quick)


NOT_TAKEN = "not taken"


def written_items() -> list[Any]:
    """What is stored in the table that is written under the lease."""
    items: list[Any] = scanned(Counter.table())
    return items


@pytest.mark.parametrize("losses", LOSSES)
def test_nothing_is_written_under_a_lease_that_is_lost(
    explore: Explore, kept: list[Lease], clock: Clock, losses: int
) -> None:
    """Its transaction commits before the next holder has the lock, or not at all."""

    def write(lease: Lease) -> str:
        with Transaction() as transaction:
            lease.hold_in(transaction)
            written = Counter("written")
            transaction.put(written, Counter.name.does_not_exist(), otherwise=ValueError())
        return "written"

    def take_and_look(_lease: Lease) -> object:
        try:
            lock().acquire()
        except LockTaken:
            # By its own lost request, which arrived late.
            return NOT_TAKEN
        return written_items()

    def expects(outcomes: list[Any]) -> None:
        written = word(outcomes[0])
        # The answer to a lost request may come too late, while a whole lease passes.
        assert written in {"done", "LeaseLost"} | ({"Unavailable"} if losses else set())
        if written != "Unavailable":
            assert len(written_items()) == (written == "done")
        if outcomes[1] != NOT_TAKEN:
            assert outcomes[1] == written_items()
        seen.add(written)

    def make() -> Scenario:
        empty(Counter.table())
        return of_lock(kept, held, [write, take_and_look], expects)

    seen: set[str] = set()
    explore(make, clock=clock, fine=True, losses=losses)

    assert seen >= {"done", "LeaseLost"}


@pytest.mark.slow
@pytest.mark.parametrize("is_broken", [True, False])
def test_a_lock_is_taken_under_a_higher_fencing_token_while_it_is_broken_or_time_passes(
    explore: Explore, kept: list[Lease], clock: Clock, is_broken: bool
) -> None:
    def let_time_pass(_lease: Lease) -> None:
        clock.pass_seconds(LEASE_SECONDS / 2)

    def expects(outcomes: list[Any]) -> None:
        if is_broken:
            assert word(outcomes[0]) in {"done", "LeaseLost"}
            assert outcomes[1] == State.HELD
        for taken in (outcome for outcome in outcomes if isinstance(outcome, Lease)):
            assert taken.fence > kept[0].fence

    operations = [renew, break_it, take] if is_broken else [renew, wait, let_time_pass]
    explore(
        lambda: of_lock(kept, held, operations, expects, is_broken=is_broken), clock=clock, losses=1
    )
