"""Runs worker processes of each contender and prints what they measured as a table.

A worker is a program that prints `ready`, waits for a line, runs its operations in several
threads and prints one line of JSON: `{"seconds", "cpu_seconds", "milliseconds": [of each
operation], "made": how many were not refused, "requests", "units"}`.
Every figure is the median of the rounds; in each round all contenders run, in rotated order.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

Command = Callable[[int, int], list[str]]
"""Makes a worker's command line from its threads and operations."""


@dataclass(frozen=True)
class Contender:
    """One way to do the job. `env` is the worker's environment.

    `share` is its part of the operations: less than 1 for a slow one.
    """

    name: str
    command: Command
    env: dict[str, str]
    share: float = 1.0


@dataclass(frozen=True)
class Load:
    """How many processes, of how many threads each."""

    processes: int
    threads: int

    def __str__(self) -> str:
        return f"{self.processes} × {self.threads}"


@dataclass(frozen=True)
class Result:
    """One run: operations per second, latencies, and CPU, requests and units per operation.

    `made` counts the operations that were not refused.
    """

    rate: float
    median_ms: float
    p99_ms: float
    cpu_ms: float
    requests: float
    units: float
    made: float


def measure(contender: Contender, load: Load, operations: int) -> Result:
    """Run `operations` in all, spread over the processes of `load`."""
    share = operations // load.processes
    workers = [
        subprocess.Popen(
            contender.command(load.threads, share),
            env=contender.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(load.processes)
    ]
    for worker in workers:
        _expect_ready(contender, worker)
    for worker in workers:
        _say(worker, "go\n")
    answers = [_answer(contender, worker) for worker in workers]
    latencies = [millisecond for answer in answers for millisecond in answer["milliseconds"]]
    done = len(latencies)
    return Result(
        rate=done / max(answer["seconds"] for answer in answers),
        median_ms=statistics.median(latencies),
        p99_ms=statistics.quantiles(latencies, n=100)[98],
        cpu_ms=sum(answer["cpu_seconds"] for answer in answers) / done * 1000,
        requests=sum(answer["requests"] for answer in answers) / done,
        units=sum(answer["units"] for answer in answers) / done,
        made=sum(answer.get("made", done) for answer in answers),
    )


def _expect_ready(contender: Contender, worker: subprocess.Popen[str]) -> None:
    line = worker.stdout.readline() if worker.stdout else ""
    if line.strip() != "ready":
        worker.wait()
        raise SystemExit(f"{contender.name}: the worker did not start: {line}")


def _say(worker: subprocess.Popen[str], line: str) -> None:
    if worker.stdin:
        worker.stdin.write(line)
        worker.stdin.flush()


def _answer(contender: Contender, worker: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = worker.communicate()
    if worker.returncode:
        raise SystemExit(f"{contender.name}: the worker failed with {worker.returncode}")
    return json.loads(out.splitlines()[-1])


def compare(
    contenders: Sequence[Contender],
    loads: Sequence[Load],
    operations: Callable[[Load], int],
    rounds: int,
    between: Callable[[], None] = lambda: None,
) -> dict[tuple[str, Load], Result]:
    """Run every contender under every load, `rounds` times in rotated order; return the medians.

    `between` runs before each round and empties the engine, which gets slower as its file grows.
    """
    runs: dict[tuple[str, Load], list[Result]] = {}
    for number in range(rounds):
        between()
        turn = number % len(contenders)
        order = [*contenders[turn:], *contenders[:turn]]
        for load in loads:
            for contender in order:
                sys.stderr.write(f"round {number + 1}: {load} {contender.name}\n")
                count = int(operations(load) * contender.share)
                result = measure(contender, load, count)
                runs.setdefault((contender.name, load), []).append(result)
    return {key: _median(results) for key, results in runs.items()}


def _median(results: list[Result]) -> Result:
    return Result(
        *(
            statistics.median(getattr(result, field.name) for result in results)
            for field in fields(Result)
        )
    )


def print_table(
    title: str,
    contenders: Sequence[Contender],
    loads: Sequence[Load],
    results: dict[tuple[str, Load], Result],
) -> None:
    """Print Markdown: a row a contender and load."""
    print(f"\n### {title}\n")
    print(
        "| processes × threads | contender | per second | median ms | 99 % ms | CPU ms "
        "| requests | units |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for load in loads:
        for contender in contenders:
            result = results[contender.name, load]
            units = f"{result.units:.2f}" if result.units else "–"
            requests = f"{result.requests:.2f}" if result.requests else "–"
            print(
                f"| {load} | {contender.name} | {result.rate:,.0f} | {result.median_ms:.1f} | "
                f"{result.p99_ms:.1f} | {result.cpu_ms:.2f} | {requests} | {units} |"
            )
