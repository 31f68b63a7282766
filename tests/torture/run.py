"""A run: its engines, proxies and processes, and when they are killed, frozen or cut off.

    with Run(options) as run:
        run.run(progress)
        result = tests.torture.result.check(run)

The seed determines which faults happen; when exactly they hit a process depends on the machine.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

import boto3

from dynamo._internal import tables
from tests import engines
from tests.faults.random_faults import RandomFaults
from tests.faults.random_proxy import S3, RandomFaultProxy, RandomFaultS3Proxy
from tests.torture import batches
from tests.torture.clients.uploads import BUCKET
from tests.torture.worker import Place, Plan, serve, work
from tests.waiting import wait_until

#: How long the clients may take for their last calls before they are killed.
LAST_CALLS_SECONDS = 30.0


@dataclass(frozen=True)
class Options:
    """`slowness` multiplies the pauses of clients."""

    seconds: float
    seed: str
    place: Place
    workers: int = 3
    servers: int = 2
    slowness: float = 1.0
    engine_kills: bool = True


@dataclass
class _Process:
    """A process that is killed and started again; its lives are numbered."""

    kind: str
    name: str
    target: Any
    arguments: tuple[Any, ...]
    lives: int = 0
    process: BaseProcess | None = None

    @property
    def life(self) -> str:
        return f"{self.name}.{self.lives}"


@dataclass
class Happened:
    """What was done to the processes, and when."""

    ends: dict[str, float] = field(default_factory=dict)
    engine_kills: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class Run:
    """A run. Everything that it starts is ended with its block."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._chance = random.Random(f"{options.seed} of the run")
        self._stack = ExitStack()
        self._context = multiprocessing.get_context("forkserver")
        self._workers: list[_Process] = []
        self._servers: list[_Process] = []
        self._frozen: list[tuple[float, int]] = []
        self.happened = Happened()
        self._cpu: dict[str, float] = {}

    def __enter__(self) -> Self:
        options = self.options
        options.place.make()
        with ExitStack() as stack:
            self._engine = engines.Durable(options.place.engine)
            stack.callback(self._engine.kill)
            s3_url = stack.enter_context(engines.running("s3"))
            self.faults = RandomFaults(f"{options.seed} of DynamoDB")
            self.s3_faults = RandomFaults(f"{options.seed} of S3", S3)
            self.proxy = stack.enter_context(RandomFaultProxy(self._engine.url, self.faults))
            self.s3_proxy = stack.enter_context(RandomFaultS3Proxy(s3_url, self.s3_faults))
            self.s3 = boto3.client("s3", endpoint_url=s3_url, region_name="us-east-1")
            self.s3.create_bucket(Bucket=BUCKET)
            stack.enter_context(_environment(self.proxy.url, self.s3_proxy.url))
            self._make_tables()
            self._context.set_forkserver_preload(["tests.torture.worker"])
            stack.callback(self._end_all)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    @property
    def latest_seconds(self) -> float:
        """How long the slowest request took from its arrival at the proxy to the engine's reply."""
        return max(self.proxy.latest_seconds, self.s3_proxy.latest_seconds)

    def _make_tables(self) -> None:
        os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = self._engine.url
        for table in tables.all_tables():
            tables.create(table)
        from dynamo._internal.client import sending

        sending.reset()
        os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = self.proxy.url

    def run(self, progress: Any) -> None:
        """Run the clients until the time is over, then wait for their last calls."""
        options = self.options
        ports = [engines.free_port() for _ in range(options.servers)]
        self._servers = [
            _Process("servers", f"s{n}", serve, (options.place, port))
            for n, port in enumerate(ports)
        ]
        for each in self._servers:
            self._start(each)
        # They are forked from a process that loads everything first.
        wait_until(lambda: all(map(engines.is_listening, ports)))
        ends_at = time.monotonic() + options.seconds
        plan = Plan(options.place, options.seed, ends_at, ports, options.slowness)
        self._workers = [
            _Process("workers", f"w{n}", work, (plan,)) for n in range(options.workers)
        ]
        for each in self._workers:
            self._start(each)
        next_batch = next_measure = 0.0
        while (now := time.monotonic()) < ends_at:
            if now >= next_batch:
                batches.make(options.place.uploads, self._chance)
                next_batch = now + batches.EVERY_SECONDS
            self._thaw(now)
            time.sleep(min(0.1, max(0.0, ends_at - now)))
            if self._chance.random() < 0.06:
                self._do_harm()
            if now >= next_measure:
                self._measure_cpu()
                next_measure = now + 1
            progress(self)
        self._thaw(float("inf"))
        self._finish()

    def cpu_seconds(self, name: str) -> float:
        """The CPU that the workers (`w`) or servers (`s`) have used, as measured each second."""
        return sum(seconds for life, seconds in self._cpu.items() if life.startswith(name))

    def _measure_cpu(self) -> None:
        for each in self._processes:
            if each.process is not None and (seconds := cpu_seconds_of(each.process.pid)):
                self._cpu[each.life] = seconds

    @property
    def _processes(self) -> list[_Process]:
        return [*self._workers, *self._servers]

    # Faults of processes.

    def _do_harm(self) -> None:
        what = self._chance.choices(
            [self._kill_worker, self._kill_server, self._freeze, self._cut, self._kill_engine],
            weights=[35, 20, 20, 18, 7 if self.options.engine_kills else 0],
        )[0]
        what()

    def _kill_worker(self) -> None:
        self._kill(self._chance.choice(self._workers))

    def _kill_server(self) -> None:
        self._kill(self._chance.choice(self._servers))

    def _kill(self, each: _Process) -> None:
        self.happened.counts[f"{each.kind} killed"] += 1
        self._end(each)
        self._start(each)

    def _freeze(self) -> None:
        each = self._chance.choice(self._processes)
        if each.process is not None and each.process.pid is not None:
            self.happened.counts[f"{each.kind} frozen"] += 1
            os.kill(each.process.pid, signal.SIGSTOP)
            until = time.monotonic() + self._chance.choice([0.3, 1, 2, 4])
            self._frozen.append((until, each.process.pid))

    def _thaw(self, now: float) -> None:
        for until, pid in self._frozen:
            if until <= now and any(
                each.process is not None and each.process.pid == pid for each in self._processes
            ):
                os.kill(pid, signal.SIGCONT)
        self._frozen = [(until, pid) for until, pid in self._frozen if until > now]

    def _cut(self) -> None:
        self.happened.counts["cuts for seconds"] += 1
        seconds = self._chance.uniform(0.3, 4)
        self._chance.choice([self.faults, self.faults, self.s3_faults]).cut(seconds)

    def _kill_engine(self) -> None:
        self.happened.counts["engines killed"] += 1
        self.proxy.drop_what_arrived()
        self.happened.engine_kills.append(time.monotonic())
        self._engine.kill()
        self.proxy.wait_until_none_is_under_way()
        time.sleep(self._chance.choice([0, 0, 0.5]))
        self._engine.restart()

    # Start and end.

    def _start(self, each: _Process) -> None:
        each.lives += 1
        each.process = self._context.Process(
            target=each.target, args=(each.life, *each.arguments), name=each.life, daemon=True
        )
        each.process.start()
        self.happened.counts["processes started"] += 1

    def _end(self, each: _Process) -> None:
        if each.process is not None:
            self._measure_cpu()
            each.process.kill()
            each.process.join()
            each.process = None
            self.happened.ends[each.life] = time.monotonic()

    def _end_all(self) -> None:
        for each in self._processes:
            self._end(each)

    def _finish(self) -> None:
        self.faults.clear()
        self.s3_faults.clear()
        gives_up_at = time.monotonic() + LAST_CALLS_SECONDS
        for each in self._workers:
            assert each.process is not None
            each.process.join(max(0.0, gives_up_at - time.monotonic()))
        self._end_all()
        # For requests that the proxies still hold or send again.
        time.sleep(2)


def cpu_seconds_of(pid: int | None) -> float:
    """The CPU that a process has used, or 0 if it has ended. Source: proc(5), utime and stime."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _environment(dynamodb: str, s3: str) -> Iterator[None]:
    """Set the environment of the processes."""
    values = {
        "AWS_ENDPOINT_URL_DYNAMODB": dynamodb,
        "AWS_ENDPOINT_URL_S3": s3,
        "PYTHONPATH": str(Path.cwd()),
    }
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
