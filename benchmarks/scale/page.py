"""The page docs/scale.md: what was measured and computed, and what follows; and simulation.md."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from benchmarks.scale import loads
from benchmarks.scale.loads import DAY_SECONDS, SIGN_UPS, USERS, Load
from benchmarks.scale.operations import Measured
from benchmarks.scale.partitions import HEAT_SECONDS, LATENCY
from benchmarks.scale.prices import (
    BACKUP_DOLLARS,
    NEW_TABLE_WRITES,
    PARTITION_READS,
    PARTITION_WRITES,
    READ_DOLLARS,
    READ_ON,
    REGION,
    STORAGE_DOLLARS,
    TABLE_QUOTA,
    WRITE_DOLLARS,
    dollars,
)
from benchmarks.scale.scenarios import Row
from benchmarks.scale.tally import Tally

A_MILLION = 1_000_000
#: The text of the page, with the names of the figures.
TEMPLATE = Path(__file__).with_name("page.md")


def costs(measured: Measured) -> str:
    """One row for all operations with the same requests, units and dollars per million."""
    lines = [
        "| operation | requests | write units | read units | dollars per million |",
        "|---|---:|---:|---:|---:|",
    ]
    rows: dict[str, list[str]] = {}
    for name, tally in measured.items():
        units = f"{_units(tally.writes)} | {_units(tally.reads)}"
        rows.setdefault(f"{len(tally.requests)} | {units} | {_dollars(tally)}", []).append(name)
    lines += [f"| {'; '.join(names)} | {cost} |" for cost, names in rows.items()]
    return "\n".join(lines)


def _dollars(tally: Tally) -> str:
    price = Decimal(f"{A_MILLION * dollars(tally.writes, tally.reads):.6f}")
    return f"{price.quantize(Decimal('0.01'), ROUND_HALF_UP):,}"


def _units(units: float) -> str:
    return f"{units:,.0f}" if units else ""


def needs(load: Load, measured: Measured) -> str:
    """One row per table: units per second at the load's peak."""
    lines = ["| table | write units per second | read units per second |", "|---|---:|---:|"]
    for need in loads.needs(load, measured):
        lines.append(f"| `{need.table}` | {need.writes:,.0f} | {need.reads:,.0f} |")
    return "\n".join(lines)


def storage(stored: dict[str, float]) -> str:
    """The gigabytes of a million items of each kind."""
    return ", ".join(
        f"{kind} {size_bytes * A_MILLION / 1e9:.1f}" for kind, size_bytes in stored.items()
    )


def simulated(rows: list[Row]) -> str:
    """One row per scenario: refused and late callers, and the times of the others."""
    lines = ["| load | refused | over 1 s | median ms | 99 % ms |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        told = row.outcomes
        waited = f"{told.milliseconds(50):,.0f} | {told.milliseconds(99):,.0f}"
        lines.append(
            f"| {row.load} | {_percent(told.refused_percent)} | {_percent(told.late_percent)} "
            f"| {waited} |"
        )
    return "\n".join(lines)


def _percent(percent: float) -> str:
    return f"{percent:.0f} %" if percent >= 0.5 else "" if percent == 0 else "< 1 %"


def simulation(rows: list[Row]) -> str:
    """The text of simulation.md."""
    single, transaction = (LATENCY[kind] * 1000 for kind in ("single", "transaction"))
    return f"""# Hot keys, simulated

`make scale` writes this page. It simulates partitions, keys, throttling and splits as AWS documents
them, and calls our own functions for retries, combining and pauses. It assumes that a request takes
{single:.0f} ms and a transaction {transaction:.0f} ms in the median, and that a hot partition is
split after {HEAT_SECONDS:g} seconds (AWS needs minutes). *Refused* callers did not get an answer
within 5 seconds and saw a 503, or waited for a lock for one lease and a poll.

{simulated(rows)}

Sources: AWS's developer guide; J. Hunter and V. Natarajan, "Scaling DynamoDB", AWS Database Blog,
2023; M. Elhemali and others, "Amazon DynamoDB", USENIX ATC 2022.
"""


def text(measured: Measured, stored: dict[str, float]) -> str:
    """The whole page."""
    account_bytes = stored["account"] + 2 * stored["guard of an account"]
    sign_up_gb = account_bytes * 1000 * DAY_SECONDS / 1e9
    two_units = PARTITION_WRITES // 2
    return TEMPLATE.read_text(encoding="utf-8").format(
        region=REGION,
        read_on=READ_ON,
        write_dollars=f"{WRITE_DOLLARS * A_MILLION:.3f}",
        read_dollars=f"{READ_DOLLARS * A_MILLION:.3f}",
        costs=costs(measured),
        storage=storage(stored),
        storage_dollars=f"{STORAGE_DOLLARS:.2f}",
        backup_dollars=f"{BACKUP_DOLLARS:.2f}",
        sign_up_requests=f"{loads.requests_a_second(SIGN_UPS, measured):,.0f}",
        sign_up_dollars=f"{loads.dollars_a_day(SIGN_UPS, measured):,.0f}",
        sign_up_needs=needs(SIGN_UPS, measured),
        sign_up_gb=f"{sign_up_gb:,.0f}",
        users_requests=f"{loads.requests_a_second(USERS, measured):,.0f}",
        users_dollars=f"{loads.dollars_a_day(USERS, measured):,.0f}",
        users_needs=needs(USERS, measured),
        users_peak=f"{USERS.peak:g}",
        new_table_writes=f"{NEW_TABLE_WRITES:,}",
        table_quota=f"{TABLE_QUOTA:,}",
        partition_writes=f"{PARTITION_WRITES:,}",
        partition_reads=f"{PARTITION_READS:,}",
        pairs_limit=two_units,
        # A little is lost between groups.
        series_limit=two_units - 10,
    )
