"""The simulated loads, each with its own seed: an even one, and five hot keys.

Callers arrive at random (a Poisson process). Requests are combined, refused and retried by the
rules of the site: pauses, deadlines and sizes of groups are its own functions and constants.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.scale.clock import Clock, Task
from benchmarks.scale.hotkeys import HotCounter, HotSeries, plain_counter
from benchmarks.scale.hotlock import HotLock
from benchmarks.scale.outcomes import Outcomes
from benchmarks.scale.partitions import Sender, Table, Use
from outbox.backend import DEFAULTS

SHARDS: int = DEFAULTS["SHARDS"]
#: For how long callers arrive.
SECONDS = 8.0
#: The deadline of all requests of a page (`DYNAMODB_PAGE_SECONDS`).
PAGE_SECONDS = 5.5


@dataclass(frozen=True)
class Row:
    """A row of the table of results."""

    load: str
    outcomes: Outcomes


class World:
    """A clock, a random source and a sender."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a simulation's
        # The site's own code draws pauses from the global random source.
        random.seed(seed)
        self.clock = Clock()
        self.sender = Sender(self.clock, self.chance)

    def arrivals(
        self, rate: float, arrive: Callable[[], Task], seconds: float = SECONDS, begin: float = 0
    ) -> None:
        """Let callers arrive at random, at that rate."""
        when = begin
        while (when := when + self.chance.expovariate(rate)) < begin + seconds:
            self.clock.at(when, arrive())


def sign_ups(
    rate: int, users: int, cache: int, phases: dict[str, tuple[float, float]]
) -> list[Row]:
    """Whole sign-ups with new keys: two slots, the account with its guards and task, a session.

    A row for each phase, which counts those who come between its two seconds.
    """
    world = World(seed=rate + users)
    clock, chance = world.clock, world.chance
    tables = {"users": Table(clock, users)}
    tables |= {name: Table(clock, cache) for name in ("cache", "tasks")}
    found = {load: Outcomes() for load in phases}

    def use(table: str, units: float) -> Use:
        return tables[table], chance.random(), units

    def one() -> Task:
        began = clock.now
        # The tasks of a queue share the partition keys of its shards.
        task = (tables["tasks"], chance.randrange(SHARDS) / SHARDS, 2.0)
        # A guard that searches find costs one unit more.
        account = [use("users", 2), use("users", 3), use("users", 3), task]
        requests: list[tuple[str, list[Use]]] = [
            ("single", [use("cache", 1)]),
            ("single", [use("cache", 1)]),
            ("transaction", account),
            ("single", [use("cache", 1)]),
        ]
        done = True
        for kind, uses in requests:
            done = done and (yield from world.sender.send(uses, kind, began + PAGE_SECONDS))
        for load, (begin, end) in phases.items():
            if begin <= began < end:
                found[load].note(clock.now - began, served=done)

    seconds = max(end for _begin, end in phases.values())
    world.arrivals(rate, one, seconds)
    clock.run()
    return [Row(load, outcomes) for load, outcomes in found.items()]


def counter(rate: int, processes: int, *, combined: bool) -> Row:
    """Callers of one counter from several processes, each for itself or combined."""
    world = World(seed=rate + processes)
    table = Table(world.clock, 4)
    outcomes = Outcomes()
    if combined:
        spots = [HotCounter(world.sender, table, outcomes) for _ in range(processes)]
        world.arrivals(rate, lambda: world.chance.choice(spots).call())
    else:
        world.arrivals(rate, lambda: plain_counter(world.sender, table, outcomes))
    world.clock.run()
    way = f"combined in {processes} processes" if combined else "each for itself"
    return Row(f"one counter, {rate:,} per second, {way}", outcomes)


def series(rate: int, processes: int) -> Row:
    """Invoices of one series from several processes."""
    world = World(seed=rate + processes)
    spot = HotSeries(world.sender, outcomes := Outcomes())
    groups = [spot.process() for _ in range(processes)]
    world.arrivals(rate, lambda: world.chance.choice(groups).call())
    world.clock.run()
    plural = "process" if processes == 1 else "processes"
    return Row(f"one series, {rate} invoices per second, {processes} {plural}", outcomes)


def lock(waiters: int, hold_seconds: float) -> Row:
    """Callers that all want one lock at once and hold it for a while."""
    world = World(seed=waiters)
    spot = HotLock(world.sender, hold_seconds, outcomes := Outcomes())
    for _ in range(waiters):
        world.clock.at(world.chance.uniform(0, 0.05), spot.call())
    world.clock.run()
    load = f"one lock, {waiters} callers at once, held {hold_seconds:g} s each"
    return Row(load, outcomes)


def limit(rate: int) -> Row:
    """Attempts on one account: a refused `add` and a count on one key."""
    world = World(seed=rate)
    table = Table(world.clock, 4)
    outcomes = Outcomes()
    key = 0.3

    def one() -> Task:
        began = world.clock.now
        done = yield from world.sender.send([(table, key, 1)], ends_at=began + PAGE_SECONDS)
        done = done and (
            yield from world.sender.send([(table, key, 1)], ends_at=began + PAGE_SECONDS)
        )
        outcomes.note(world.clock.now - began, served=done)

    world.arrivals(rate, one)
    world.clock.run()
    return Row(f"one rate limit, {rate:,} attempts per second", outcomes)


def all_rows() -> list[Row]:
    """Every scenario, in the order of the page."""
    state = random.getstate()
    try:
        return [
            *sign_ups(
                1000, 16, 8, {"1,000 sign-ups per second, tables with warm throughput": (0, 4)}
            ),
            *sign_ups(
                1000,
                4,
                4,
                {
                    "1,000 sign-ups per second, new tables": (0, 2),
                    "the same, after their partitions were split": (6, 8),
                },
            ),
            counter(2000, 16, combined=False),
            counter(2000, 16, combined=True),
            counter(10_000, 4, combined=True),
            series(450, 1),
            series(600, 1),
            series(200, 4),
            series(400, 4),
            series(200, 16),
            lock(50, 0.2),
            lock(50, 2),
            limit(1000),
        ]
    finally:
        random.setstate(state)
