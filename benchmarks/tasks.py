"""How fast are background tasks enqueued and run? `python -m benchmarks.tasks [rounds]`

It compares `outbox` on dynoxide, django-tasks-db on PostgreSQL, and Celery with Redis. Each worker
is a process with the defaults of its contender; for Celery, one command with as many processes. The
task writes a line into a file.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from benchmarks import peers
from benchmarks.arguments import asked
from benchmarks.harness import Contender, Load, measure

WORKERS = (1, 4)
ENQUEUED, RUN, PACED = 1_000, 1_500, 300
#: How many tasks run first, so that the worker has started.
BEFORE = 10
PATIENCE_SECONDS = 300


@dataclass(frozen=True)
class Queue:
    """A contender: its Python, its environment, and how its queue is emptied."""

    title: str
    name: str
    python: str
    env: dict[str, str]
    empty: Callable[[], object]
    #: Whether one command starts all processes of a number of workers.
    starts_all: bool = False

    def command(self, *arguments: str) -> list[str]:
        return [self.python, "-m", "benchmarks.task_worker", self.name, *arguments]

    def enqueue(self, threads: int, tasks: int) -> float:
        """Enqueue tasks; how many per second."""

        def command(threads: int, share: int) -> list[str]:
            return self.command("enqueue", f"--threads={threads}", f"--operations={share}")

        return measure(Contender(self.title, command, self.env), Load(1, threads), tasks).rate

    @contextmanager
    def workers(self, count: int, notes: Path) -> Iterator[None]:
        env = self.env | {"BENCH_NOTES": str(notes), "BENCH_CONCURRENCY": str(count)}
        processes = [
            subprocess.Popen(self.command("work"), env=env, stdout=subprocess.DEVNULL)
            for _number in range(1 if self.starts_all else count)
        ]
        try:
            yield
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()


@dataclass(frozen=True)
class Figures:
    """The results of one round."""

    enqueued_by_1: float
    enqueued_by_4: float
    run_by_1: float
    run_by_4: float
    median_ms: float
    p99_ms: float


LABELS = {
    "enqueued_by_1": "enqueued per second, 1 thread",
    "enqueued_by_4": "enqueued per second, 4 threads",
    "run_by_1": "run per second, 1 worker",
    "run_by_4": "run per second, 4 workers",
    "median_ms": "from enqueue to start, median ms",
    "p99_ms": "from enqueue to start, 99 % ms",
}


def noted(notes: Path) -> dict[str, list[tuple[float, float]]]:
    """When each task was enqueued and began, by the process that ran it."""
    found = {}
    for file in notes.iterdir():
        # The last line may be incomplete.
        lines = file.read_text().split("\n")[:-1]
        times = [line.split() for line in lines]
        found[file.name] = [(float(enqueued), float(began)) for enqueued, began in times]
    return found


def wait_for(notes: Path, tasks: int) -> dict[str, list[tuple[float, float]]]:
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while sum(map(len, (found := noted(notes)).values())) < tasks:
        if time.monotonic() > ends_at:
            raise SystemExit(f"Of {tasks} tasks {sum(map(len, found.values()))} were run.")
        time.sleep(0.1)
    return found


def rate_of_runs(queue: Queue, workers: int) -> float:
    """How many waiting tasks are run per second, measured once every process has run one."""
    queue.empty()
    queue.enqueue(4, RUN)
    with tempfile.TemporaryDirectory() as folder, queue.workers(workers, Path(folder)):
        found = wait_for(Path(folder), RUN + 1)
    begun = [[began for _enqueued, began in runs] for runs in found.values()]
    first = max(min(times) for times in begun)
    last = max(max(times) for times in begun)
    return sum(first < began <= last for times in begun for began in times) / (last - first)


def latencies(queue: Queue) -> list[float]:
    """Milliseconds from the enqueue to the start of tasks that come steadily, with one worker."""
    queue.empty()
    with tempfile.TemporaryDirectory() as folder, queue.workers(1, Path(folder)):
        queue.enqueue(1, BEFORE)
        # One more, which the warm-up enqueued.
        wait_for(Path(folder), BEFORE + 1)
        pace = queue.command("pace", f"--operations={PACED}")
        subprocess.run(pace, env=queue.env, check=True)
        found = wait_for(Path(folder), BEFORE + 1 + PACED)
    runs = sorted(run for runs in found.values() for run in runs)[-PACED:]
    return [(began - enqueued) * 1000 for enqueued, began in runs]


def measured(queue: Queue) -> Figures:
    queue.empty()
    enqueued = [queue.enqueue(threads, ENQUEUED) for threads in WORKERS]
    run = [rate_of_runs(queue, workers) for workers in WORKERS]
    waits = latencies(queue)
    percentiles = statistics.quantiles(waits, n=100)
    return Figures(enqueued[0], enqueued[1], run[0], run[1], percentiles[49], percentiles[98])


def main() -> None:
    [rounds] = asked(__doc__, rounds=3)
    python = peers.peer_python()
    with peers.site() as site, peers.postgres() as postgres, peers.redis() as redis:
        shared = {"PYTHONPATH": str(peers.ROOT)}

        def emptying(env: dict[str, str], name: str) -> Callable[[], object]:
            command = [python, "-m", "benchmarks.task_worker", name, "empty"]
            return lambda: subprocess.run(command, env=env, check=True)

        on_postgres, on_redis = postgres | shared, redis | shared
        setup = [python, "-m", "benchmarks.task_worker", "django-tasks-db", "setup"]
        subprocess.run(setup, env=on_postgres, check=True)
        queues = [
            Queue("`outbox`, dynoxide", "outbox", sys.executable, site, lambda: peers.empty(site)),
            Queue(
                "django-tasks-db, PostgreSQL",
                "django-tasks-db",
                python,
                on_postgres,
                emptying(on_postgres, "django-tasks-db"),
            ),
            Queue("Celery, Redis", "celery", python, on_redis, emptying(on_redis, "celery"), True),
        ]
        results: dict[str, list[Figures]] = {queue.title: [] for queue in queues}
        for number in range(rounds):
            turn = number % len(queues)
            for queue in [*queues[turn:], *queues[:turn]]:
                figures = measured(queue)
                sys.stderr.write(f"round {number + 1}: {queue.title}: {figures}\n")
                results[queue.title].append(figures)
    print(f"\n| | {' | '.join(results)} |\n|---|{'---:|' * len(results)}")
    for field in fields(Figures):
        medians = (
            statistics.median(getattr(figures, field.name) for figures in runs)
            for runs in results.values()
        )
        print(f"| {LABELS[field.name]} | {' | '.join(f'{value:,.0f}' for value in medians)} |")


if __name__ == "__main__":
    main()
