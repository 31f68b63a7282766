"""Runs concurrent operations in every order in which their steps can follow each other.

    def make():
        …                                          # empty the tables and store what is needed
        operations = [register_ann, register_bob]  # each runs in a thread, step by step
        return Scenario(operations, afterwards)    # `afterwards` is called when all have ended

    explore(make)          # returns how many schedules there are

This is a depth-first search over choices. Each schedule starts from a new scenario, repeats the
choices that lead to it, and goes on with the first choice that was not tried yet. So every schedule
is run once, and no state is kept. A replay must find the same choices at the same place.

Faults are choices too, at every request of every operation, up to a number for each schedule:

- a loss: the answer to the request never comes. The request itself arrives at any later moment,
  before the client repeats it (so only its answer was lost), long after that, or never.
- a conflict: the transaction is canceled, as it conflicts with another one.
- a death: the operation's process ends before it sends the request. A request that was sent and
  is carried out after the process died is the same as a death before the next request.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.interleavings.interception import Clock, Interception, installed
from tests.interleavings.operations import Conflicted, Died, Lost, Operation, Step

#: A schedule with more steps has an operation that never ends.
MOST_STEPS = 200

#: Jitter is the same in each schedule.
SEED = 7


def accept(_what: object) -> None:
    """Fail never."""


@dataclass
class Scenario:
    """What is stored at first, the operations, and the rules that hold whatever their order is.

    - `always(wrote)` fails if a rule is broken that holds at every instant. `wrote` says whether
      the last step may have changed what is stored. It is not called after steps that this schedule
      has in common with the previous one.
    - `afterwards(outcomes)` fails if the `outcomes` (see `Operation`) are wrong.
    - `is_alike`: the operations do the same, so they begin in their order: any other schedule is
      one of these with other names.
    - `late`, set by the scheduler: the operations whose lost request succeeded after they had
      ended. No client can prevent that; what it was told was true at that moment.
    """

    operations: Sequence[Callable[[], object]]
    afterwards: Callable[[list[Any]], None] = accept
    always: Callable[[bool], None] = accept
    is_alike: bool = False
    late: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class _Choice:
    label: str
    #: Returns whether it may have changed what is stored.
    take: Callable[[], bool]


@dataclass
class _Place:
    """A place in a schedule: its choices, and the one that was taken."""

    labels: list[str]
    taken: int

    @property
    def is_exhausted(self) -> bool:
        return self.taken + 1 == len(self.labels)


@dataclass
class _Schedule:
    """One run of a scenario along `path`: the previous schedule's choices, the last one changed."""

    scenario: Scenario
    #: How many faults of each kind it may still have.
    faults_left: dict[type[BaseException], int]
    path: list[_Place]
    places: list[_Place] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    #: Lost requests that have not arrived yet, with their operations.
    strays: list[tuple[Operation, Step]] = field(default_factory=list)

    def run(self) -> None:
        self.operations = [
            Operation(number, act) for number, act in enumerate(self.scenario.operations)
        ]
        try:
            for operation in self.operations:
                operation.begin()
            while choices := self._choices():
                wrote = self._take(choices)
                # The previous schedule has checked the steps before.
                if len(self.places) >= len(self.path):
                    self.scenario.always(wrote)
            self.scenario.afterwards([operation.outcome for operation in self.operations])
        except BaseException as error:
            error.add_note("\n".join(["The schedule:", *self.lines()]))
            raise
        finally:
            for operation in self.operations:
                operation.end()

    def lines(self) -> list[str]:
        return [f"  {place.labels[place.taken]}" for place in self.places]

    def _take(self, choices: list[_Choice]) -> bool:
        """Take the next choice; returns whether it may have changed what is stored."""
        depth = len(self.places)
        labels = [choice.label for choice in choices]
        assert depth < MOST_STEPS, "the operations do not end"
        if depth < len(self.path):
            place = self.path[depth]
            assert labels == place.labels, f"not replayed: {labels} instead of {place.labels}"
        else:
            place = _Place(labels, 0)
        self.places.append(place)
        return choices[place.taken].take()

    def _choices(self) -> list[_Choice]:
        alive = [operation for operation in self.operations if operation.next is not None]
        fresh = [operation for operation in alive if operation.is_fresh]
        later = fresh[1:] if self.scenario.is_alike else []
        choices = [
            choice
            for operation in alive
            if operation not in later
            for choice in self._choices_of(operation, operation.next)
        ]
        assert choices or not alive, f"all wait: {[item.next.label for item in alive if item.next]}"
        for stray in self.strays:
            label = f"{stray[0].number}: the lost {stray[1].label} arrives"
            choices.append(_Choice(label, partial(self._arrive, stray)))
        if self.strays and not alive:
            choices.append(_Choice("what is lost never arrives", self._give_up))
        return choices

    def _choices_of(self, operation: Operation, step: Step | None) -> list[_Choice]:
        if step is None or not step.is_ready():
            return []
        name = f"{operation.number}: {step.label}"
        possible: dict[type[BaseException], str] = {}
        if step.deliver is not None:
            possible = {
                Lost: f"{name} is lost",
                Died: f"{operation.number} dies before {step.label}",
            }
        if step.label.startswith("TransactWriteItems"):
            possible[Conflicted] = f"{name} conflicts"
        return [
            _Choice(name, partial(self._go, operation)),
            *(
                _Choice(label, partial(self._fail, operation, step, fault))
                for fault, label in possible.items()
                if self.faults_left[fault]
            ),
        ]

    def _go(self, operation: Operation) -> bool:
        operation.go()
        return operation.has_written

    def _fail(self, operation: Operation, step: Step, fault: type[BaseException]) -> bool:
        self.faults_left[fault] -= 1
        # A read that arrives late changes nothing.
        if fault is Lost and step.writes:
            self.strays.append((operation, step))
        operation.go(fault)
        return False

    def _give_up(self) -> bool:
        self.strays.clear()
        return False

    def _arrive(self, stray: tuple[Operation, Step]) -> bool:
        operation, step = stray
        self.strays.remove(stray)
        assert step.deliver is not None
        answer = step.deliver()
        if operation.next is None and answer.status == 200:
            self.scenario.late.add(operation.number)
        return answer.status == 200


def explore(
    make_scenario: Callable[[], Scenario],
    *,
    losses: int = 0,
    deaths: int = 0,
    conflicts: int = 0,
    clock: Clock | None = None,
    fine: bool = False,
    forgetful: bool = False,
) -> int:
    """Run every schedule of the scenario, and return how many there are.

    `clock` is the one that its operations may move. `fine` and `forgetful`: see `Interception`.

    Raises:
        AssertionError: a rule is broken; a note shows the schedule.
    """
    interception = Interception(clock or Clock(), fine=fine, forgetful=forgetful)
    state = random.getstate()
    path: list[_Place] = []
    schedules = 0
    try:
        with installed(interception):
            while True:
                random.seed(SEED)
                interception.clock.reset()
                faults = {Lost: losses, Died: deaths, Conflicted: conflicts}
                schedule = _Schedule(make_scenario(), faults, path)
                schedule.run()
                schedules += 1
                path = _next_path(schedule.places)
                if not path:
                    return schedules
    finally:
        random.setstate(state)


def _next_path(places: list[_Place]) -> list[_Place]:
    """The next schedule: another choice at the last place that has one left."""
    while places and places[-1].is_exhausted:
        places.pop()
    if not places:
        return []
    *before, last = places
    return [*before, _Place(last.labels, last.taken + 1)]
