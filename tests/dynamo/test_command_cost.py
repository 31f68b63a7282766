"""What a command cost: in one line on stderr, or in the log, where that is asked for."""

from __future__ import annotations

import json
import logging
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Any

import pytest

from tests.commands import run
from tests.factories import make_user

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.fault_of("moto", "names no units of a transaction")
def test_verbosity_2_says_it_on_stderr_and_leaves_stdout_one_document() -> None:
    out, err, code = run(
        "createuser",
        "--username=ann",
        "--email=ann@example.org",
        "--password-stdin",
        "--json",
        "-v2",
        stdin="correct horse battery\n",
    )

    assert (json.loads(out)["userName"], code) == ("ann", 0)
    assert err.startswith("createuser: 1 request, 6 WCU; ")
    assert err.count("\n") == 1


def test_a_command_that_fails_says_it_too() -> None:
    _out, err, code = run("showuser", "nobody", "--verbosity=2")

    assert code == 1
    assert err.splitlines()[0].startswith("showuser: 1 request, ")


def test_nobody_is_told_who_does_not_ask() -> None:
    make_user(username="ann")

    assert run("showuser", "ann")[1:] == ("", 0)


def test_a_setting_writes_it_to_the_log(settings: Any) -> None:
    settings.LOG_COMMANDS = True
    make_user(username="ann")
    written: SimpleQueue[logging.LogRecord] = SimpleQueue()
    # Not by caplog, whose handler the command's start takes from the root.
    logger, handler = logging.getLogger("dynamo.commands"), QueueHandler(written)
    logger.addHandler(handler)
    try:
        run("listusers")
    finally:
        logger.removeHandler(handler)

    record = written.get_nowait()
    assert written.empty()
    fields = record.__dict__["fields"]
    assert (fields["command"], fields["dynamodbRequests"]) == ("listusers", 1)
    assert record.getMessage().startswith("listusers, ")
