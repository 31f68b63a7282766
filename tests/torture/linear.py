"""Whether calls that overlap in time can have happened one at a time, in an order they allow.

Each operation takes effect at one instant between its start and its end; one whose outcome nobody
knows may also take none. The history is read in the order of its events, and all states in which
the object can be are carried along (Wing & Gong's check, with the just-in-time order of Lowe): an
operation is put in its place no earlier than the end of one that needs it there. So what is kept
is small, as few operations overlap, and the first event that nothing explains is the finding.

Sources: J. Wing, C. Gong, "Testing and Verifying Concurrent Objects", 1993; G. Lowe, "Testing for
Linearizability", 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

State = Hashable
#: The states that may follow; none where the operation cannot have happened in this one.
Step = Callable[[Any], Iterable[State]]

#: How many states are carried along at most; beyond that nothing is said of the object.
MOST_CONFIGURATIONS = 200_000

_Configuration = tuple[State, frozenset[int]]


@dataclass(frozen=True)
class Operation:
    """What one call did to one object. `is_certain`: it happened, as it was answered."""

    began: float
    ended: float
    step: Step
    is_certain: bool = True
    about: Any = None


@dataclass(frozen=True)
class Broken:
    """The operation that nothing explains, those shortly before it, and the states just before."""

    culprit: Operation
    before: list[Operation]
    states: list[State]


class Undecided(Exception):
    """Too many operations overlap to say anything."""


def first_break(operations: Sequence[Operation], start: State, *, shown: int = 12) -> Broken | None:
    """Where the history of one object, in the state `start` at first, stops being linearizable.

    Raises:
        Undecided: it has too many orders.
    """
    events = sorted(
        (at, is_end, number)
        for number, operation in enumerate(operations)
        # At one instant starts come first: who may have overlapped did.
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
            recent = [each for each in operations if each.began <= at]
            recent.sort(key=lambda each: each.ended)
            others = [each for each in recent if each is not operations[number]]
            states = list({state for state, _done in possible})
            return Broken(operations[number], others[-shown:], states[:shown])
        if len(after) > MOST_CONFIGURATIONS:
            raise Undecided
        pending.discard(number)
        possible = after
    return None


def _after_end(
    possible: set[_Configuration],
    number: int,
    operations: Sequence[Operation],
    pending: set[int],
) -> set[_Configuration]:
    """What is possible once the operation `number` is over."""
    after: set[_Configuration] = set()
    seen: set[_Configuration] = set()
    for state, done in possible:
        if number in done:
            after.add((state, done - {number}))
            continue
        if not operations[number].is_certain:
            after.add((state, done))
        _place(number, state, done, operations, pending, seen, after)
    return after


def _place(
    number: int,
    state: State,
    done: frozenset[int],
    operations: Sequence[Operation],
    pending: set[int],
    seen: set[_Configuration],
    after: set[_Configuration],
) -> None:
    """Add what is possible where `number` happens now, after any of the others that are pending."""
    stack = [(state, done)]
    while stack:
        state, done = stack.pop()
        if (state, done) in seen:
            continue
        seen.add((state, done))
        if len(seen) > MOST_CONFIGURATIONS:
            raise Undecided
        after.update((result, done) for result in operations[number].step(state))
        for other in pending - done - {number}:
            stack += [(result, done | {other}) for result in operations[other].step(state)]
