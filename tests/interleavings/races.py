"""Operations at once: they leave and answer what they do one after another, in some order."""

from collections.abc import Callable, Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations, permutations
from typing import Any

from accounts.exceptions import StaleUser
from dynamo.exceptions import Stale, Unavailable
from dynamo.models import Model
from tests.interleavings.operations import DEAD
from tests.operations import Operation, plain, said

Faults = dict[str, Any]
STALE = (Stale, StaleUser)
LOSS: Faults = {"losses": 1}
FORGETFUL: Faults = {"losses": 1, "forgetful": True}


@dataclass(frozen=True, eq=False)
class Race:
    """`acts` at once, each on a copy of what `given` stores and returns.

    `world` is an operation on the same tables. `quick` are the faults of `explore` in `make test`,
    `slow` those in `make test-slow`.

    An act whose process died or that got no answer is done or not. Those of `readers` read the item
    themselves, and may be refused as stale instead. Those of `vague` may also be told so after a
    lost reply, although they were done before another one undid it. Answers are compared if
    `is_told`.
    """

    world: Operation
    acts: Sequence[Callable[[Any], object]]
    given: Callable[[], Any]
    quick: Faults | None = field(default_factory=dict)
    slow: Faults | None = None
    readers: Collection[int] = ()
    is_told: bool = True
    vague: Collection[int] = ()


class AtOnce:
    """The scenario of a race."""

    late: set[int]

    def __init__(self, race: Race) -> None:
        self._race = race
        race.world.empty()
        given = race.given()
        self._before = race.world.stored()
        self.operations = [
            partial(act, deepcopy(given) if isinstance(given, Model) else given)
            for act in race.acts
        ]

    def left(self) -> list[Any]:
        """What is stored."""
        return plain(self._race.world.stored(), self._before)

    def always(self, wrote: bool) -> None:
        if wrote:
            self._race.world.assert_sound()

    def afterwards(self, outcomes: list[Any]) -> None:
        left, told = self.left(), [_word(each) for each in outcomes]
        stale = _of(outcomes, lambda each: isinstance(each, STALE))
        unknown = _of(outcomes, lambda each: each == DEAD or isinstance(each, Unavailable))
        unknown |= stale & {*self._race.vague}
        absent = (unknown | stale & {*self._race.readers}) - self.late
        compared = set(range(len(outcomes))) - unknown - self.late if self._race.is_told else set()
        ends = [_end(self._race, order) for order in _orders(len(outcomes), absent)]
        assert any(
            left == stored and all(told[each] == words[each] for each in compared & words.keys())
            for stored, words in ends
        ), (told, self.late, left, ends)


def _of(outcomes: list[Any], is_so: Callable[[Any], bool]) -> set[int]:
    return {number for number, each in enumerate(outcomes) if is_so(each)}


@cache
def _end(race: Race, order: tuple[int, ...]) -> tuple[list[Any], dict[int, str]]:
    """What is stored, and each answer, after these acts one after another."""
    scenario, told = AtOnce(race), {}
    for number in order:
        try:
            told[number] = _word(scenario.operations[number]())
        except Exception as error:
            told[number] = _word(error)
    return scenario.left(), told


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
