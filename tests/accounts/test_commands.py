"""The account commands: what they do, what they print, and how they end."""

import json
import os
from typing import Any

import pytest

from accounts.models import User
from accounts.services import deactivate
from tests.commands import run, run_for_real, run_on_a_terminal
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    make_unique,
    make_user,
    set_stored,
    stored_items,
)
from tests.pages import meanwhile
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

ANN = ["--username=Ann", "--email=Ann@Example.org"]

Outcome = tuple[str, str, int]


def create(*arguments: str, password: str = PASSWORD) -> Outcome:
    return run("createuser", *ANN, "--password-stdin", *arguments, stdin=f"{password}\n")


def failure(outcome: Outcome) -> str:
    """The line on stderr with which a command exits 1 and prints nothing else."""
    out, err, code = outcome
    assert (out, code) == ("", 1)
    assert len(err.splitlines()) == 1
    return err


def is_usage_error(outcome: Outcome) -> bool:
    out, err, code = outcome
    assert "Traceback" not in err
    return (out, code) == ("", 2) and "usage:" in err


@pytest.fixture
def made() -> User:
    return make_user(
        username="Ann", email="Ann@Example.org", full_name="Ann O.", phone_number="+12025550124"
    )


# createuser ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "rights"),
    [([], (False, False)), (["--staff"], (True, False)), (["--superuser"], (True, True))],
    ids=str,
)
def test_createuser_creates_an_account_with_its_rights_and_the_first_line_as_its_password(
    options: list[str], rights: tuple[bool, bool]
) -> None:
    values = ["--full-name=Ann O.", "--phone-number=+1 202-555-0124"]

    out, err, code = create(*options, *values, password="  a good one  \r\nanother line")

    assert (err, code) == ("", 0)
    user = User.named("ann")
    assert out == f"The account of Ann has the primary key {user.pk}.\n"
    assert user.check_password("  a good one  ")
    assert (user.full_name, user.phone_number) == ("Ann O.", "+12025550124")
    assert (user.is_staff, user.is_superuser, user.is_active) == (*rights, True)
    assert_guards_match_users()


@pytest.mark.parametrize("option", ["--password-stdin", "--unusable-password"])
def test_an_account_is_the_same_json_for_each_command_and_a_request_id_creates_one(
    option: str,
) -> None:
    creating = ["createuser", *ANN, option, "--request-id=order-7", "--full-name=Ünal", "--json"]

    printed = {
        run(*command, stdin=f"{PASSWORD}\n")
        for command in (creating, creating, ["showuser", "ann", "--json"], ["listusers", "--json"])
    }

    [(out, err, code)] = printed
    assert (out.count("\n"), err, code) == (1, "", 0)
    user = User.named("ann")
    own = User.own_fields()
    assert [item for item in json.loads(out).items() if item[0] not in own] == [
        ("pk", User.key_for("order-7")),
        ("userName", "Ann"),
        ("email", "Ann@Example.org"),
        ("fullName", "Ünal"),
        ("phoneNumber", None),
        ("isActive", True),
        ("isStaff", False),
        ("joinedAt", user.date_joined.isoformat()),
        ("lastLoginAt", None),
    ]
    assert user.has_usable_password() == (option == "--password-stdin")
    assert len(stored_items()) == 3


