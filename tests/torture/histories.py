"""Calls for the tests of the checkers."""

from __future__ import annotations

from typing import Any

from tests.torture.history import Call, Outcome


def call(
    do: str,
    began: float,
    ended: float,
    outcome: Outcome = "ok",
    *,
    answer: dict[str, Any] | None = None,
    notes: list[tuple[float, dict[str, Any]]] | None = None,
    lingers: float = 0.0,
    **asked: Any,
) -> Call:
    return Call(do, "x", began, ended, outcome, asked, answer or {}, notes or [], lingers)
