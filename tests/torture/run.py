"""A run: its engine, proxy and processes, and when they are killed, frozen or cut off.

    with running(folder, seed) as run:
        run.run(seconds)
        result = tests.torture.result.check(run)

The seed determines which faults happen; when exactly they hit a process depends on the machine.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from dynamo.client import sending
from dynamo.tables import definitions as tables
from tests import engines
from tests.faults.random_faults import RandomFaults
from tests.faults.random_proxy import RandomFaultProxy
from tests.torture.clients.client import Plan
from tests.torture.worker import serve, work
from tests.waiting import wait_until

#: How long the clients may take for their last calls before they are killed.
LAST_CALLS_SECONDS = 30.0
WORKERS, SERVERS = 3, 2
#: How often a line tells the progress.
TOLD_EVERY_SECONDS = 10.0


@dataclass(frozen=True, eq=False)
class _Process:
    """A process in the life of that number; when it is killed, its next life begins."""

    kind: str
    name: str
    target: Callable[..., None]
    arguments: tuple[Any, ...]
    number: int
    process: BaseProcess


@contextmanager
def running(folder: Path, seed: str) -> Iterator[Run]:
    """The engine and the proxy of a run. Everything that it starts is ended with the block."""
    for name in ("histories", "resources", "logs", "engine"):
        (folder / name).mkdir(parents=True)
    with ExitStack() as stack:
        engine = engines.Durable(folder / "engine")
        stack.callback(engine.kill)
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        environment.setenv("AWS_ENDPOINT_URL_DYNAMODB", engine.url)
        for table in tables.all_tables():
            tables.create(table)
        sending.reset()
        faults = RandomFaults(f"{seed} of DynamoDB")
        proxy = stack.enter_context(RandomFaultProxy(engine.url, faults))
        environment.setenv("AWS_ENDPOINT_URL_DYNAMODB", proxy.url)
        environment.setenv("PYTHONPATH", str(Path.cwd()))
        run = Run(folder, seed, engine, proxy)
        stack.callback(run.end_all)
        yield run


class Run:
    """A run. Read `ends`, when each killed process was dead, and what was done, in `counts`."""

    def __init__(
        self, folder: Path, seed: str, engine: engines.Durable, proxy: RandomFaultProxy
    ) -> None:
        self.folder, self.proxy, self.faults = folder, proxy, proxy.faults
        self.ends: dict[str, float] = {}
        self.engine_kills: list[float] = []
        self.counts: Counter[str] = Counter()
        self._seed = seed
        self._engine = engine
        self._chance = random.Random(f"{seed} of the run")
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.torture.worker"])
        self._processes: list[_Process] = []
        self._frozen: list[tuple[float, BaseProcess]] = []

    def run(self, seconds: float) -> None:
        """Run the clients for so long, then wait for their last calls."""
        ports = [engines.free_port() for _ in range(SERVERS)]
        for number, port in enumerate(ports):
            self._start("servers", f"s{number}", serve, (self.folder, port))
        # They are forked from a process that loads everything first.
        wait_until(lambda: all(map(engines.is_listening, ports)))
        began = time.monotonic()
        ends_at = began + seconds
        plan = Plan(self.folder, self._seed, ends_at, ports)
        for number in range(WORKERS):
            self._start("workers", f"w{number}", work, (plan,))
        next_line = 0.0
        while (now := time.monotonic()) < ends_at:
            if now >= next_line:
                self._tell(now - began, seconds)
                next_line = now + TOLD_EVERY_SECONDS
            self._thaw(now)
            time.sleep(min(0.1, max(0.0, ends_at - now)))
            if self._chance.random() < 0.06:
                self._do_harm()
        self._thaw(float("inf"))
        self._finish()

    def _tell(self, passed: float, seconds: float) -> None:
        kills = sum(count for name, count in self.counts.items() if "killed" in name)
        line = f"{passed:5.0f} of {seconds:.0f} s: {self.faults.requests:,} requests, "
        line += f"{self.faults.counts.total():,} faults, {kills:,} kills"
        print(line, file=sys.stderr, flush=True)

    # Faults of processes.

    def _do_harm(self) -> None:
        each = self._chance.choice(self._processes)
        kinds = {"workers": 35, "servers": 20}
        what = self._chance.choices(
            [*kinds, "freeze", "cut", "engine"], weights=[*kinds.values(), 20, 18, 7]
        )[0]
        if what in kinds:
            each = self._chance.choice([one for one in self._processes if one.kind == what])
            self.counts[f"{what} killed"] += 1
            self._processes.remove(each)
            self._end(each)
            self._start(each.kind, each.name, each.target, each.arguments, each.number + 1)
        elif what == "freeze":
            self.counts[f"{each.kind} frozen"] += 1
            os.kill(_pid(each.process), signal.SIGSTOP)
            until = time.monotonic() + self._chance.choice([0.3, 1, 2, 4])
            self._frozen.append((until, each.process))
        elif what == "cut":
            self.counts["cuts for seconds"] += 1
            self.faults.cut(self._chance.uniform(0.3, 4))
        else:
            self._kill_engine()

    def _thaw(self, now: float) -> None:
        for until, process in self._frozen:
            if until <= now and any(item.process is process for item in self._processes):
                os.kill(_pid(process), signal.SIGCONT)
        self._frozen = [item for item in self._frozen if item[0] > now]

    def _kill_engine(self) -> None:
        self.counts["engines killed"] += 1
        self.proxy.drop_what_arrived()
        self.engine_kills.append(time.monotonic())
        self._engine.kill()
        self.proxy.wait_until_none_is_under_way()
        time.sleep(self._chance.choice([0, 0, 0.5]))
        self._engine.restart()

    # Start and end.

    def _start(
        self, kind: str, name: str, target: Any, arguments: tuple[Any, ...], number: int = 1
    ) -> None:
        life = f"{name}.{number}"
        process = self._context.Process(
            target=target, args=(life, *arguments), name=life, daemon=True
        )
        process.start()
        self._processes.append(_Process(kind, name, target, arguments, number, process))
        self.counts["processes started"] += 1

    def _end(self, each: _Process) -> None:
        each.process.kill()
        each.process.join()
        self.ends[each.process.name] = time.monotonic()

    def end_all(self) -> None:
        while self._processes:
            self._end(self._processes.pop())

    def _finish(self) -> None:
        self.faults.clear()
        gives_up_at = time.monotonic() + LAST_CALLS_SECONDS
        for process in self._processes:
            if process.kind == "workers":
                process.process.join(max(0.0, gives_up_at - time.monotonic()))
        self.end_all()
        # For requests that the proxy still holds or sends again.
        time.sleep(2)


def _pid(process: BaseProcess) -> int:
    assert process.pid is not None
    return process.pid
