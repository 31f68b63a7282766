"""`countertest`: let tasks draw from shared counters at once; check that no number comes twice.

Source: "DynamoDBとPythonでユニークな連番を採番する" (tasks A to F draw from Key1 and Key2).
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, get_args

from django.core.management.base import CommandError, CommandParser

from dynamo._internal.terminal import printable, quantity
from dynamo.exceptions import DynamoError
from dynamo.management.base import DynamoCommand, positive
from sequences._internal.counters import Strategy, checked_name, delete_counter
from sequences.management.base import counter_name
from sequences.management.tasks import Draw, Task, draws

#: How many wrong numbers the verdict lists.
SHOWN = 10


class Command(DynamoCommand):
    """Prints each number as it is drawn, then a verdict. Exits 1 on a duplicate or a gap.

    The counters are new ones with random names, and are deleted afterwards.
    """

    help = "Let tasks draw from shared counters at once, and check that each number comes once."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add who draws from which counters, and how."""
        parser.add_argument("--tasks", metavar="N", type=positive, default=6, help="default 6")
        parser.add_argument(
            "--rounds", metavar="N", type=positive, default=5, help="numbers per task, default 5"
        )
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
        parser.add_argument(
            "--processes",
            metavar="N",
            type=positive,
            default=1,
            help="run the tasks in N processes, default 1",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the experiment and print the verdict."""
        for key in options["keys"]:
            checked_name(key)
        run = uuid.uuid4()
        counters = {
            key: f"countertest#{run}#{number}"
            for number, key in enumerate(dict.fromkeys(options["keys"]), 1)
        }
        turns = [options["keys"][task % len(options["keys"])] for task in range(options["tasks"])]
        tasks = [Task(_letters(task), key, counters[key]) for task, key in enumerate(turns)]
        drawn: dict[str, list[int]] = {task.key: [] for task in tasks}
        with (
            _deleted_afterwards({task.counter for task in tasks}),
            closing(
                draws(tasks, options["rounds"], options["strategy"], options["processes"])
            ) as every_draw,
        ):
            for draw in every_draw:
                self._show(draw)
                drawn[draw.key].append(draw.value)
        self._print_verdict(drawn)

    def _show(self, draw: Draw) -> None:
        key = printable(draw.key)
        self.stdout.write(f"Task:{draw.task},sequence_key:{key},sequence:{draw.value}")
        # Otherwise a pipe would get it late.
        self.stdout.flush()

    def _print_verdict(self, drawn: dict[str, list[int]]) -> None:
        faults = []
        for key, values in drawn.items():
            fault, name = _fault_of(values), printable(key)
            if fault:
                faults.append(f"{name}: {fault}.")
            else:
                self.stdout.write(
                    f"{name}: {quantity(len(values), 'number')}, no duplicate, no gap."
                )
        if faults:
            raise CommandError(" ".join(faults))


@contextmanager
def _deleted_afterwards(counters: Iterable[str]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        # The first error says more than one while cleaning up.
        with suppress(DynamoError):
            _delete(counters)
        raise
    _delete(counters)


def _delete(counters: Iterable[str]) -> None:
    for counter in counters:
        delete_counter(counter)


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
