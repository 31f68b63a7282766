"""Checks linearizability: whether overlapping calls can have happened one at a time.

Each operation takes effect at one instant between its start and its end; one whose outcome is
unknown may also take no effect. The history is read in the order of its events, with all states in
which the object can be (the check of Wing and Gong, with the just-in-time order of Lowe): an
operation is placed only when another one ends that needs it. The number of states stays small
because few operations overlap. The finding is the first event that no order explains.

Sources: J. Wing, C. Gong, "Testing and Verifying Concurrent Objects", 1993; G. Lowe, "Testing for
Linearizability", 2017.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

State = Hashable
#: The states that may follow a state; none if the operation cannot happen in it.
Step = Callable[[Any], Iterable[State]]

#: More states than this are not followed: the object is undecided.
MOST_CONFIGURATIONS = 200_000

_Configuration = tuple[State, frozenset[int]]


@dataclass(frozen=True)
class Operation:
    """What one call did to one object; `is_certain` if it had an answer.

    A call that first writes and then reads is two operations of the same times. The second one
    stands right after the first, and `is_second`: it takes effect after it.
    """

    began: float
    ended: float
    step: Step
    is_certain: bool = True
    about: Any = None
    is_second: bool = False


@dataclass(frozen=True)
class Broken:
    """The operation that no order explains, those shortly before it, and the states before."""

    culprit: Operation
    before: list[Operation]
    states: list[State]


class Undecided(Exception):
    """Too many operations overlap."""


def first_break(operations: Sequence[Operation], start: State, *, shown: int = 12) -> Broken | None:
    """Where the history of an object, with the first state `start`, stops being linearizable.

    Raises:
        Undecided: it has too many orders.
    """
    events = sorted(
        (at, is_end, number)
        for number, operation in enumerate(operations)
        # Starts come before ends of the same time: such operations overlap.
        for at, is_end in ((operation.began, False), (operation.ended, True))
    )
    possible: set[_Configuration] = {(start, frozenset())}
    pending: set[int] = set()
    for at, is_end, number in events:
        if not is_end:
            pending.add(number)
            continue
        after = _after_end(possible, number, operations, pending)
        if not after:
            recent = [operation for operation in operations if operation.began <= at]
            recent.sort(key=lambda each: each.ended)
            others = [item for item in recent if item is not operations[number]]
            states = list({state for state, _done in possible})
            return Broken(operations[number], others[-shown:], states[:shown])
        if len(after) > MOST_CONFIGURATIONS:
            raise Undecided
        pending.discard(number)
        possible = after
    return None


def _after_end(
    possible: set[_Configuration], number: int, operations: Sequence[Operation], pending: set[int]
) -> set[_Configuration]:
    """The configurations that are possible when the operation `number` has ended.

    If it did not happen yet, it happens now, after any of the other pending ones.
    """
    after: set[_Configuration] = set()
    seen: set[_Configuration] = set()
    for start in possible:
        if number in start[1]:
            after.add((start[0], start[1] - {number}))
            continue
        if not operations[number].is_certain:
            after.add(start)
        stack = [start]
        while stack:
            state, done = stack.pop()
            if (state, done) in seen:
                continue
            seen.add((state, done))
            if len(seen) > MOST_CONFIGURATIONS:
                raise Undecided
            after.update((result, done) for result in operations[number].step(state))
            left = pending - done
            for other in left - {number}:
                if not (operations[other].is_second and other - 1 in left):
                    results = operations[other].step(state)
                    stack += [(result, done | {other}) for result in results]
    return after
