"""Tasks of `countertest`: threads in one or more processes that draw from shared counters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from typing import NamedTuple

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
sys.path = sys.argv[1:]
from sequences.management.tasks import perform_share
perform_share()
"""
_READY = "ready\n"


class Task(NamedTuple):
    """A task that draws from `counter`, which is shown as `key`."""

    name: str
    key: str
    counter: str


class Draw(NamedTuple):
    """A number that the task named `task` drew."""

    task: str
    key: str
    value: int


Draws = Generator[Draw, None, None]
Process = subprocess.Popen[str]


def draws(tasks: list[Task], rounds: int, strategy: Strategy, processes: int) -> Draws:
    """Let each of `tasks` draw `rounds` numbers, and yield them as they are drawn.

    Each process runs tasks that follow each other in the list, so that tasks that use the counters
    in turn compete in each process. Closing the iterator stops the tasks and returns when no
    request is under way.

    Raises:
        DynamoError: the error of the first task that failed, in this process.
        CommandError: a process ended before its tasks did, or one of them failed.
    """
    processes = min(processes, len(tasks))
    if processes == 1:
        return _drawn([partial(_draw, task, rounds, strategy) for task in tasks])
    ends = [len(tasks) * count // processes for count in range(processes + 1)]
    shares = [tasks[first:end] for first, end in pairwise(ends)]
    return _drawn([partial(_draw_in_process, share, rounds, strategy) for share in shares])


def _drawn(drawing: list[Callable[[threading.Barrier], Draws]]) -> Draws:
    """What all of `drawing` yield, each in a thread. They get a barrier, to begin together."""
    drawn: SimpleQueue[Draw | None] = SimpleQueue()
    begin, stop = threading.Barrier(len(drawing)), threading.Event()

    def end() -> None:
        stop.set()
        begin.abort()

    def perform(draw: Callable[[threading.Barrier], Draws]) -> None:
        try:
            with closing(draw(begin)) as own, suppress(threading.BrokenBarrierError):
                for each in own:
                    drawn.put(each)
                    if stop.is_set():
                        break
        except BaseException:
            end()
            raise
        finally:
            drawn.put(None)

    with CountingPool(len(drawing)) as pool:
        try:
            performing = [pool.submit(perform, each) for each in drawing]
            for _each in drawing:
                yield from iter(drawn.get, None)
            for each in performing:
                each.result()
        finally:
            end()


def _draw(task: Task, rounds: int, strategy: Strategy, begin: threading.Barrier) -> Draws:
    begin.wait()
    for _round in range(rounds):
        yield Draw(task.name, task.key, next_value(task.counter, strategy=strategy))


def _draw_in_process(
    share: list[Task], rounds: int, strategy: Strategy, begin: threading.Barrier
) -> Draws:
    # A new interpreter, because a fork of a process with threads may hang. In a session of its own,
    # which Ctrl-C does not reach: this process stops it, by closing the pipe of its draws.
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        if _line_of(process) == _READY:
            begin.wait()
        with suppress(BrokenPipeError):  # it has ended
            print(json.dumps((share, rounds, strategy)), file=process.stdin, flush=True)
        while line := _line_of(process):
            match json.loads(line):
                case [str(task), str(key), int(value)]:
                    yield Draw(task, key, value)
                case error:
                    raise CommandError(error)
        if code := process.wait():
            raise CommandError(f"A process of the test ended early, with code {code}.")
    finally:
        _stop(process)


def _line_of(process: Process) -> str:
    """The next line that it prints; empty if it has ended."""
    return process.stdout.readline() if process.stdout else ""


def _stop(process: Process) -> None:
    for pipe in (process.stdout, process.stdin):
        with suppress(BrokenPipeError):
            if pipe:
                pipe.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def perform_share() -> None:
    """The main function of a process: read its tasks, perform them, and print what they draw."""
    django.setup()
    # Not by `print`, whose buffer would be written again when the process ends.
    write = partial(os.write, sys.stdout.fileno())
    with suppress(EOFError, BrokenPipeError):
        write(_READY.encode())
        tasks, rounds, strategy = json.loads(input())
        try:
            with closing(draws([Task(*each) for each in tasks], rounds, strategy, 1)) as drawn:
                for draw in drawn:
                    write(f"{json.dumps(draw)}\n".encode())
        except DynamoError as error:
            write(f"{json.dumps(' '.join(str(error).split()))}\n".encode())
