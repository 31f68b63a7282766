"""`checkguards`: what it finds, prints, repairs and explains."""

import json
import re
import sys
from typing import Any

import pytest
from django.core.management import call_command

from accounts.management.commands import checkguards
from accounts.models import User
from tests import commands
from tests.factories import assert_guards_match_users, make_user, set_stored, stored_items
from tests.items import put_item, remove_item

pytestmark = pytest.mark.usefixtures("engine")


SETTLED_BY_A_PERSON = (
    "Shared: 1. Another account has the same value: change that of one of the two "
    f"({checkguards.Command.settled_by}), then run again with --repair."
)


def run(*arguments: str) -> tuple[str, str]:
    """What `checkguards` prints, and the line with which it exits 1 (empty on success)."""
    out, error, code = commands.run("checkguards", *arguments)
    assert code == bool(error)
    return out, error.removeprefix("CommandError: ").removesuffix("\n")


def put_guard(key: str, owner: str) -> None:
    put_item(User.table(), pk=key, owner=owner)


def remove(key: str) -> None:
    remove_item(User.table(), pk=key)


def twins() -> tuple[User, User]:
    """Two accounts with the email address of the first, which has its guard."""
    first = make_user(username="carl", email="carl@example.com")
    twin = make_user(username="twin", email="twin@example.com")
    remove(f"email#{twin.email}")
    set_stored(twin, email=first.email)
    return first, twin


def test_correct_guards_exit_with_0() -> None:
    assert run() == ("0 accounts, 0 guards: 0 missing, 0 orphaned, 0 foreign; 0 repaired.\n", "")
    make_user()
    assert run() == ("1 account, 2 guards: 0 missing, 0 orphaned, 0 foreign; 0 repaired.\n", "")
    found: list[tuple[str, Any]] = [("missing", []), ("orphaned", []), ("foreign", [])]
    assert list(json.loads(run("--json")[0]).items()) == [
        ("users", 1),
        ("guards", 2),
        *found,
        ("repaired", 0),
    ]


@pytest.fixture
def wrong() -> dict[str, list[dict[str, str]]]:
    """Make one finding of each kind. Returns the findings as JSON shows them."""
    ann = make_user(username="ann", email="ann@bücher.example")
    bob = make_user(username="bob", email="bob@example.com")
    remove("userName#ann")
    put_guard('email#quote"ü\n@example.com', "gone")
    put_guard("email#bob@example.com", ann.pk)
    return {
        "missing": [{"pk": ann.pk, "value": "userName#ann"}],
        "orphaned": [{"pk": "gone", "value": 'email#quote"ü\n@example.com'}],
        "foreign": [{"pk": bob.pk, "value": "email#bob@example.com"}],
    }


def test_findings_are_listed_and_exit_with_1_until_all_are_repaired(wrong: Any) -> None:
    before = stored_items()

    out, error = run("--json")

    assert json.loads(out) == {"users": 2, "guards": 4, **wrong, "repaired": 0}
    assert error == "Wrong: 3 guards (run again with --repair)."
    assert stored_items() == before

    out, error = run("--repair", "--json")

    assert json.loads(out) == {"users": 2, "guards": 4, **wrong, "repaired": 3}
    assert error == ""
    assert_guards_match_users()
    assert run("--repair")[1] == ""


def test_a_finding_that_cannot_be_repaired_is_explained(wrong: Any) -> None:
    _carl, twin = twins()
    shared = f"foreign   email#carl@example.com  {twin.pk}  (shared)"

    out, error = run()

    missing = f"missing   userName#ann  {wrong['missing'][0]['pk']}"
    assert {shared, missing} <= {*out.splitlines()}
    assert error == f"Wrong: 4 guards (run again with --repair). {SETTLED_BY_A_PERSON}"

    out, error = run("--repair")

    *lines, total = out.splitlines()
    assert {shared, f"{missing}  (repaired)"} <= {*lines}
    assert total == "4 accounts, 7 guards: 1 missing, 1 orphaned, 2 foreign; 3 repaired."
    assert error == run()[1] == f"Wrong: 1 guard. {SETTLED_BY_A_PERSON}"


@pytest.mark.parametrize("changed", [0, 1], ids=["the owner of the guard", "the other"])
def test_the_explained_step_resolves_the_finding(changed: int) -> None:
    twin = twins()[changed]
    assert commands.run("changeemail", twin.pk, "another@example.com")[1:] == ("", 0)

    assert run("--repair")[1] == ""
    assert_guards_match_users()


def test_an_unusable_value_is_reported_in_the_same_line_but_is_not_a_finding() -> None:
    make_user(username="ann")
    remove("userName#ann")
    put_item(User.table(), pk="ghost")

    out, error = run("--json")

    assert json.loads(out)["users"] == 2
    assert re.fullmatch(
        r"Wrong: 1 guard \(run again with --repair\)\. "
        r"Unusable values in 1 account, such as the (userName|email) of ghost\.",
        error,
    )


def test_the_progress_bar_is_shown_only_on_a_terminal_and_never_with_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_user()

    for terminal, as_json in ((True, False), (False, False), (True, True)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        call_command("checkguards", json=as_json)
        shown = terminal and not as_json
        assert ("Items read" in capsys.readouterr().err) is shown
