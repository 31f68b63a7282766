"""What all workers do: warm up, print `ready`, wait for a line, work, and print what they measured.

`benchmarks.harness` describes what a worker prints. Standard library only, because some workers run
without this project.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Operation = Callable[[str], object]
"""What is measured. Its argument is the name that all callers share. False: it was refused."""


class Cost:
    """Requests and capacity of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests = 0
        self.units = 0.0

    def note(self, response: dict[str, Any], **_signal: Any) -> None:
        """Count one reply."""
        consumed = response.get("ConsumedCapacity", [])
        with self._lock:
            self.requests += 1
            for item in consumed if isinstance(consumed, list) else [consumed]:
                self.units += item["CapacityUnits"]

    def forget(self) -> None:
        """Start again at zero."""
        self.requests, self.units = 0, 0.0


def postgres_settings(**more: Any) -> dict[str, dict[str, Any]]:
    """DATABASES for the cluster of `benchmarks.peers.postgres`."""
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "postgres",
        "USER": os.environ["BENCH_PG_USER"],
        "HOST": "127.0.0.1",
        "PORT": os.environ["BENCH_PG_PORT"],
    }
    return {"default": database | more}


def options_of(contenders: Iterable[str]) -> argparse.Namespace:
    """The options of the command line: `contender`, `threads`, `operations`, `name`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("contender", choices=list(contenders))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--operations", type=int)
    parser.add_argument("--name", help="the account, counter or lock that all share")
    return parser.parse_args()


def work(operation: Operation, options: argparse.Namespace, cost: Cost) -> None:
    """Do what `options` ask for, when the harness says so, and print the answer."""
    operation(f"warm-up-{os.getpid()}")
    cost.forget()
    _say("ready")
    sys.stdin.readline()

    def timed(_number: int) -> tuple[float, bool]:
        began = time.perf_counter()
        made = operation(options.name) is not False
        return (time.perf_counter() - began) * 1000, made

    began = time.perf_counter()
    cpu_began = time.process_time()
    with ThreadPoolExecutor(options.threads) as pool:
        timings = list(pool.map(timed, range(options.operations)))
    seconds = time.perf_counter() - began
    cpu_seconds = time.process_time() - cpu_began
    answer = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "milliseconds": [item for item, _made in timings],
        "made": sum(made for _each, made in timings),
        "requests": cost.requests,
        "units": cost.units,
    }
    _say(json.dumps(answer))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
