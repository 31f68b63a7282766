"""`withlock`: how it runs a command, ends it, and exits."""

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from locks import Lease, Lock, claim_once
from locks.registry import break_lock
from tests.commands import run, run_for_real, run_on_a_terminal
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy
from tests.forked import Forked
from tests.locks.items import abandoned, renewed_at_each_look, stored, taken
from tests.programs import start
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")

SH = ("sh", "-c")


def test_a_command_has_its_own_options_and_the_fencing_token(tmp_path: Path) -> None:
    before = taken("nightly report")
    before.release()
    told = tmp_path / "told"
    script = 'echo $LOCK_FENCE > "$0"; for each; do echo "$each"; done >> "$0"'
    command = [*SH, script, str(told), "--wait", "5", "--", "-x", ""]

    assert run("withlock", "nightly report", "--wait", "5", "--", *command) == ("", "", 0)

    assert told.read_text() == f"{before.fence + 1}\n--wait\n5\n--\n-x\n\n"
    assert stored("nightly report")["isReleased"] == {"S": "1"}
    # Its own warnings about leases were off.
    assert logging.getLogger("locks.leases").isEnabledFor(logging.WARNING)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ([*SH, "exit 255"], 255),
        ([*SH, "kill -TERM $$"], 143),
        (["no-such-program"], 127),
        (["/etc/hostname"], 126),
    ],
)
def test_it_exits_as_a_shell_would(command: list[str], code: int) -> None:
    out, err, ended = run("withlock", "a", "--", *command)

    assert (out, ended) == ("", code)
    # It says which command cannot run.
    assert (err.count("\n"), command[-1] in err) == (
        (1, True) if "sh" not in command else (0, False)
    )
    assert stored("a")["isReleased"] == {"S": "1"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["a"],
        ["a", "true"],
        ["--", "true"],
        ["x" * 2049, "--", "true"],
        ["a", "--wait", "soon", "--", "true"],
        ["a", "--wait", "inf", "--", "true"],
        ["a", "--grace", "nan", "--", "true"],
        ["a", "--grace=-1", "--", "true"],
        ["a", "--lease", "0", "--", "true"],
        ["a", "--conflict-exit-code", "256", "--", "true"],
        ["a", "--unknown", "--", "true"],
    ],
)
def test_wrong_usage_exits_2_and_takes_no_lock(arguments: list[str]) -> None:
    out, err, code = run("withlock", *arguments)

    assert (out, code) == ("", 2)
    assert err
    assert stored("a") == {}


TAKEN = "CommandError: The lock 'a' is held by the other host."

#: Who has the lock, options, and what is said.
CONFLICTS: dict[str, tuple[Callable[[], Any], list[str], str, int]] = {
    "a lease longer than the wait": (
        lambda: abandoned("a", owner="the other host", lease_seconds=20),
        ["--wait", "0.2"],
        f"{TAKEN}\n",
        75,
    ),
    "a lease that is renewed": (
        lambda: abandoned("a", owner="the other host", lease_seconds=0.3),
        ["--conflict-exit-code", "0"],
        f"{TAKEN}\n",
        0,
    ),
    "a claim": (lambda: claim_once("a"), [], "claimed for good", 75),
}


@pytest.mark.parametrize(("given", "options", "said", "code"), CONFLICTS.values(), ids=CONFLICTS)
def test_a_taken_lock_is_one_line_and_its_own_exit_code(
    tmp_path: Path, given: Callable[[], Any], options: list[str], said: str, code: int
) -> None:
    holder = given()
    made = tmp_path / "made"

    with renewed_at_each_look(holder) if isinstance(holder, Lease) else nullcontext():
        out, err, ended = run("withlock", "a", "--lease", "0.3", *options, "--", "touch", str(made))

    assert (out, err.count("\n"), ended) == ("", 1, code)
    assert said in err
    assert not made.exists()


def test_by_default_it_waits_for_the_lock_of_a_crashed_holder() -> None:
    abandoned("a", lease_seconds=0.5)

    assert run("withlock", "a", "--", "true") == ("", "", 0)


