"""Tasks that draw numbers from shared counters at the same time: threads, in several processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection, Pipe, wait
from queue import SimpleQueue
from typing import Literal

import django
from django.core.management.base import CommandError

from dynamo.exceptions import DynamoError
from dynamo.tally import CountingPool
from sequences.counters import Strategy, next_value
from sequences.exceptions import SequenceError

#: A process that was told to stop ends with its requests under way, which have time-outs.
STOP_SECONDS = 15

# Not by `multiprocessing`, which would run the project's `manage.py` once more in each process.
_PROGRAM = """
import sys
theirs, *sys.path = sys.argv[1:]
from sequences.management.tasks import perform_share
perform_share(int(theirs))
"""


@dataclass(frozen=True)
class Task:
    """One of the tasks: it draws from `counter`, which is shown as `key`."""

    name: str
    key: str
    counter: str


@dataclass(frozen=True)
class Draw:
    """A number that a task drew."""

    task: str
    key: str
    value: int


Process = subprocess.Popen[bytes]
Draws = Generator[Draw, None, None]
Order = tuple[list[Task], int, Strategy]
Signal = Literal["ready", "done"]
Message = Draw | SequenceError | DynamoError | Signal
_READY: Signal = "ready"
_DONE: Signal = "done"


def draws(tasks: list[Task], rounds: int, strategy: Strategy, processes: int) -> Draws:
    """What the tasks draw, `rounds` numbers each, as they draw it.

    Each process runs neighbours, so that tasks that take counters in turn meet in all of them.
    Closing the iterator ends the tasks, and comes back when no request is under way any more.

    Raises:
        SequenceError, DynamoError: of the first task that could not draw.
        CommandError: a process ended before its tasks did.
    """
    processes = min(processes, len(tasks))
    if processes == 1:
        return _drawn_by_threads(tasks, rounds, strategy)
    ends = [len(tasks) * count // processes for count in range(processes + 1)]
    shares = [tasks[first:end] for first, end in pairwise(ends)]
    return _drawn_by_processes(shares, rounds, strategy)


def _drawn_by_threads(tasks: list[Task], rounds: int, strategy: Strategy) -> Draws:
    drawn: SimpleQueue[Draw | None] = SimpleQueue()
    begin, stop = threading.Event(), threading.Event()

    def perform(task: Task) -> None:
        begin.wait()
        try:
            for _round in range(rounds):
                if stop.is_set():
                    break
                value = next_value(task.counter, strategy=strategy)
                drawn.put(Draw(task.name, task.key, value))
        except BaseException:
            stop.set()
            raise
        finally:
            drawn.put(None)

    with CountingPool(len(tasks)) as pool:
        try:
            performing = [pool.submit(perform, task) for task in tasks]
            begin.set()
            for _task in tasks:
                yield from iter(drawn.get, None)
            for each in performing:
                each.result()
        finally:
            stop.set()
            begin.set()


def _drawn_by_processes(shares: list[list[Task]], rounds: int, strategy: Strategy) -> Draws:
    # A fresh interpreter for each: a fork of a process with threads may hang.
    performing: dict[Connection, Process] = {}
    begun = False
    try:
        with _ctrl_c_held_back():
            for _share in shares:
                ours, theirs = Pipe()
                with theirs:
                    performing[ours] = _started(theirs.fileno())
        # They begin at once, which they would not if the first did not wait for the last.
        for ours, process in performing.items():
            _message_of(ours, process)
        begun = True
        for ours, share in zip(performing, shares, strict=True):
            order: Order = (share, rounds, strategy)
            with suppress(ConnectionError):  # one that ended has no message for us either
                ours.send(order)
        while performing:
            ready = wait(performing)
            for ours in [ours for ours in performing if ours in ready]:
                message = _message_of(ours, performing[ours])
                if isinstance(message, Draw):
                    yield message
                elif isinstance(message, Exception):
                    raise message
                else:
                    performing.pop(ours).wait()
                    ours.close()
    finally:
        for ours in performing:
            # Who finds that nobody listens any more stops drawing.
            ours.close()
        for process in performing.values():
            _stop(process, at_once=not begun)


def _started(theirs: int) -> Process:
    program = [sys.executable, "-c", _PROGRAM, str(theirs), *sys.path]
    return subprocess.Popen(program, stdin=subprocess.DEVNULL, pass_fds=[theirs])


def perform_share(descriptor: int) -> None:
    """Be a process that performs some of the tasks: it is told which, and sends what they draw."""
    django.setup()
    theirs: Connection = Connection(descriptor)
    # Nobody listens any more where the tasks are to stop.
    with suppress(EOFError, ConnectionError):
        theirs.send(_READY)
        order: Order = theirs.recv()
        tasks, rounds, strategy = order
        try:
            with closing(_drawn_by_threads(tasks, rounds, strategy)) as drawn:
                for draw in drawn:
                    theirs.send(draw)
        except (SequenceError, DynamoError) as error:
            theirs.send(error)
        else:
            theirs.send(_DONE)


def _message_of(ours: Connection, process: Process) -> Message:
    try:
        message: Message = ours.recv()
    except (EOFError, ConnectionError) as error:
        raise CommandError(
            f"A process of the test ended early, with code {process.wait()}."
        ) from error
    return message


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Let processes that are started here never see a Ctrl-C: we tell them to stop.

    One that comes meanwhile reaches this process afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(process: Process, *, at_once: bool) -> None:
    if at_once:
        process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
