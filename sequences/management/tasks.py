"""Tasks that draw numbers from shared counters at the same time: threads, in several processes."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from typing import Literal

import django
from django.core.management.base import CommandError

from dynamo.exceptions import DynamoError
from dynamo.tally import CountingPool
from sequences.counters import next_value
from sequences.draws import Strategy
from sequences.exceptions import SequenceError

#: A process that was told to stop ends with its requests under way, which have time-outs.
STOP_SECONDS = 15


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


Draws = Generator[Draw, None, None]
Signal = Literal["ready", "begin", "done"]
Message = Draw | SequenceError | DynamoError | Signal
_READY: Signal = "ready"
_BEGIN: Signal = "begin"
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
    spawn = multiprocessing.get_context("spawn")
    performing: dict[Connection, SpawnProcess] = {}
    begun = False
    try:
        with _ctrl_c_held_back():
            for share in shares:
                ours, theirs = spawn.Pipe()
                process = spawn.Process(
                    target=_perform_share, args=(theirs, share, rounds, strategy), daemon=True
                )
                process.start()
                performing[ours] = process
                theirs.close()
        # They begin at once, which they would not if the first did not wait for the last.
        for ours, process in performing.items():
            _message_of(ours, process)
        begun = True
        for ours in performing:
            with suppress(ConnectionError):  # one that ended has no message for us either
                ours.send(_BEGIN)
        while performing:
            ready = wait(performing)
            for ours in [ours for ours in performing if ours in ready]:
                message = _message_of(ours, performing[ours])
                if isinstance(message, Draw):
                    yield message
                elif isinstance(message, Exception):
                    raise message
                else:
                    performing.pop(ours).join()
                    ours.close()
    finally:
        for ours in performing:
            # Who finds that nobody listens any more stops drawing.
            ours.close()
        for process in performing.values():
            _stop(process, at_once=not begun)


def _perform_share(theirs: Connection, tasks: list[Task], rounds: int, strategy: Strategy) -> None:
    """Perform some of the tasks in a process of their own, and send what they draw."""
    django.setup()
    # Nobody listens any more where the tasks are to stop.
    with suppress(EOFError, ConnectionError):
        theirs.send(_READY)
        theirs.recv()
        try:
            with closing(_drawn_by_threads(tasks, rounds, strategy)) as drawn:
                for draw in drawn:
                    theirs.send(draw)
        except (SequenceError, DynamoError) as error:
            theirs.send(error)
        else:
            theirs.send(_DONE)


def _message_of(ours: Connection, process: SpawnProcess) -> Message:
    try:
        message: Message = ours.recv()
    except (EOFError, ConnectionError) as error:
        process.join()
        raise CommandError(
            f"A process of the test ended early, with code {process.exitcode}."
        ) from error
    return message


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Let processes that are started here never see a Ctrl-C: we tell them to stop.

    One that comes meanwhile reaches this process afterwards.
    """
    # Started first, as starting it lets Ctrl-C through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(process: SpawnProcess, *, at_once: bool) -> None:
    if at_once:
        process.terminate()
    process.join(STOP_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
