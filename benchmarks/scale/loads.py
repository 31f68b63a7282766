"""Two loads in numbers of operations: 1,000 sign-ups per second, and a million users a day."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.scale.operations import Measured
from benchmarks.scale.prices import dollars

DAY_SECONDS = 24 * 60 * 60


@dataclass(frozen=True)
class Load:
    """How often each operation runs in a day. The peak rate is `peak` times the mean."""

    title: str
    a_day: dict[str, float]
    peak: float


SIGN_UPS = Load(
    "1,000 sign-ups per second, all day",
    {
        "page: sign up, with limits": 1000 * DAY_SECONDS,
        "worker: send a mail": 1000 * DAY_SECONDS,
        "page: confirm an email address": 1000 * DAY_SECONDS,
        "page: any, signed in, without its own data": 1000 * DAY_SECONDS,
    },
    peak=1,
)

A_MILLION = 1_000_000
USERS = Load(
    "a million users a day",
    {
        "page: sign in, with limits": A_MILLION,
        "page: any, signed in, without its own data": 20 * A_MILLION,
        "edit the profile": 0.1 * A_MILLION,
        "issue an invoice": 2 * A_MILLION,
        "list 50 invoices": 2 * A_MILLION,
        "next number of a counter": 2 * A_MILLION,
        "upload a file up to 8 MB": 0.5 * A_MILLION,
    },
    peak=5,
)


@dataclass(frozen=True)
class Need:
    """What a load needs of one table: units per second at its peak."""

    table: str
    writes: float
    reads: float


def needs(load: Load, measured: Measured) -> list[Need]:
    """What the load needs of each table."""
    tables = sorted(
        {
            table
            for name in load.a_day
            for request in measured[name].requests
            for table in request.units
        }
    )
    return [
        Need(
            table,
            writes=_peak(load, measured, table, reads=False),
            reads=_peak(load, measured, table, reads=True),
        )
        for table in tables
    ]


def _peak(load: Load, measured: Measured, table: str, *, reads: bool) -> float:
    units = sum(
        times * measured[name].units(reads=reads, table=table) for name, times in load.a_day.items()
    )
    return load.peak * units / DAY_SECONDS


def dollars_a_day(load: Load, measured: Measured) -> float:
    """The dollars of its requests to DynamoDB, without S3, storage and traffic."""
    return sum(
        times * dollars(measured[name].writes, measured[name].reads)
        for name, times in load.a_day.items()
    )


def requests_a_second(load: Load, measured: Measured) -> float:
    """Its requests per second at the peak."""
    a_day = sum(times * len(measured[name].requests) for name, times in load.a_day.items())
    return load.peak * a_day / DAY_SECONDS