def test_a_broken_lock_ends_the_command_and_exits_70(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    term = tmp_path / "term"
    # The shell would report that the command it ran was terminated.
    script = (
        f"exec 2>&-; trap 'echo > {term}; exit' TERM; echo > {ready}; while :; do sleep 1; done"
    )
    # Longer than a slow machine may stall. The next renewal is refused after a quarter of it.
    command = ["a", "--lease", "12", "--", *SH, script]
    with background(*command) as process:
        wait_until(ready.exists)
        break_lock("a")

        assert process.wait(120) == 70
        assert process.stderr is not None
        said = process.stderr.read()
    assert term.exists()
    assert said.count("\n") == 1
    assert (
        "is lost: another process holds the lock, or it was broken. The command has ended." in said
    )
    assert stored("a")["isReleased"] == {"S": "1"}


def test_a_command_that_ignores_sigterm_is_killed(proxy: FaultProxy, tmp_path: Path) -> None:
    """Without an engine, the loss is noticed by the lease's own clock."""
    ready = tmp_path / "ready"
    alive = tmp_path / "alive"
    stubborn = f"trap '' TERM; while :; do date +%s%N > {alive}; sleep 0.02; done"
    script = f"trap '' TERM; sh -c \"{stubborn}\" & echo $$ > {ready}; wait"
    command = ["a", "--lease", "4", "--grace", "0.3", "--", *SH, script]
    with background(*command) as process:
        wait_until(lambda: ready.exists() and alive.exists())
        proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=100_000)
        proxy.plan("GetItem", Answer(500, "InternalServerError"), times=100_000)
        wait_until(lambda: not Path(f"/proc/{ready.read_text().strip()}").exists())
        # It tries for seconds to release the lock, which may still be stored as its own.
        proxy.forget()

        assert process.wait(120) == 70
        assert process.stderr is not None
        assert "not renewed in time" in process.stderr.read()
    last = alive.read_text()
    time.sleep(0.3)
    assert alive.read_text() == last


def test_signals_are_passed_on_and_the_lock_is_free_after_the_command(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    got = tmp_path / "got"
    end = tmp_path / "end"
    names = ["TERM", "HUP", "INT", "QUIT", "USR1", "USR2"]
    traps = "; ".join(f"trap 'echo {name} >> {got}' {name}" for name in names)
    script = f"{traps}; echo > {ready}; until [ -e {end} ]; do sleep 0.02; done; exit 9"
    with background("a", "--", *SH, script) as process:
        wait_until(ready.exists)
        for name in names:
            process.send_signal(signal.Signals[f"SIG{name}"])
            wait_until(lambda name=name: got.exists() and name in got.read_text().split())  # type: ignore[misc]
        assert Lock("a").try_acquire() is None
        end.touch()

        assert process.wait(120) == 9
    assert got.read_text().split() == names
    assert stored("a")["isReleased"] == {"S": "1"}


def test_on_a_terminal_a_typed_interrupt_comes_once(tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    script = (
        f"trap 'echo x >> {counted}' INT; echo ready; "
        f"until [ -s {counted} ]; do sleep 0.05; done; sleep 0.3; exit 7"
    )
    shown, code = run_on_a_terminal("withlock", "a", "--", *SH, script, typed=[("ready", "\x03")])

    assert code == 7, shown
    assert counted.read_text() == "x\n"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="tells no environment")
def test_the_command_has_our_standard_streams_and_the_environment_as_it_was_before_us() -> None:
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DJANGO", "LOCK_FENCE"))
    } | {"DJANGO_DEBUG": "on", "DJANGO_SECRET_KEY": "x" * 60, "OTHER": "a=b"}
    script = "env -0; cat >&2"
    out, err, code = run_for_real("withlock", "a", "--", *SH, script, stdin=b"typed", env=env)

    assert (err, code) == ("typed", 0)
    told = dict(part.split("=", 1) for part in out.split("\0") if part)
    # The shell adds these.
    for name in ("PWD", "OLDPWD", "SHLVL", "_"):
        told.pop(name, None)
        env.pop(name, None)
    assert told.pop("LOCK_FENCE") == stored("a")["fencingToken"]["N"]
    assert told == env


def test_without_a_terminal_it_is_not_stopped_while_its_command_runs(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    end = tmp_path / "end"
    script = f"echo > {ready}; until [ -e {end} ]; do sleep 0.02; done; exit 9"
    with background("a", "--", *SH, script, job=True) as process:
        wait_until(ready.exists)
        process.send_signal(signal.SIGTSTP)
        end.touch()

        assert process.wait(120) == 9


@contextmanager
def background(*arguments: str, job: bool = False) -> Iterator[Forked]:
    """Run `withlock` without a terminal, and kill it at the end; as a `job` of a shell or not."""
    # Do not wait for output of its command if the test failed.
    with start("manage.py", "withlock", *arguments, job=job) as process:
        try:
            yield process
        finally:
            process.kill()
