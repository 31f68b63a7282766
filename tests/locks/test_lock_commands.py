"""`listlocks` and `breaklock`."""

import json
import os
import re
from collections.abc import Callable

import pytest

from locks import LeaseLost, claim_once
from locks.registry import State, all_locks
from tests.commands import run, run_on_a_terminal
from tests.fork_server import fork_server
from tests.locks.items import abandoned, put, stored, taken

pytestmark = pytest.mark.usefixtures("engine")


def test_a_lock_is_listed_in_one_line() -> None:
    lease = abandoned("予約 1", lease_seconds=2.5, owner="we")

    out, err, code = run("listlocks")

    assert (err, code) == ("", 0)
    line = rf"予約 1  held  by we  renewed [\d.]+ s ago  lease 2\.5 s  fence {lease.fence}\n"
    assert re.fullmatch(line, out)


def test_locks_are_listed_as_json_one_a_line() -> None:
    lease = abandoned("a", lease_seconds=2.5, owner="we")
    claim_once("b")
    taken("c").release()

    out, err, code = run("listlocks", "--json")

    assert (err, code) == ("", 0)
    held, *others = sorted(map(json.loads, out.splitlines()), key=lambda lock: str(lock["key"]))
    assert 0 <= held.pop("ageSeconds") < 100
    assert held == {
        "key": "a",
        "ownerName": "we",
        "state": "held",
        "leaseSeconds": 2.5,
        "fencingToken": lease.fence,
        "renewedAt": stored("a")["renewedAt"]["S"],
    }
    assert [(other["key"], other["state"], other["leaseSeconds"]) for other in others] == [
        ("b", "claimed", None),
        ("c", "released", 600),
    ]


def test_a_damaged_lock_is_listed() -> None:
    put("a", leaseDuration={"N": "1"}, ownerName={"N": "1"}, renewedAt={"N": "1"})

    out, _err, code = run("listlocks")

    assert code == 0
    assert out == "a  held  by ?  renewed ? ago  no lease  fence ?\n"


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["lines", "json"])
def test_control_characters_and_letters_that_the_encoding_lacks_are_escaped(
    options: list[str],
) -> None:
    name = "\x1b[2J\n\x00\x9b\u202e\U000e0001\\é 🔒"
    put(name, ownerName={"S": name})
    env = os.environ | {"PYTHONIOENCODING": "ascii"}

    ended = fork_server.run("manage.py", "listlocks", *options, env=env)

    assert (ended.stderr, ended.returncode) == ("", 0)
    line = ended.stdout.removesuffix("\n")
    assert line.isprintable()
    assert line.isascii()
    assert json.loads(line)["key"] == name if options else line.startswith("\\x1b[2J\\n")


#: What `breaklock a` finds, and what it prints without a terminal, where it does not ask.
BROKEN: dict[str, tuple[Callable[[], object], tuple[str, str, int], State | None]] = {
    "a lease": (lambda: taken("a"), ("The lock a is free now.\n", "", 0), State.RELEASED),
    "a claim": (lambda: claim_once("a"), ("The lock a is no longer claimed.\n", "", 0), None),
    "a free lock": (
        lambda: taken("a").release(),
        ("The lock a was free already.\n", "", 0),
        State.RELEASED,
    ),
    "no lock": (lambda: None, ("", "CommandError: There is no lock 'a'.\n", 1), None),
}


@pytest.mark.parametrize("options", [[], ["--no-input"]], ids=str)
@pytest.mark.parametrize(("given", "printed", "left"), BROKEN.values(), ids=BROKEN)
def test_a_lock_is_broken_and_its_state_is_told(
    given: Callable[[], object],
    printed: tuple[str, str, int],
    left: State | None,
    options: list[str],
) -> None:
    given()

    assert run("breaklock", "a", *options) == printed
    assert [lock.state for lock in all_locks()] == ([left] if left else [])


def test_a_name_that_no_lock_can_have_is_wrong_usage() -> None:
    assert run("breaklock", "x" * 2049)[2] == 2


@pytest.mark.parametrize("typed", ["yes\n", "y\n", "\x04"], ids=["yes", "another word", "Ctrl-D"])
def test_on_a_terminal_a_lock_is_shown_and_only_broken_if_the_answer_is_yes(typed: str) -> None:
    lease = taken("a", owner="we")

    shown, code = run_on_a_terminal(
        "breaklock", "a", typed=[("Break it? Type yes to continue: ", typed)]
    )

    assert "a  held  by we" in shown
    if typed == "yes\n":
        assert code == 0
        with pytest.raises(LeaseLost):
            lease.renew()
    else:
        assert (code, "CommandError: Nothing was broken." in shown) == (1, True)
        lease.renew()


def test_only_the_holder_that_the_question_showed_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lease = taken("a", owner="one")

    def answer(_question: str) -> str:
        lease.release()
        taken("a", owner="two")
        return "yes"

    monkeypatch.setattr("builtins.input", answer)
    _out, err, code = run("breaklock", "a", terminal=True)

    assert (code, "has changed meanwhile" in err) == (1, True)
    assert "isReleased" not in stored("a")
