"""`countertest`: let tasks draw from shared counters, and check that no number is drawn twice.

The tasks are threads. The counters have random names, and are deleted afterwards.
Source: "DynamoDBとPythonでユニークな連番を採番する" (tasks A to F draw from Key1 and Key2).
"""

import threading
import uuid
from collections import Counter
from concurrent.futures import FIRST_EXCEPTION, wait
from itertools import cycle, islice
from typing import Any, get_args

from django.core.management.base import CommandError, CommandParser

from dynamo.client.tally import CountingPool
from dynamo.management.base import DynamoCommand, argument, positive
from dynamo.runtime.terminal import listed, printable, quantity
from sequences.counters import Strategy, checked_name, delete_counter, next_value


class Command(DynamoCommand):
    help = "Let tasks draw from shared counters at once, and check that each number comes once."

    def add_arguments(self, parser: CommandParser) -> None:
        number: dict[str, Any] = {"metavar": "N", "type": positive}
        parser.add_argument("--tasks", default=6, help="default 6", **number)
        parser.add_argument("--rounds", default=5, help="numbers per task, default 5", **number)
        keys: dict[str, Any] = {"type": argument(checked_name), "help": "default Key1 Key2"}
        parser.add_argument("--keys", metavar="KEY", nargs="+", default=["Key1", "Key2"], **keys)
        parser.add_argument(
            "--strategy", choices=get_args(Strategy), default="atomic", help="default atomic"
        )

    def handle(self, *args: object, **options: Any) -> None:
        counters = {key: f"countertest#{uuid.uuid4()}" for key in options["keys"]}
        keys = list(islice(cycle(options["keys"]), options["tasks"]))
        drawn: dict[str, list[int]] = {key: [] for key in keys}
        stop = threading.Event()

        def perform(task: str, key: str) -> None:
            for _round in range(options["rounds"]):
                if stop.is_set():
                    break
                drawn[key].append(value := next_value(counters[key], strategy=options["strategy"]))
                self.stdout.write(f"Task:{task},sequence_key:{printable(key)},sequence:{value}")
                self.stdout.flush()  # otherwise, a pipe would get it late

        try:
            with CountingPool(len(keys)) as pool:
                # Ctrl-C may be pressed as soon as one task runs.
                try:
                    tasks = [pool.submit(perform, _letters(at), key) for at, key in enumerate(keys)]
                    wait(tasks, return_when=FIRST_EXCEPTION)
                finally:
                    stop.set()
            for task in tasks:
                task.result()
        finally:
            for key in drawn:
                delete_counter(counters[key])
        faults = []
        for key, values in drawn.items():
            if fault := _fault_of(values):
                faults.append(f"{printable(key)}: {fault}.")
            else:
                numbers = quantity(len(values), "number")
                self.stdout.write(f"{printable(key)}: {numbers}, no duplicate, no gap.")
        if faults:
            raise CommandError(" ".join(faults))


def _letters(number: int) -> str:
    """A, B … Z, AA, AB … for 0, 1 …"""
    before, letter = divmod(number, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + letter)


def _fault_of(values: list[int]) -> str:
    """The errors in the numbers of one counter; empty without errors."""
    counted = Counter(values)
    wrong = {
        "drawn more than once": sorted(value for value in counted if counted[value] > 1),
        "never drawn": sorted({*range(1, max(values) + 1)} - counted.keys()),
    }
    return "; ".join(f"{what}: {listed(found)}" for what, found in wrong.items() if found)
