"""Runs concurrent operations in every order in which their steps can follow each other.

    class Scenario:
        def __init__(self): …                     # empties its tables, and begins
        operations = [register_ann, register_bob]  # each runs in a thread, step by step
        def always(self, wrote): …                # asked after each step
        def afterwards(self, outcomes): …         # asked when all are over

    explore(Scenario)      # how many schedules there were

A depth-first search over the choices: each schedule is run from the beginning, on an engine as it
was then, along the choices that lead to it, and on by the first choice that is left. So every
schedule is run once, and no state needs to be kept. That a schedule can be replayed is checked: at
the same place the same choices must stand.

Faults are choices as well, each at every request of every operation, up to the number that is
asked for in a schedule:

- a loss: the request leaves, its answer never comes, and the client does what it does then. The
  request itself is on its way: it arrives at any later moment, before the client's repetition
  (its answer was lost), long after it, or never.
- a meeting: a transaction meets another one that is under way, and is cancelled.
- a death: the operation's process ends before it sends the request. A request that was sent and
  is carried out after the process died is the same as a death before the next one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.interleavings.interception import Clock, Interception, held
from tests.interleavings.operations import Died, Lost, Met, Operation, Step

#: A schedule with more steps than that has an operation that never ends.
MOST_STEPS = 200

#: Jitter is chance: the same one in each schedule.
SEED = 7


class Scenario(Protocol):
    """One beginning, and the rules for all that may follow from it."""

    operations: Sequence[Callable[[], object]]
    #: Filled by the scheduler: the operations that a lost request of theirs did for after they were
    #: over. No client can do anything about it; what it was told was true when it was told.
    late: set[int]

    def always(self, wrote: bool) -> None:
        """Fail where a rule does not hold that holds at every instant.

        `wrote` says whether the last step may have changed what is stored. It is not asked after
        steps that this schedule has in common with the one before.
        """

    def afterwards(self, outcomes: list[Any]) -> None:
        """Fail where the `outcomes` (see `Operation`) are not true, or not right."""


@dataclass(frozen=True)
class Faults:
    """How many faults a schedule may have."""

    losses: int = 0
    deaths: int = 0
    meetings: int = 0


@dataclass(frozen=True)
class _Choice:
    label: str
    take: Callable[[], None]
    writes: bool = False


@dataclass
class _Place:
    """A place in a schedule: the choices that stand there, and the one that was taken."""

    labels: list[str]
    taken: int

    @property
    def is_exhausted(self) -> bool:
        return self.taken + 1 == len(self.labels)


@dataclass
class _Schedule:
    """One run of a scenario along `path`: the previous schedule's choices, the last one changed."""

    scenario: Scenario
    faults: Faults
    path: list[_Place]
    places: list[_Place] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    #: Requests whose clients wait no more, and which have not arrived, and of whom they are.
    strays: list[tuple[Operation, Step]] = field(default_factory=list)
    losses: int = 0
    deaths: int = 0
    meetings: int = 0

    def run(self) -> None:
        self.scenario.late = set()
        self.operations = [
            Operation(number, act) for number, act in enumerate(self.scenario.operations)
        ]
        try:
            for operation in self.operations:
                operation.begin()
            while choices := self._choices():
                wrote = self._take(choices)
                # What was checked in the schedules before need not be checked again.
                if len(self.places) >= len(self.path):
                    self.scenario.always(wrote)
            self.scenario.afterwards([operation.outcome for operation in self.operations])
        except BaseException as error:
            error.add_note("\n".join(["The schedule:", *self.told()]))
            raise
        finally:
            for operation in self.operations:
                operation.end()

    def told(self) -> list[str]:
        return [f"  {place.labels[place.taken]}" for place in self.places]

    def _take(self, choices: list[_Choice]) -> bool:
        """Take the choice whose turn it is; whether it may have changed what is stored."""
        depth = len(self.places)
        labels = [choice.label for choice in choices]
        assert depth < MOST_STEPS, "it does not end"
        if depth < len(self.path):
            place = self.path[depth]
            assert labels == place.labels, f"not replayed: {labels} instead of {place.labels}"
        else:
            place = _Place(labels, 0)
        self.places.append(place)
        choices[place.taken].take()
        return choices[place.taken].writes

    def _choices(self) -> list[_Choice]:
        alive = [operation for operation in self.operations if operation.next is not None]
        choices = [
            choice for operation in alive for choice in self._choices_of(operation, operation.next)
        ]
        assert choices or not alive, f"all wait: {[each.next.label for each in alive if each.next]}"
        for stray in self.strays:
            label = f"{stray[0].number}: the lost {stray[1].label} arrives"
            choices.append(_Choice(label, self._arrival(stray), stray[1].writes))
        if self.strays and not alive:
            choices.append(_Choice("what is lost never arrives", self.strays.clear))
        return choices

    def _choices_of(self, operation: Operation, step: Step | None) -> list[_Choice]:
        if step is None or not step.is_ready():
            return []
        name = f"{operation.number}: {step.label}"
        choices = [_Choice(name, operation.go, step.writes)]
        if step.deliver is not None and self.losses < self.faults.losses:
            choices.append(_Choice(f"{name} is lost", self._loss(operation, step)))
        is_transaction = step.label.startswith("TransactWriteItems")
        if is_transaction and self.meetings < self.faults.meetings:
            choices.append(_Choice(f"{name} meets another", self._meeting(operation)))
        if step.deliver is not None and self.deaths < self.faults.deaths:
            choices.append(
                _Choice(f"{operation.number} dies before {step.label}", self._death(operation))
            )
        return choices

    def _loss(self, operation: Operation, step: Step) -> Callable[[], None]:
        def lose() -> None:
            self.losses += 1
            if step.writes:
                # When a read arrives, or whether, nobody can tell.
                self.strays.append((operation, step))
            operation.go(Lost)

        return lose

    def _meeting(self, operation: Operation) -> Callable[[], None]:
        def meet() -> None:
            self.meetings += 1
            operation.go(Met)

        return meet

    def _death(self, operation: Operation) -> Callable[[], None]:
        def die() -> None:
            self.deaths += 1
            operation.go(Died)

        return die

    def _arrival(self, stray: tuple[Operation, Step]) -> Callable[[], None]:
        operation, step = stray

        def arrive() -> None:
            self.strays.remove(stray)
            assert step.deliver is not None
            answer = step.deliver()
            if operation.next is None and answer.status == 200:
                self.scenario.late.add(operation.number)
            answer.drain_conn()
            answer.release_conn()

        return arrive


def explore(
    make_scenario: Callable[[], Scenario],
    *,
    losses: int = 0,
    deaths: int = 0,
    meetings: int = 0,
    clock: Clock | None = None,
    fine: bool = False,
    forgetful: bool = False,
) -> int:
    """Run every schedule of the scenario; how many there were.

    `clock` is the one that its operations may move. `fine` and `forgetful`: see `Interception`.

    Raises:
        AssertionError: a rule does not hold; a note tells the schedule.
    """
    interception = Interception(clock or Clock(), fine=fine, forgetful=forgetful)
    state = random.getstate()
    path: list[_Place] = []
    schedules = 0
    try:
        with held(interception):
            while True:
                random.seed(SEED)
                interception.clock.reset()
                schedule = _Schedule(make_scenario(), Faults(losses, deaths, meetings), path)
                schedule.run()
                schedules += 1
                path = _next_path(schedule.places)
                if not path:
                    return schedules
    finally:
        random.setstate(state)


def _next_path(places: list[_Place]) -> list[_Place]:
    """The way to the next schedule: another choice at the last place that has one left."""
    while places and places[-1].is_exhausted:
        places.pop()
    if not places:
        return []
    *before, last = places
    return [*before, _Place(last.labels, last.taken + 1)]
