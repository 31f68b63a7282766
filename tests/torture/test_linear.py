"""The linearizability check: overlapping operations may have happened in any allowed order."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, permutations
from typing import Any

from tests.torture.linear import Operation, first_break


def swap(began: float, ended: float, old: int, new: int, **options: Any) -> Operation:
    """It needs the value `old` in a register, which is 0 at first."""
    return Operation(began, ended, partial(_swaps, old, new), about=(old, new), **options)


def _swaps(old: int, new: int, state: int) -> Iterator[int]:
    if state == old:
        yield new


def read(began: float, ended: float, value: int) -> Operation:
    return swap(began, ended, value, value)


def drawn(chance: random.Random) -> list[Operation]:
    """A few operations, some of them uncertain. Two may be the parts of one call."""
    operations: list[Operation] = []
    for _number in range(chance.randrange(1, 6)):
        began, ended = sorted(chance.choices(range(9), k=2))
        old, new = chance.choices(range(3), k=2)
        if operations and operations[-1].is_certain and chance.random() < 0.2:
            began = operations[-1].began
            ended = operations[-1].ended
            operations.append(swap(began, ended, old, new, is_second=True))
        else:
            operations.append(swap(began, ended, old, new, is_certain=chance.random() < 0.7))
    return operations


def is_explained(operations: Sequence[Operation]) -> bool:
    """Whether an order of all certain operations and of some others does, by trying all."""
    certain = {number for number, operation in enumerate(operations) if operation.is_certain}
    return any(
        certain <= {*order} and is_possible(order, operations)
        for count in range(len(operations) + 1)
        for order in permutations(range(len(operations)), count)
    )


def is_possible(order: Sequence[int], operations: Sequence[Operation]) -> bool:
    for number, later in combinations(order, 2):
        is_first_later = operations[number].is_second and later == number - 1
        if operations[later].ended < operations[number].began or is_first_later:
            return False
    value = 0
    for number in order:
        old, new = operations[number].about
        if old != value:
            return False
        value = new
    return True


def test_a_history_is_linearizable_if_an_order_of_its_operations_explains_it() -> None:
    chance = random.Random(1)
    counts = Counter[bool]()

    for _history in range(2000):
        operations = drawn(chance)
        expected = is_explained(operations)
        assert (first_break(operations, 0) is None) == expected, operations
        counts[expected] += 1

    assert min(counts[True], counts[False]) > 200


def test_the_culprit_is_the_first_operation_that_no_order_explains() -> None:
    culprit = read(4, 5, 2)

    broken = first_break([swap(0, 1, 0, 1), read(2, 3, 1), culprit, read(6, 7, 0)], 0)

    assert broken is not None
    assert broken.culprit is culprit
    assert [item.about for item in broken.before] == [(0, 1), (1, 1)]
    assert broken.states == [1]
