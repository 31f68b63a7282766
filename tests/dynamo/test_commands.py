"""How commands end, what they cost, and those of Django for a relational database."""

import json
import logging
import os
import signal
import socket
from collections.abc import Callable
from logging.handlers import QueueHandler
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection, transaction

from dynamo.runtime.no_database.base import NoDatabase, has_database
from dynamo.runtime.terminal import printable
from locks import claim_once
from tests.commands import run, run_for_real
from tests.factories import make_user
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy
from tests.fork_server import fork_server
from tests.programs import start
from tests.requests import Requests


def test_an_error_of_dynamodb_is_one_line_on_stderr_and_exit_code_1(proxy: FaultProxy) -> None:
    proxy.plan("DescribeTable", Answer(400, "AccessDeniedException"), times=1_000)

    out, err, code = run("createtables")

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "DynamoDB refused DescribeTable: AccessDeniedException" in err


def test_ctrl_c_ends_a_command_silently() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        environment = os.environ | {"AWS_ENDPOINT_URL_DYNAMODB": endpoint}
        process = start("manage.py", "createtables", env=environment)
        connection, _address = silent.accept()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        connection.close()

    assert (process.returncode, out, err) == (130, "", "")


def test_a_command_whose_output_is_not_read_ends_silently(
    capfd: pytest.CaptureFixture[str],
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as unread:
        ended = fork_server.fork("manage.py", ["cloudformation"], [0, unread.fileno(), 2])

    assert (ended.wait(), capfd.readouterr().err) == (141, "")


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("command", "said", "code"),
    [
        ("breaklock nightly", "The lock nightly is no longer claimed.", 0),
        ("changepassword ann", "The input ended before there was an answer.", 1),
        ("createuser --username bob --email bob@example.org", "--password-stdin", 2),
        ("deleteuser ann", "Nothing was deleted.", 1),
    ],
)
def test_a_closed_standard_input_is_an_input_without_an_answer(
    command: str, said: str, code: int
) -> None:
    make_user(username="ann")
    claim_once("nightly")

    out, err, ended_with = run(*command.split(), stdin=None)

    assert (said in out + err, "Traceback" in err, ended_with) == (True, False, code)


@pytest.mark.usefixtures("engine")
def test_verbosity_0_prints_answers_and_not_what_was_done(tmp_path: Path) -> None:
    make_user(username="ann")
    claim_once("nightly")
    for command in (
        "breaklock nightly",
        "changeemail ann ann@example.net",
        "createtables",
        "createuser --username bob --email bob@example.org --unusable-password",
        "deleteuser bob --no-input",
        f"dumpdata accounts -o {tmp_path}/all.jsonl",
        "flush --no-input",
        f"loaddata {tmp_path}/all.jsonl",
        "grantstaff ann",
        "makemigrations",
        "migrate",
        "rewrite accounts.User operator.not_",
        "storereport guards",
    ):
        assert run(*command.split(), "--verbosity", "0") == ("", "", 0), command
    assert run("showuser", "ann", "--verbosity", "0")[0]


# Cost ---------------------------------------------------------------------------------------------


@pytest.mark.fault_of("ministack", "counts no units of an index")
@pytest.mark.fault_of("moto", "names no units of a transaction")
@pytest.mark.usefixtures("engine")
def test_verbosity_2_prints_the_cost_on_stderr_only() -> None:
    new = "createuser --username=ann --email=ann@example.org --password-stdin --json -v2"
    out, err, code = run(*new.split(), stdin="correct horse battery\n")

    assert (json.loads(out)["userName"], code) == ("ann", 0)
    assert err.startswith("createuser: 1 request, 8 WCU; ")
    assert err.count("\n") == 1
    # By default nothing is printed, and a command that fails prints its cost, too.
    assert run("showuser", "ann")[1:] == ("", 0)
    _out, err, code = run("showuser", "nobody", "--verbosity=2")
    assert (err.startswith("showuser: 1 request, "), code) == (True, 1)


