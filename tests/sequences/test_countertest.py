"""The commands `nextvalue` and `countertest`."""

import itertools
import os
import re
import signal
from collections import Counter
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from sequences import last_value, next_value
from sequences.models import Counter as CounterItem
from tests import commands
from tests.faults.kinds import DropReply
from tests.faults.proxy import FaultProxy
from tests.items import put_item, scanned
from tests.numbered import Ticket
from tests.programs import start
from tests.requests import told

LINE = re.compile(r"Task:(\w+),sequence_key:(.+),sequence:(\d+)")

#: The name of the counter of a series.
OF_SERIES = f"{Ticket.table()}#x"


def run(*words: str) -> list[str]:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue().splitlines()


def counters_left() -> list[str]:
    items = scanned(CounterItem.table())
    return [item["counterName"]["S"] for item in items]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("strategy", ["atomic", "optimistic"])
def test_nextvalue_prints_one_number_per_line(strategy: str) -> None:
    assert run("nextvalue", "a b", "--strategy", strategy) == ["1"]
    assert run("nextvalue", "a b", "--count", "3", "--strategy", strategy) == ["2", "3", "4"]


@pytest.mark.fault_of("moto", "stores numbers of 39 digits and answers 500 to the next Scan")
@pytest.mark.fault_of("ministack", "rounds to 28 digits")
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("words", "stored", "reason"),
    [
        (["nextvalue", "a"], {"S": "x"}, "'a' does not hold a whole number"),
        (["nextvalue", "a"], {"N": "9" * 38}, "'a' would pass the 38 digits"),
    ],
)
def test_a_number_that_cannot_be_drawn_is_an_error_of_one_line(
    words: list[str], stored: dict[str, str], reason: str
) -> None:
    item = {"counterName": {"S": "a"}, "currentValue": stored}
    put_item(CounterItem.table(), **item)

    out, err, code = commands.run(*words)

    assert (out, code, err.count("\n")) == ("", 1, 1)
    assert reason in err
    assert counters_left() == ["a"]


@pytest.mark.parametrize(
    "words",
    [
        ["nextvalue"],
        ["nextvalue", "a\udcff"],
        ["nextvalue", "a", "--count", "1000001"],
        ["nextvalue", "a", "--strategy", "lucky"],
        ["countertest", "--tasks", "0"],
        ["countertest", "--keys", ""],
        ["nextvalue", OF_SERIES],
        ["countertest", "--keys", OF_SERIES, "K"],
    ],
)
def test_wrong_usage_exits_2(words: list[str]) -> None:
    out, err, code = commands.run(*words)

    assert (out, code) == ("", 2)
    assert (f"The name {OF_SERIES!r} is reserved" in err) == (OF_SERIES in words)


def drawn(lines: list[str]) -> dict[str, list[int]]:
    values: dict[str, list[int]] = {}
    for line in lines:
        if found := LINE.fullmatch(line):
            values.setdefault(found[2], []).append(int(found[3]))
    return {key: sorted(numbers) for key, numbers in values.items()}


@pytest.mark.usefixtures("engine")
def test_the_experiment_of_the_article_prints_each_number_once_and_leaves_no_counter() -> None:
    next_value("Key1")

    *lines, one, other = run("countertest")

    assert drawn(lines) == {"Key1": list(range(1, 16)), "Key2": list(range(1, 16))}
    assert Counter(line.split(",sequence:")[0] for line in lines) == dict.fromkeys(
        (
            f"Task:{task},sequence_key:{key}"
            for task, key in zip("ABCDEF", ["Key1", "Key2"] * 3, strict=True)
        ),
        5,
    )
    assert one == "Key1: 15 numbers, no duplicate, no gap."
    assert other == "Key2: 15 numbers, no duplicate, no gap."
    assert (counters_left(), last_value("Key1")) == (["Key1"], 1)


@pytest.mark.fault_of("moto", "loses updates that meet")
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("strategy", ["atomic", "optimistic"])
def test_many_tasks_draw_from_several_keys(strategy: str) -> None:
    lines = run(
        *["countertest", "--tasks", "28", "--rounds", "2", "--keys", "α β", "b", "c\n\x1b"],
        *["--strategy", strategy],
    )

    assert drawn(lines) == {
        "α β": list(range(1, 21)),
        "b": list(range(1, 19)),
        "c\\n\\x1b": list(range(1, 19)),
    }
    assert [line for line in lines if line.startswith("Task:AB,")]
    assert lines[-1] == "c\\n\\x1b: 18 numbers, no duplicate, no gap."
    assert counters_left() == []


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("jumps", "fault"),
    [
        ({2: 1}, "Key1: drawn more than once: 2."),
        ({2: 3}, "Key1: never drawn: 3."),
        ({1: 0, 2: 2}, "Key1: drawn more than once: 1; never drawn: 2."),
        ({1: 12}, "Key1: never drawn: 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 1 more."),
    ],
)
def test_a_duplicate_or_a_gap_is_named(jumps: dict[int, int], fault: str) -> None:
    """`jumps`: after which draw the counter is set, and to what."""
    draws = itertools.count(1)

    def jump(operation: str, **_sent: Any) -> None:
        if operation == "UpdateItem" and (value := jumps.get(next(draws))) is not None:
            [counter] = counters_left()
            item = {"counterName": {"S": counter}, "currentValue": {"N": str(value)}}
            put_item(CounterItem.table(), **item)

    with told(jump), pytest.raises(CommandError) as failed:
        run("countertest", "--tasks", "1", "--rounds", "3", "--keys", "Key1")

    assert str(failed.value) == fault
    assert counters_left() == []


def test_a_task_that_cannot_draw_ends_the_experiment(proxy: FaultProxy) -> None:
    proxy.plan("UpdateItem", DropReply())

    with pytest.raises(CommandError, match=r"^DynamoDB gave no answer to UpdateItem in time"):
        run("countertest", "--rounds", "1000")

    assert counters_left() == []


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (None, 141)], ids=["Ctrl-C", "a closed pipe"]
)
def test_ctrl_c_or_a_closed_pipe_ends_it_silently_and_leaves_no_counter(
    engine: str, sent: signal.Signals | None, code: int
) -> None:
    process = start("manage.py", "countertest", "--rounds", "100000")
    assert process.stdout is not None
    assert process.stderr is not None
    assert LINE.match(process.stdout.readline())

    if sent:
        os.killpg(process.pid, sent)  # as a terminal does
        process.stdout.read()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()

    assert (process.wait(timeout=120), err) == (code, "")
    assert counters_left() == []
