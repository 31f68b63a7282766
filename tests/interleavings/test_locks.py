"""Leases taken, renewed and given back at once, in every order of requests, answers and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dynamo.client import send
from dynamo.transaction import Transaction
from locks.exceptions import LockTaken
from locks.leases import Lease
from locks.lock import claim_once
from locks.registry import Broken, break_lock
from sequences.models import Counter
from tests.interleavings.conftest import LOSSES, Explore
from tests.interleavings.interception import Clock
from tests.interleavings.locks import (
    LEASE_SECONDS,
    NAME,
    Leases,
    LockScenario,
    answers,
    lock,
    noted,
    outwait,
    try_once,
)
from tests.interleavings.operations import DEAD


@pytest.fixture
def leases() -> Iterator[Leases]:
    with noted() as each:
        yield each


@pytest.fixture
def clock() -> Clock:
    return Clock()


def world_of(
    leases: Leases,
    begin: Callable[[], Lease | None],
    *acts: Callable[[Lease | None], object],
) -> tuple[Callable[[], LockScenario], list[list[str]]]:
    """A scenario in which all of `acts` are done with the lease of `begin`, and what came of it."""
    ends: list[list[str]] = []

    def make() -> LockScenario:
        scenario = LockScenario(leases)
        lease = begin()
        scenario.operations = [lambda act=act: act(lease) for act in acts]  # type: ignore[misc]
        scenario.expects = lambda outcomes: ends.append(answers(outcomes))
        return scenario

    return make, ends


def absent() -> None:
    """Nobody has had the lock."""


def released() -> None:
    """Somebody has given the lock back."""
    outwait().release()


def held() -> Lease:
    """Somebody has the lock."""
    return outwait()


def take(_lease: Any) -> Lease | None:
    return try_once()


def wait(_lease: Any) -> Lease:
    return outwait()


def renew(lease: Lease) -> str:
    lease.renew()
    return "renewed"


def release(lease: Lease) -> str:
    lease.release()
    return "released"


@pytest.mark.parametrize("begin", [absent, released])
@pytest.mark.parametrize("losses", LOSSES)
def test_of_two_who_try_a_free_lock_one_has_it(
    explore: Explore, leases: Leases, clock: Clock, begin: Callable[[], None], losses: int
) -> None:
    make, ends = world_of(leases, begin, take, take)

    explore(make, clock=clock, fine=True, losses=losses)

    assert all(sorted(end) == ["held", "none"] for end in ends)


def test_of_two_who_wait_for_a_dead_holder_one_has_the_lock(
    explore: Explore, leases: Leases, clock: Clock
) -> None:
    make, ends = world_of(leases, held, wait, wait)

    explore(make, clock=clock)

    # Nobody renews here: who waits for long enough outwaits the winner as well.
    assert {tuple(sorted(end)) for end in ends} == {("LockTaken", "held"), ("held", "held")}


@pytest.mark.slow
def test_so_it_is_however_late_their_answers_and_looks_are(
    explore: Explore, leases: Leases, clock: Clock
) -> None:
    make, ends = world_of(leases, held, wait, wait)

    explore(make, clock=clock, fine=True)

    assert all("held" in end for end in ends)


def test_who_renews_and_who_waits_never_hold_the_lock_at_once(
    explore: Explore, leases: Leases, clock: Clock
) -> None:
    make, ends = world_of(leases, held, renew, wait)

    explore(make, clock=clock, fine=True)

    assert {tuple(end) for end in ends} == {
        ("done", "LockTaken"),
        ("done", "held"),
        ("LeaseLost", "held"),
    }


@pytest.mark.slow
def test_so_it_is_when_time_passes_at_any_moment_and_requests_are_lost(
    explore: Explore, leases: Leases, clock: Clock
) -> None:
    make, _ends = world_of(
        leases, held, renew, wait, lambda _lease: clock.pass_seconds(LEASE_SECONDS / 2)
    )

    explore(make, clock=clock, losses=1)


@pytest.mark.parametrize("losses", LOSSES)
def test_who_gives_back_lets_the_other_in_or_was_too_late_for_it(
    explore: Explore, leases: Leases, clock: Clock, losses: int
) -> None:
    make, ends = world_of(leases, held, release, take)

    explore(make, clock=clock, fine=True, losses=losses)

    assert {tuple(end) for end in ends} == {("done", "held"), ("done", "none")}


@pytest.mark.parametrize("losses", LOSSES)
def test_who_waits_has_the_lock_after_who_gives_it_back(
    explore: Explore, leases: Leases, clock: Clock, losses: int
) -> None:
    make, ends = world_of(leases, held, release, wait)

    explore(make, clock=clock, losses=losses)

    # A request to take it that was lost may take it when nobody asks any more: it lapses.
    late = {"LockTaken", "Unavailable"} if losses else set()
    assert {second for _first, second in ends} <= {"held"} | late
    # And whoever waits for an answer while the other waits for a lease has waited for too long.
    unanswered = {"Unavailable"} if losses else set()
    assert {first for first, _second in ends} <= {"done", "LeaseLost"} | unanswered


def test_who_dies_with_the_lock_is_outwaited(
    explore: Explore, leases: Leases, clock: Clock
) -> None:
    def take_and_give_back(_lease: Any) -> str:
        lease = outwait()
        lease.renew()
        lease.release()
        return "done"

    def wait_longer(_lease: Any) -> Lease:
        # The holder may renew while it is watched, and die after that.
        return lock(wait_seconds=2 * LEASE_SECONDS + 1).acquire()

    make, ends = world_of(leases, absent, take_and_give_back, wait_longer)

    explore(make, clock=clock, deaths=1)

    assert {second for first, second in ends if first == DEAD} == {"held"}
    assert {second for first, second in ends if first != DEAD} == {"held", DEAD}


# What is written under a lease --------------------------------------------------------------------


WRITTEN = {"counterName": {"S": "written"}}


def written_items() -> list[Any]:
    """What stands in the table that is written under the lease."""
    items: list[Any] = send("Scan", {"TableName": Counter.table()})["Items"]
    return items


def clear_counters() -> None:
    send("DeleteItem", {"TableName": Counter.table(), "Key": WRITTEN})


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
            outwait()
        except LockTaken:
            # By a request of its own that was lost and came late; see above.
            return "waited in vain"
        return written_items()

    def make() -> LockScenario:
        scenario = LockScenario(leases)
        clear_counters()
        lease = held()
        scenario.operations = [lambda: write(lease), take_and_look]

        def expects(outcomes: list[Any]) -> None:
            written = answers(outcomes)[0]
            # Whoever's request was lost may be told nothing in time, while a whole lease passes.
            assert written in {"done", "LeaseLost"} | ({"Unavailable"} if losses else set())
            if written != "Unavailable":
                assert written_items() == ([WRITTEN] if written == "done" else [])
            if outcomes[1] != "waited in vain":
                assert outcomes[1] == written_items()
            seen.add(written)

        scenario.expects = expects
        return scenario

    seen: set[str] = set()
    explore(make, clock=clock, fine=True, losses=losses)

    assert seen >= {"done", "LeaseLost"}


# Broken, and claimed ------------------------------------------------------------------------------


@pytest.mark.parametrize("losses", LOSSES)
def test_a_lock_that_is_broken_is_renewed_before_or_not_at_all(
    explore: Explore, leases: Leases, clock: Clock, losses: int
) -> None:
    make, ends = world_of(leases, held, renew, lambda _lease: break_lock(NAME))

    explore(make, clock=clock, losses=losses)

    assert {tuple(end) for end in ends} == {("done", "done"), ("LeaseLost", "done")}


@pytest.mark.slow
def test_a_broken_lock_is_the_next_ones_with_a_higher_fence(
    explore: Explore, leases: Leases, clock: Clock
) -> None:
    class Broke(LockScenario):
        breaks = True

    def make() -> LockScenario:
        scenario = Broke(leases)
        lease = held()
        scenario.operations = [lambda: renew(lease), lambda: break_lock(NAME), try_once]

        def expects(outcomes: list[Any]) -> None:
            renewed, _broken, taken = answers(outcomes)
            assert renewed in {"done", "LeaseLost"}
            assert outcomes[1] in {Broken.FREED}
            assert taken in {"held", "none"}
            if taken == "held":
                assert outcomes[2].fence > lease.fence

        scenario.expects = expects
        return scenario

    explore(make, clock=clock, losses=1)


@pytest.mark.parametrize("losses", LOSSES)
def test_what_is_claimed_once_is_one_claimers(
    explore: Explore, leases: Leases, losses: int
) -> None:
    def make() -> LockScenario:
        scenario = LockScenario(leases)
        scenario.operations = [lambda: claim_once(NAME)] * 2

        def expects(outcomes: list[Any]) -> None:
            assert sorted(map(str, outcomes)) in [
                ["False", "True"],
                ["False", DEAD],
                ["True", DEAD],
            ]

        scenario.expects = expects
        return scenario

    explore(make, deaths=1, losses=losses)