@pytest.mark.usefixtures("engine")
def test_a_setting_logs_the_cost(settings: Any) -> None:
    settings.LOG_COMMANDS = True
    make_user(username="ann")
    written: SimpleQueue[logging.LogRecord] = SimpleQueue()
    # The command replaces the handlers of the root logger, that of caplog included.
    logger = logging.getLogger("dynamo.commands")
    handler = QueueHandler(written)
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


# Commands for a relational database ---------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "migrate accounts zero --noinput --run-syncdb --database default --fake --check --plan",
        "makemigrations accounts --check --dry-run --empty",
    ],
)
def test_a_migration_command_has_nothing_to_do_and_names_createtables(
    command: str, requests_sent: Requests
) -> None:
    out, _err, code = run(*command.split())

    assert (code, out.startswith("Nothing to migrate")) == (0, True)
    assert "manage.py createtables" in out
    assert requests_sent.operations == []


def _run_in_atomic() -> None:
    with transaction.atomic():
        pass


@pytest.mark.parametrize(
    "call",
    [
        lambda: call_command("sqlflush"),
        lambda: call_command("dbshell"),
        lambda: call_command("inspectdb"),
        lambda: call_command("showmigrations"),
        lambda: list(ContentType.objects.all()),
        lambda: ContentType().save(),
        lambda: connection.cursor(),
        _run_in_atomic,
    ],
)
def test_what_needs_a_relational_database_is_refused_in_words(call: Callable[[], object]) -> None:
    assert not has_database()
    with pytest.raises(
        NoDatabase, match=r"^There is no relational database: .* Use dynamo\.Model "
    ):
        call()


def test_a_command_for_a_database_fails_in_one_line_that_names_ours() -> None:
    out, err, code = run_for_real("sqlflush")

    assert (out, code) == ("", 1)
    (line,) = err.splitlines()
    assert line.startswith("NoDatabase: There is no relational database: ")
    assert all(name in line for name in ("createtables", "dumpdata", "loaddata"))


#: One program for all commands.
RUNS_EACH = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from django.core.management import execute_from_command_line

said = []
for command in sys.argv[1:]:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        with suppress(SystemExit):
            execute_from_command_line(["django", *command.split(), "--settings", "beside"])
    said.append((out.getvalue(), err.getvalue()))
print(json.dumps(said))
"""


def test_a_project_with_a_relational_database_has_djangos_commands(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(
        "INSTALLED_APPS = ['django.contrib.contenttypes', 'dynamo', 'sequences']\n"
        "DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': 'sql'}}\n"
    )
    commands = (
        "migrate",
        "dumpdata contenttypes -o rows.json",
        "dumpdata contenttypes",
        "dumpdata",
        "dumpdata contenttypes sequences",
        "loaddata rows.json",
        "flush --no-input",
        "dumpdata contenttypes",
        "migrate --help",
    )

    ran = fork_server.run("-c", RUNS_EACH, *commands, folder=tmp_path)

    migrated, _file, (rows, _err), everything, mixed, loaded, flushed, again, helped = json.loads(
        ran.stdout
    )
    assert "Applying contenttypes.0001_initial... OK" in migrated[0]
    assert rows.startswith('[{"model": "contenttypes.contenttype"')
    assert everything[0] == rows
    assert "DynamoDB is left out" in everything[1]
    assert "A dump of DynamoDB cannot have contenttypes" in mixed[1]
    assert "Installed" in loaded[0]
    assert flushed[1] == ""
    assert again[0] == rows  # by Django's signal
    assert "Updates database schema" in helped[0]


# Output -------------------------------------------------------------------------------------------


def test_printable_text_is_one_line_without_control_characters() -> None:
    assert printable("日本 a\n\x1b[1m\udce9") == "日本 a\\n\\x1b[1m\\udce9"
