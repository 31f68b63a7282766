"""The linearizability check: overlapping operations may have happened in any allowed order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from tests.torture.linear import Operation, first_break

# One register: 0 at first.


def write(began: float, ended: float, value: int, **options: Any) -> Operation:
    return Operation(began, ended, lambda _state: iter([value]), about=value, **options)


def read(began: float, ended: float, value: int) -> Operation:
    return Operation(began, ended, partial(_shows, value), about=value)


def swap(began: float, ended: float, old: int, new: int, **options: Any) -> Operation:
    return Operation(began, ended, partial(_swaps, old, new), about=(old, new), **options)


def _shows(value: int, state: int) -> Iterator[int]:
    if state == value:
        yield state


def _swaps(old: int, new: int, state: int) -> Iterator[int]:
    if state == old:
        yield new


def is_linearizable(*operations: Operation) -> bool:
    return first_break(operations, 0) is None


def test_operations_one_after_the_other_see_the_state_before_them() -> None:
    assert is_linearizable(read(0, 1, 0), write(2, 3, 7), read(4, 5, 7))
    assert not is_linearizable(write(2, 3, 7), read(4, 5, 0))


def test_a_read_during_a_write_may_show_either_state() -> None:
    assert is_linearizable(write(0, 10, 7), read(2, 3, 0))
    assert is_linearizable(write(0, 10, 7), read(2, 3, 7))
    assert not is_linearizable(write(0, 10, 7), read(2, 3, 8))


def test_two_reads_during_a_write_may_not_show_new_and_then_old() -> None:
    assert is_linearizable(write(0, 10, 7), read(2, 3, 0), read(4, 5, 7))
    assert not is_linearizable(write(0, 10, 7), read(2, 3, 7), read(4, 5, 0))


def test_two_swaps_cannot_both_need_the_same_state() -> None:
    assert not is_linearizable(swap(0, 10, 0, 1), swap(0, 10, 0, 2))
    assert is_linearizable(swap(0, 10, 0, 1), swap(0, 10, 0, 2), swap(0, 10, 1, 0))


def test_an_order_is_found_that_no_start_or_end_suggests() -> None:
    # Only 3, 2, 1 explains what each of them found.
    assert is_linearizable(swap(0, 9, 2, 3), swap(1, 8, 1, 2), swap(2, 7, 0, 1), read(10, 11, 3))


def test_an_unknown_operation_may_have_happened_or_not() -> None:
    maybe = write(0, 10, 7, is_certain=False)

    assert is_linearizable(maybe, read(11, 12, 0))
    assert is_linearizable(maybe, read(11, 12, 7))
    assert is_linearizable(maybe, read(1, 2, 0), read(3, 4, 7))
    assert not is_linearizable(maybe, read(1, 2, 7), read(3, 4, 0))


def test_an_unknown_operation_has_not_happened_before_its_start_or_after_its_latest_end() -> None:
    maybe = write(5, 10, 7, is_certain=False)

    assert not is_linearizable(maybe, read(1, 2, 7))
    assert not is_linearizable(maybe, read(11, 12, 0), read(13, 14, 7))


def test_an_unknown_operation_may_have_happened_between_two_known_ones() -> None:
    maybe = swap(0, 10, 1, 2, is_certain=False)

    assert is_linearizable(maybe, swap(0, 10, 0, 1), swap(0, 10, 2, 3), read(11, 12, 3))


def test_the_second_part_of_a_call_has_its_effect_after_the_first() -> None:
    def swap_and_read(value: int) -> list[Operation]:
        return [swap(0, 10, 0, 1), replace(read(0, 10, value), is_second=True)]

    assert is_linearizable(*swap_and_read(1))
    assert is_linearizable(*swap_and_read(2), swap(5, 6, 1, 2))
    assert not is_linearizable(*swap_and_read(0))
    assert not is_linearizable(*swap_and_read(2), swap(5, 6, 0, 2), swap(5, 6, 2, 0))
    assert not is_linearizable(*swap_and_read(2), swap(11, 12, 1, 2))


def test_the_culprit_is_the_first_operation_that_no_order_explains() -> None:
    culprit = read(4, 5, 8)

    broken = first_break([write(0, 1, 7), read(2, 3, 7), culprit, read(6, 7, 9)], 0)

    assert broken is not None
    assert broken.culprit is culprit
    assert [each.about for each in broken.before] == [7, 7]
    assert broken.states == [7]


def test_a_long_history_with_few_overlapping_operations_is_checked_quickly() -> None:
    operations = []
    for number in range(400):
        operations.append(swap(number, number + 3.5, number, number + 1))
        operations.append(write(number, number + 3.5, -1, is_certain=False))
    # None of these may have happened: they would have stopped the count.
    operations.append(read(5000, 5001, 400))

    assert is_linearizable(*operations)
