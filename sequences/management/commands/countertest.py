"""`countertest`: let tasks draw from shared counters at once; check that no number comes twice.

The tasks are threads, in one or more processes.

Source: "DynamoDBとPythonでユニークな連番を採番する" (tasks A to F draw from Key1 and Key2).
"""

import json
import os
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import cycle, islice, pairwise
from queue import SimpleQueue
from typing import Any, NamedTuple, get_args

import django
from django.core.management.base import CommandError, CommandParser

from dynamo._internal.tally import CountingPool
from dynamo._internal.terminal import printable, quantity
from dynamo.exceptions import DynamoError
from dynamo.management.base import DynamoCommand, positive
from sequences._internal.counters import Strategy, checked_name, delete_counter, next_value
from sequences.management.base import counter_name

#: How many wrong numbers the verdict lists.
SHOWN = 10

#: How long a process may take to stop: until the replies to its requests, which have time-outs.
STOP_SECONDS = 15

_NUMBERS = (
    ("--tasks", 6, ""),
    ("--rounds", 5, "numbers per task, "),
    ("--processes", 1, "run the tasks in N processes, "),
)

# `multiprocessing` would run the project's `manage.py` again in each process.
_PROGRAM = """
import sys
sys.path = sys.argv[1:]
from sequences.management.commands.countertest import perform_share
perform_share()
"""


class Task(NamedTuple):
    """A task that draws from `counter`, which is shown as `key`."""

    name: str
    key: str
    counter: str


Draw = tuple[str, str, int]
"""The name of a task, its key, and the number that it drew."""

Draws = Generator[Draw, None, None]
Process = subprocess.Popen[str]


class Command(DynamoCommand):
    """Prints each number as it is drawn, then a verdict. Exits 1 on a duplicate or a gap.

    The counters are new ones with random names, and are deleted afterwards.
    """

    help = "Let tasks draw from shared counters at once, and check that each number comes once."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add who draws from which counters, and how."""
        for name, default, effect in _NUMBERS:
            effect += f"default {default}"
            parser.add_argument(name, metavar="N", type=positive, default=default, help=effect)
        parser.add_argument(
            "--keys",
            metavar="KEY",
            nargs="+",
            type=counter_name,
            default=["Key1", "Key2"],
            help="the counters, used by the tasks in turn; default Key1 Key2",
        )
        parser.add_argument(
            "--strategy", choices=get_args(Strategy), default="atomic", help="default atomic"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the experiment and print the verdict."""
        counters = {checked_name(key): f"countertest#{uuid.uuid4()}" for key in options["keys"]}
        keys = islice(cycle(options["keys"]), options["tasks"])
        tasks = [Task(_letters(number), key, counters[key]) for number, key in enumerate(keys)]
        drawing = draws(tasks, options["rounds"], options["strategy"], options["processes"])
        drawn: dict[str, list[int]] = {task.key: [] for task in tasks}
        with _deleted_afterwards({task.counter for task in tasks}), closing(drawing):
            for task, key, value in drawing:
                self.stdout.write(f"Task:{task},sequence_key:{printable(key)},sequence:{value}")
                # Otherwise a pipe would get it late.
                self.stdout.flush()
                drawn[key].append(value)
        self._print_verdict(drawn)

    def _print_verdict(self, drawn: dict[str, list[int]]) -> None:
        faults = []
        for key, values in drawn.items():
            fault, name = _fault_of(values), printable(key)
            if fault:
                faults.append(f"{name}: {fault}.")
            else:
                numbers = quantity(len(values), "number")
                self.stdout.write(f"{name}: {numbers}, no duplicate, no gap.")
        if faults:
            raise CommandError(" ".join(faults))


@contextmanager
def _deleted_afterwards(counters: Iterable[str]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        # The first error says more than one while cleaning up.
        with suppress(DynamoError):
            list(map(delete_counter, counters))
        raise
    list(map(delete_counter, counters))


def _letters(number: int) -> str:
    """A, B … Z, AA, AB … for 0, 1 …"""
    before, letter = divmod(number, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + letter)


def _fault_of(values: list[int]) -> str:
    """What is wrong with the numbers drawn from one counter; empty if nothing is."""
    duplicates = [value for value, times in sorted(Counter(values).items()) if times > 1]
    gaps = sorted(set(range(1, max(values) + 1)) - set(values))
    parts = [
        f"{what} {', '.join(map(str, wrong[:SHOWN]))}{' …' if len(wrong) > SHOWN else ''}"
        for what, wrong in (("drawn more than once:", duplicates), ("never drawn:", gaps))
        if wrong
    ]
    return "; ".join(parts)


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
        yield from _drawn([partial(_draw, task, rounds, strategy) for task in tasks])
        return
    ends = [len(tasks) * count // processes for count in range(processes + 1)]
    with ExitStack() as running:
        started = [running.enter_context(_process()) for _each in range(processes)]
        for process in started:
            _line_of(process)  # it is ready, or has ended
        drawing = [
            partial(_draw_in_process, process, tasks[first:end], rounds, strategy)
            for process, (first, end) in zip(started, pairwise(ends), strict=True)
        ]
        yield from _drawn(drawing)


def _drawn(drawing: Sequence[Callable[[], Draws]]) -> Draws:
    """What all of `drawing` yield, each in a thread."""
    drawn: SimpleQueue[Draw | None] = SimpleQueue()
    stop = threading.Event()

    def perform(draw: Callable[[], Draws]) -> None:
        try:
            for each in draw():
                drawn.put(each)
                if stop.is_set():
                    break
        except BaseException:
            stop.set()
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
            stop.set()


def _draw(task: Task, rounds: int, strategy: Strategy) -> Draws:
    for _round in range(rounds):
        yield task.name, task.key, next_value(task.counter, strategy=strategy)


@contextmanager
def _process() -> Iterator[Process]:
    """A process that performs a share of the tasks, and ends with the block at the latest."""
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
        yield process
    finally:
        for pipe in (process.stdout, process.stdin):
            with suppress(BrokenPipeError):
                if pipe:
                    pipe.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _draw_in_process(process: Process, share: list[Task], rounds: int, strategy: Strategy) -> Draws:
    with suppress(BrokenPipeError):  # it has ended
        print(json.dumps((share, rounds, strategy)), file=process.stdin, flush=True)
    while line := _line_of(process):
        match json.loads(line):
            case [str(task), str(key), int(value)]:
                yield task, key, value
            case error:
                raise CommandError(error)
    if code := process.wait():
        raise CommandError(f"A process of the test ended early, with code {code}.")


def _line_of(process: Process) -> str:
    """The next line that it prints; empty if it has ended."""
    return process.stdout.readline() if process.stdout else ""


def perform_share() -> None:
    """The main function of a process: read its tasks, perform them, and print what they draw."""
    django.setup()
    # Not by `print`, whose buffer would be written again when the process ends.
    write = partial(os.write, sys.stdout.fileno())
    with suppress(EOFError, BrokenPipeError):
        write(b"ready\n")
        tasks, rounds, strategy = json.loads(input())
        try:
            with closing(draws([Task(*each) for each in tasks], rounds, strategy, 1)) as drawn:
                for draw in drawn:
                    write(f"{json.dumps(draw)}\n".encode())
        except DynamoError as error:
            write(f"{json.dumps(' '.join(str(error).split()))}\n".encode())
