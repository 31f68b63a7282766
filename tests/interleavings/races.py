"""Operations at once: they leave and answer what they do one after another, in some order."""

from collections.abc import Callable, Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations, permutations
from typing import Any

from accounts.exceptions import StaleUser
from dynamo import Model, Stale, Unavailable
from tests.interleavings.operations import DEAD
from tests.interleavings.scheduler import Scenario
from tests.operations import Operation, Stored, nothing, plain, said

Faults = dict[str, Any]
STALE = (Stale, StaleUser)
LOSS: Faults = {"losses": 1}
FORGETFUL: Faults = {"losses": 1, "forgetful": True}


@dataclass(frozen=True, eq=False)
class Race:
    """`acts` at once, each on a copy of what `given` stores and returns.

    `operation` is one of the register. Its tables are compared, and its rules are checked. `begin`
    sets what processes remember at first. `quick` are the faults of `explore` in `make test`,
    `slow` those in `make test-slow`.

    An act whose process died or that got no answer is done or not. Those of `readers` read the item
    themselves, and may be refused as stale instead. Those of `vague` may also be told so after a
    lost reply, although they were done before another one undid it. Answers are compared if
    `is_told`.
    """

    operation: Operation
    acts: Sequence[Callable[[Any], object]]
    given: Callable[[], Any]
    quick: Faults | None = field(default_factory=dict)
    slow: Faults | None = None
    readers: Collection[int] = ()
    is_told: bool = True
    vague: Collection[int] = ()
    begin: Callable[[], None] = nothing


def at_once(race: Race) -> Scenario:
    """The scenario of a race."""
    operations, before = _prepared(race)

    def always(wrote: bool) -> None:
        if wrote:
            race.operation.assert_sound()

    def afterwards(outcomes: list[Any]) -> None:
        left = plain(_read(race), before)
        told = [_word(outcome) for outcome in outcomes]
        stale = _of(outcomes, lambda each: isinstance(each, STALE))
        unknown = _of(outcomes, lambda each: each == DEAD or isinstance(each, Unavailable))
        unknown |= stale & {*race.vague}
        absent = (unknown | stale & {*race.readers}) - scenario.late
        compared = set(range(len(outcomes))) - unknown - scenario.late if race.is_told else set()
        ends = [_end(race, order) for order in _orders(len(outcomes), absent)]
        assert any(
            left == stored and all(told[key] == words[key] for key in compared & words.keys())
            for stored, words in ends
        ), (told, scenario.late, left, ends)

    scenario = Scenario(operations, afterwards, always, is_alike=len({*race.acts}) == 1)
    return scenario


def _prepared(race: Race) -> tuple[list[Callable[[], object]], Stored]:
    """The acts, each with its copy of what is given, and what is stored before."""
    given, before = _given(race)
    race.operation.restore(before, left_by.get(race))
    race.begin()
    # Acts change no other object.
    copies = [deepcopy(given) if isinstance(given, Model) else given for _act in race.acts]
    return [partial(act, copy) for act, copy in zip(race.acts, copies, strict=True)], before


@cache
def _given(race: Race) -> tuple[Any, Stored]:
    """What the race begins with: what is given, and what is stored."""
    race.operation.empty()
    given = race.given()
    return given, _read(race)


#: What the last schedule of a race has left, where the next one begins.
left_by: dict[Race, Stored] = {}


def _read(race: Race) -> Stored:
    """What is stored now."""
    left_by[race] = race.operation.stored()
    return left_by[race]


def _of(outcomes: list[Any], is_so: Callable[[Any], bool]) -> set[int]:
    return {number for number, outcome in enumerate(outcomes) if is_so(outcome)}


@cache
def _end(race: Race, order: tuple[int, ...]) -> tuple[list[Any], dict[int, str]]:
    """What is stored, and each answer, after these acts one after another."""
    operations, before = _prepared(race)
    told = {}
    for number in order:
        try:
            told[number] = _word(operations[number]())
        except Exception as error:
            told[number] = _word(error)
    return plain(_read(race), before), told


def _orders(count: int, absent: set[int]) -> Iterator[tuple[int, ...]]:
    """Every order of the acts, without some of those that may be absent."""
    for missing in range(len(absent) + 1):
        for without in combinations(sorted(absent), missing):
            yield from permutations(sorted(set(range(count)) - set(without)))


def _word(outcome: Any) -> str:
    if isinstance(outcome, (AssertionError, AttributeError, TypeError)):
        raise outcome  # a mistake, not a refusal
    # Whether it says that the item was deleted depends on when it looked.
    return type(outcome).__name__ if isinstance(outcome, STALE) else said(outcome) or "done"