def test_createuser_names_all_taken_values_in_one_line(
    requests_sent: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_unique(monkeypatch, "phone_number")
    make_user(username="ann", email="ann@example.org", phone_number="+1 202-555-0124")
    before = stored_items()
    requests_sent.clear()

    said = failure(create("--phone-number=+12025550124"))

    assert requests_sent.operations == ["TransactWriteItems"]
    assert "Another account has the username Ann." in said
    assert "Another account has the email address Ann@Example.org." in said
    assert "Another account has the phone number +12025550124." in said
    assert stored_items() == before


def test_createuser_names_the_invalid_value_in_one_line() -> None:
    for arguments, told in (
        (["--username=a b"], "Username: Use letters"),
        (["--username="], "Username: This field is required."),
        (["--username=\udcff"], "Username: Use letters"),
        (["--email=nowhere"], "Email address: Enter a valid email address."),
        (["--email=a\n@example.org"], "Email address: Enter a valid email address."),
        (["--email=\udcff@example.org"], "Email address: Enter a valid email address."),
        (["--phone-number=12"], "Phone number: Enter a valid phone number"),
        (["--full-name=a\x07"], "Full name: Use printable characters only."),
        (["--full-name=\udcff"], "Full name: Use printable characters only."),
        (["--request-id=\udcff"], "The request id is not valid text."),
    ):
        assert told in failure(create(*arguments)), arguments
    for password in ("", "short1!", "password1", "8274619305", "Ann@Example.org", "ab1!" * 257):
        assert "Password: " in failure(create(password=password)), password
    assert stored_items() == {}


def test_wrong_usage_exits_with_2_and_changes_nothing(made: User) -> None:
    before = stored_items()

    for arguments in (
        ["createuser"],
        ["createuser", *ANN],
        ["createuser", *ANN, "--password-stdin", "--unusable-password"],
        ["createuser", *ANN, "--unusable-password", "--colour=red"],
        ["showuser", "ann", "bob"],
        *(["listusers", f"--limit={limit}"] for limit in ("0", "-1", "many")),
        *(["importusers", "a.csv", f"--workers={count}"] for count in ("0", "65", "many", "٣")),
        ["changeemail", "ann"],
        ["changeusername", "ann"],
        *([f"{act}user"] for act in ("deactivate", "activate", "delete")),
    ):
        assert is_usage_error(run(*arguments, stdin="yes\n")), arguments

    assert stored_items() == before


def test_createuser_asks_for_the_password_twice_on_a_terminal() -> None:
    shown, code = run_on_a_terminal(
        "createuser",
        *ANN,
        typed=[
            ("Password: ", f"{PASSWORD}\n"),
            ("Password (again): ", "mistyped\n"),
            ("The passwords differ. Please try again.", ""),
            ("Password: ", "short\n"),
            ("Password (again): ", "short\n"),
            ("too short", ""),
            ("Password: ", f"{PASSWORD}\n"),
            ("Password (again): ", f"{PASSWORD}\n"),
        ],
    )

    assert code == 0
    user = User.named("ann")
    assert user.check_password(PASSWORD)
    assert f"The account of Ann has the primary key {user.pk}." in shown
    assert PASSWORD not in shown


# createsuperuser ---------------------------------------------------------------------------------


@pytest.mark.parametrize("has_password", [True, False])
def test_createsuperuser_creates_a_superuser_with_guards(
    monkeypatch: pytest.MonkeyPatch, has_password: bool
) -> None:
    if has_password:
        monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)

    outcome = run("createsuperuser", *ANN, "--no-input")

    assert outcome == ("Superuser created successfully.\n", "", 0)
    made = User.named("ann")
    assert (made.is_staff, made.is_superuser, made.is_active) == (True, True, True)
    assert made.has_usable_password() is made.check_password(PASSWORD) is has_password
    assert_guards_match_users()


BOB = ["--username=Bob", "--email=b@example.org"]


def test_createsuperuser_refuses_invalid_values_in_one_line(
    made: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored_items()

    for arguments, password, told in (
        ([], "", "You must use --username"),
        (BOB[:1], "", "You must use --email"),
        (["--username=ANN", *BOB[1:]], "", "already taken"),
        ([*BOB[:1], "--email=ANN@example.org"], "", "ann@example.org"),
        (["--username=a b", *BOB[1:]], "", "Use letters"),
        ([*BOB[:1], "--email=nowhere"], "", "valid email address"),
        (BOB, "x" * 5_000, "at most"),
        (BOB, "\udcff", "not valid text"),
    ):
        monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", password)
        said = failure(run("createsuperuser", *arguments, "--no-input"))
        assert said.startswith("CommandError")
        assert told.lower() in said.lower()
    assert stored_items() == before


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (f"{PASSWORD}\n", ""),
        ("", "The input ended"),
        ("\n", "one line of text"),
        ("a\0b\n", "one line of text"),
        ("x" * 5_000, "at most"),
        ("password\n", "too common"),
        ("ann@example.org\n", "too similar"),
        ("\udcff\n", "not valid text"),
    ],
)
def test_createsuperuser_reads_a_password_from_stdin_that_follows_the_rules(
    typed: str, said: str
) -> None:
    outcome = run("createsuperuser", *ANN, "--password-stdin", stdin=typed)

    if said:
        assert said in failure(outcome)
        assert stored_items() == {}
    else:
        assert outcome == ("Superuser created successfully.\n", "", 0)
        assert User.named("ann").check_password(PASSWORD)
        assert "DJANGO_SUPERUSER_PASSWORD" not in os.environ


def test_showuser_prints_a_line_for_each_value(made: User) -> None:
    shown = {
        "pk": made.pk,
        "userName": "Ann",
        "email": "Ann@Example.org",
        "fullName": "Ann O.",
        "phoneNumber": "+12025550124",
        "isActive": "yes",
        "isStaff": "no",
        "joinedAt": made.date_joined.isoformat(),
    }

    out, err, code = run("showuser", "ann@EXAMPLE.org")

    assert (err, code) == ("", 0)
    lines = dict(line.split(":", 1) for line in out.splitlines())
    assert {name: value.strip() for name, value in lines.items()} == shown


def test_listusers_prints_a_line_for_each_account_up_to_the_limit_and_names_damaged_ones() -> None:
    assert run("listusers") == ("", "", 0)
    sound = [make_user() for _ in range(4)]
    deactivate(sound[0])
    damage: list[dict[str, Any]] = [{"userName": 7}, {"isActive": "yes"}, {"joinedAt": "yesterday"}]
    broken = [make_user() for _ in damage]
    for user, values in zip(broken, damage, strict=True):
        set_stored(user, **values)

    out, err, code = run("listusers")

    lines = [f"{user.pk}  {user.username}  {user.email}" for user in sound]
    assert set(out.splitlines()) == {f"{lines[0]}  (deactivated)", *lines[1:]}
    (line,) = err.splitlines()
    assert "3 damaged accounts could not be read: " in line
    assert all(user.pk in line for user in broken)
    assert code == 1
    for limit, count in ((1, 1), (4, 4), (100, 4)):
        out = run("listusers", "--json", f"--limit={limit}")[0]
        assert len({json.loads(line)["pk"] for line in out.splitlines()}) == count


