"""Runs management commands: what they print, and their exit codes."""

import codecs
import io
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from django.core.management import execute_from_command_line

from tests.fork_server import fork_server

ROOT = Path(__file__).resolve().parent.parent


class _Terminal(io.StringIO):
    """An input stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def run(*arguments: str, stdin: str | None = "", terminal: bool = False) -> tuple[str, str, int]:
    """Run a command in this process; its stdout, its stderr, its exit code.

    Without `stdin`, its standard input is closed. `terminal`: whether it claims to be a terminal.
    """
    out = io.StringIO()
    err = io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        kind = _Terminal if terminal else io.StringIO
        patch.setattr(sys, "stdin", None if stdin is None else kind(stdin))
        try:
            execute_from_command_line(["manage.py", *arguments])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return _shown(arguments, out.getvalue(), err.getvalue(), code)


def run_for_real(
    *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None, root: Path = ROOT
) -> tuple[str, str, int]:
    """Run `manage.py` as a process of its own, in a session without a terminal.

    With an environment or a folder it is a new interpreter; else a fork of `fork_server`.
    """
    if env is None and root == ROOT:
        ended = fork_server.run("manage.py", *arguments, stdin=stdin)
    else:
        ended = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            input=stdin.decode(errors="surrogateescape"),
            capture_output=True,
            cwd=root,
            env=os.environ | {"PYTHONUTF8": "1"} if env is None else env,
            start_new_session=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
    return _shown(arguments, ended.stdout, ended.stderr, ended.returncode)


def _shown(arguments: Sequence[str], out: str, err: str, code: int) -> tuple[str, str, int]:
    """Print how a command ended, which pytest shows if the test fails."""
    print(f"{' '.join(arguments)}: exit code {code}", err, sep="\n", file=sys.stderr)
    return out, err, code


def run_on_a_terminal(*arguments: str, typed: Sequence[tuple[str, str]]) -> tuple[str, int]:
    """Run `manage.py` on a terminal and answer its prompts; what it shows, and the exit code.

    `typed` are pairs of a prompt and the line that is typed when the prompt appears.
    """
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (24, 100))
    process = fork_server.fork("manage.py", arguments, [theirs] * 3, terminal=True)
    os.close(theirs)
    shown, seen = "", 0
    # A read can end within a character.
    decoder = codecs.getincrementaldecoder("utf-8")()
    waiting = list(typed)
    ends_at = time.monotonic() + 120
    try:
        while time.monotonic() < ends_at:
            if not select.select([ours], [], [], 1)[0]:
                continue
            try:
                shown += decoder.decode(os.read(ours, 4096))
            except OSError:  # on Linux: the other side is closed
                break
            while waiting and (found := shown.find(waiting[0][0], seen)) >= 0:
                prompt, line = waiting.pop(0)
                seen = found + len(prompt)
                os.write(ours, line.encode())
        return shown, process.wait()
    except BaseException:
        process.kill()
        fork_server.end()
        raise
    finally:
        os.close(ours)
