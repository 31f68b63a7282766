"""Tasks of `countertest`: threads in one or more processes that draw from shared counters."""

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

from dynamo._internal.tally import CountingPool
from dynamo.exceptions import DynamoError
from sequences._internal.counters import Strategy, next_value

#: How long a process may take to stop: until the replies to its requests, which have time-outs.
STOP_SECONDS = 15

# `multiprocessing` would run the project's `manage.py` again in each process.
_PROGRAM = """
import sys
theirs, *sys.path = sys.argv[1:]
from sequences.management.tasks import perform_share
perform_share(int(theirs))
"""


@dataclass(frozen=True)
class Task:
    """A task that draws from `counter`, which is shown as `key`."""

    name: str
    key: str
    counter: str


@dataclass(frozen=True)
class Draw:
    """A number that the task named `task` drew."""

    task: str
    key: str
    value: int


Process = subprocess.Popen[bytes]
Draws = Generator[Draw, None, None]
Order = tuple[list[Task], int, Strategy]
Signal = Literal["ready", "done"]
Message = Draw | DynamoError | Signal
_READY: Signal = "ready"
_DONE: Signal = "done"


def draws(tasks: list[Task], rounds: int, strategy: Strategy, processes: int) -> Draws:
    """Let each of `tasks` draw `rounds` numbers, and yield them as they are drawn.

    Each process runs tasks that follow each other in the list, so that tasks that use the counters
    in turn compete in each process. Closing the iterator stops the tasks and returns when no
    request is under way.

    Raises:
        DynamoError: the error of the first task that failed.
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
    # New interpreters, because a fork of a process with threads may hang.
    performing: dict[Connection, Process] = {}
    begun = False
    try:
        with _ctrl_c_blocked():
            for _share in shares:
                ours, theirs = Pipe()
                with theirs:
                    performing[ours] = _started(theirs.fileno())
        # All begin at the same time: when the last one is ready.
        for ours, process in performing.items():
            _message_of(ours, process)
        begun = True
        for ours, share in zip(performing, shares, strict=True):
            order: Order = (share, rounds, strategy)
            with suppress(ConnectionError):  # it has ended, which `_message_of` reports
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
            # A process that cannot send its draws stops.
            ours.close()
        for process in performing.values():
            _stop(process, at_once=not begun)


def _started(theirs: int) -> Process:
    program = [sys.executable, "-c", _PROGRAM, str(theirs), *sys.path]
    return subprocess.Popen(program, stdin=subprocess.DEVNULL, pass_fds=[theirs])


def perform_share(descriptor: int) -> None:
    """The main function of a process: receive tasks, perform them, and send what they draw."""
    django.setup()
    theirs: Connection = Connection(descriptor)
    # The command closes the connection to stop the tasks.
    with suppress(EOFError, ConnectionError):
        theirs.send(_READY)
        order: Order = theirs.recv()
        tasks, rounds, strategy = order
        try:
            with closing(_drawn_by_threads(tasks, rounds, strategy)) as drawn:
                for draw in drawn:
                    theirs.send(draw)
        except DynamoError as error:
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
def _ctrl_c_blocked() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, because this process stops them.

    If a Ctrl-C arrives meanwhile, this process gets it afterwards.
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
