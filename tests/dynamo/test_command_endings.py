"""How our commands end, as a shell sees it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest

from locks.lock import claim_once
from tests.commands import ROOT
from tests.factories import make_user
from tests.forked import Forked
from tests.other_engines import refusing
from tests.programs import start


def started(*command: str, endpoint: str) -> Forked:
    return start("manage.py", *command, env=os.environ | {"AWS_ENDPOINT_URL_DYNAMODB": endpoint})


def test_a_refusal_of_dynamodb_is_one_line_on_stderr_and_exit_code_1(engine: str) -> None:
    with refusing(engine, {"DescribeTable"}, "AccessDeniedException") as url:
        process = started("createtables", endpoint=url)
        out, err = process.communicate(timeout=120)

    assert process.returncode == 1
    assert out == ""
    assert err.count("\n") == 1
    assert "DynamoDB refused DescribeTable: AccessDeniedException" in err


def test_ctrl_c_ends_a_command_without_a_word() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = started("createtables", endpoint=url)
        connection, _address = silent.accept()  # it waits for our answer now
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        connection.close()

    assert (process.returncode, out, err) == (130, "", "")


def test_a_reader_that_has_left_ends_a_command_without_a_word() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as unread:
        ended = subprocess.run(
            [sys.executable, "manage.py", "cloudformation"],
            cwd=ROOT,
            stdout=unread,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )

    assert (ended.returncode, ended.stderr) == (141, "")


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
def test_a_standard_input_that_is_closed_is_one_without_an_answer(
    command: str, said: str, code: int
) -> None:
    make_user(username="ann")
    claim_once("nightly")

    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "manage.py", *command.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=120,
        check=False,
    )

    assert said in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.returncode == code
