"""Calls for the tests of the checkers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.torture.history import Call, Outcome

_IN_TURN = (-1.0, -1.0)


def call(
    do: str,
    outcome: Outcome = "ok",
    *,
    at: tuple[float, float] = _IN_TURN,
    answer: dict[str, Any] | None = None,
    notes: Sequence[tuple[float, dict[str, Any]]] = (),
    lingers: float = 0.0,
    **asked: Any,
) -> Call:
    """A call that begins and ends `at` these times, or see `in_turn`."""
    return Call(do, "x", *at, outcome, asked, answer or {}, list(notes), lingers)


def in_turn(calls: Sequence[Call]) -> list[Call]:
    """The calls, with times for those without: the first from 0 to 1, the second from 2 to 3 …"""
    return [
        replace(item, began=2.0 * number, ended=2.0 * number + 1)
        if (item.began, item.ended) == _IN_TURN
        else item
        for number, item in enumerate(calls)
    ]