# Changes ------------------------------------------------------------------------------------------


#: Commands in this order, what each prints, and what the account is afterwards.
CHANGES: list[tuple[str, str, dict[str, Any]]] = [
    ("deactivateuser {}", "Ann cannot sign in any more.", {"is_active": False}),
    ("activateuser {}", "Ann can sign in.", {"is_active": True}),
    ("verifyemail {}", "Ann@Example.org is confirmed.", {"is_confirmed": True}),
    ("grantstaff {}", "Ann is staff.", {"is_staff": True, "is_superuser": False}),
    ("grantstaff {} --superuser", "Ann is a superuser.", {"is_superuser": True}),
    ("grantstaff {}", "Ann is a superuser.", {"is_superuser": True}),
    ("revokestaff {}", "Ann is not staff.", {"is_staff": False, "is_superuser": False}),
    ("changeusername {} Anna", "Ann@Example.org has the username Anna.", {"username": "Anna"}),
    ("changeemail {} n@example.org", "Anna has the email address n@example.org.", {}),
]


def test_a_command_changes_the_account_says_so_and_can_be_repeated(made: User) -> None:
    for command, said, values in CHANGES:
        assert run(*command.format("ANN@example.org").split()) == (f"{said}\n", "", 0)

        stored = User.get(made.pk)
        assert {value: getattr(stored, value) for value in values} == values
        assert run(*command.format(made.pk).split()) == (f"{said}\n", "", 0)
        assert User.get(made.pk).stored == stored.stored
        assert_guards_match_users()
    assert User.get(made.pk).email == "n@example.org"


UNKNOWN = ["nobody@example.org", "8ec436a8-97e6-4e72-aec2-b47668e96a94", "", "x" * 3000, "\udcff"]


def test_a_command_that_cannot_be_carried_out_says_why_in_one_line(engine: str, made: User) -> None:
    make_user(username="bob", email="bob@example.org")
    before = stored_items()

    for command, told in (
        (["changeemail", "ann", "BOB@example.org"], "email address BOB@example.org"),
        (["changeemail", "ann", "nowhere"], "Enter a valid email address."),
        (["changeusername", "ann", "ＢＯＢ"], "username ＢＯＢ"),
        (["changeusername", "ann", "a b"], "Use letters, digits"),
        (["changeemail", "nobody", "new@example.org"], "There is no account"),
        *(
            ([f"{act}user", "nobody"], "There is no account")
            for act in ("activate", "delete", "show")
        ),
        *((["showuser", who], "There is no account") for who in UNKNOWN),
    ):
        assert told in failure(run(*command)), command
    assert stored_items() == before
    with meanwhile(engine, "UpdateItem", lambda: deactivate(User.get(made.pk))):
        assert "changed meanwhile. Nothing was written." in failure(run("verifyemail", "ann"))
    assert not User.get(made.pk).is_confirmed


def test_deleteuser_deletes_after_yes_or_without_asking(made: User) -> None:
    before = stored_items()
    for answer in ("", "\n", "no\n", "y\n", "yes please\n"):
        for terminal in (True, False):
            _out, err, code = run("deleteuser", "ann", stdin=answer, terminal=terminal)
            assert ("Nothing was deleted." in err, code) == (True, 1)
    assert stored_items() == before

    out, err, code = run("deleteuser", "ann", stdin="yes\n", terminal=True)
    question = "Delete the account of Ann (Ann@Example.org)? Type yes to continue: "
    assert (question in out + err, code) == (True, 0)
    assert stored_items() == {}

    make_user(username="Ann")
    outcome = run("deleteuser", "ann", "--no-input")
    assert outcome == ("The account of Ann was deleted.\n", "", 0)
    assert stored_items() == {}


@pytest.mark.parametrize(
    ("who", "stdin", "told"),
    [
        ("ann", b"longer than \xff eight\n" * 2, "CommandError: This is not valid text.\n"),
        ("ann", (b"x" * 1025 + b"\n") * 2, "CommandError: Use at most 1024 characters.\n"),
        ("pk", b"an entirely new one 5\n" * 2, ""),
    ],
)
def test_changepassword_reads_two_lines_without_a_terminal(
    made: User, who: str, stdin: bytes, told: str
) -> None:
    before = stored_items()

    assert "user 'nobody' does not exist" in failure(run("changepassword", "nobody"))

    who = made.pk if who == "pk" else who
    _out, err, code = run_for_real("changepassword", who, stdin=stdin)

    if told:
        assert told in err
        assert (err.count("\n"), code) == (1, 1)
        assert stored_items() == before
    else:
        assert (err, code) == ("", 0)
        assert User.get(made.pk).check_password("an entirely new one 5")
