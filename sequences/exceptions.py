"""What can go wrong with counters.

SequenceError
├── ReservedName          the name belongs to the counter of an invoice series
├── NotACounter           the stored value is not a whole number
└── CounterContended      the optimistic strategy lost every race until its deadline
"""

from __future__ import annotations


class SequenceError(Exception):
    """Base of every error of counters and series."""


class ReservedName(SequenceError):
    """A counter cannot have this name: it counts the invoices of a series."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"The name {self.name!r} belongs to an invoice series, which counts by itself."


class NotACounter(SequenceError):
    """What is stored under this name is no whole number, so it cannot be counted up."""

    def __init__(self, name: str, stored: object = None) -> None:
        super().__init__(name, stored)
        self.name = name
        self.stored = stored

    def __str__(self) -> str:
        return f"The counter {self.name!r} holds no whole number: {self.stored!r}."


class CounterContended(SequenceError):
    """Others changed the counter at every try until the deadline; no number was drawn."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"The counter {self.name!r} is too busy for the optimistic strategy."
