"""The account commands: what they do, what they print, and how they end."""

from __future__ import annotations

import json
import os
import uuid
from typing import Any

import pytest

from accounts.models import User
from accounts.services import REQUEST_IDS, deactivate, grant_staff
from dynamo.client.sending import send
from tests.commands import run, run_for_real, run_on_a_terminal
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    guard_owner,
    make_user,
    stored_items,
    stored_user,
)
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

ANN = ["--username=Ann", "--email=Ann@Example.org"]
KEYS = [
    "pk",
    "userName",
    "email",
    "fullName",
    "phoneNumber",
    "isActive",
    "isStaff",
    "joinedAt",
    "lastLoginAt",
]


def create(*arguments: str, password: str = PASSWORD) -> tuple[str, str, int]:
    return run("createuser", *ANN, "--password-stdin", *arguments, stdin=f"{password}\n")


def assert_fails(outcome: tuple[str, str, int], told: str) -> None:
    """One line on stderr, nothing on stdout, exit code 1."""
    out, err, code = outcome
    assert (out, code) == ("", 1)
    assert len(err.splitlines()) == 1
    assert told in err


def assert_usage(outcome: tuple[str, str, int]) -> None:
    """Django's own way to say that a command was typed wrongly."""
    out, err, code = outcome
    assert (out, code) == ("", 2)
    assert "usage:" in err
    assert "Traceback" not in err


@pytest.fixture
def ann() -> User:
    return make_user(
        username="Ann", email="Ann@Example.org", full_name="Ann O.", phone_number="+12025550124"
    )


# createuser -------------------------------------------------------------------------------------


def test_createuser_makes_an_account_with_the_password_from_stdin() -> None:
    out, err, code = create("--full-name=Ann O.", "--phone-number=+1 202-555-0124")

    assert (err, code) == ("", 0)
    user = User.find("ann")
    assert out == f"Ann has the account {user.pk}.\n"
    assert user.check_password(PASSWORD)
    assert (user.full_name, user.phone_number) == ("Ann O.", "+12025550124")
    assert (user.is_staff, user.is_active) == (False, True)
    assert_guards_match_users()


def test_createuser_takes_the_first_line_alone_and_all_of_it() -> None:
    create(password="  a good one  \r\nanother line")

    assert User.find("ann").check_password("  a good one  ")


@pytest.mark.parametrize(
    ("options", "rights"),
    [
        ([], (False, False)),
        (["--staff"], (True, False)),
        (["--superuser"], (True, True)),
        (["--staff", "--superuser"], (True, True)),
    ],
    ids=str,
)
def test_createuser_gives_the_rights_that_are_asked_for(
    options: list[str], rights: tuple[bool, bool]
) -> None:
    create(*options)

    ann = User.find("ann")
    assert (ann.is_staff, ann.is_superuser) == rights


def test_createuser_makes_an_account_that_no_password_opens() -> None:
    _out, _err, code = run("createuser", *ANN, "--unusable-password")

    assert code == 0
    assert not User.find("ann").has_usable_password()


def test_createuser_prints_json_and_nothing_else() -> None:
    out, err, code = create("--json", "--full-name=Ünal")

    assert (err, code) == ("", 0)
    assert out.count("\n") == 1
    shown = json.loads(out)
    assert list(shown) == KEYS
    user = User.find("ann")
    assert shown == {
        "pk": user.pk,
        "userName": "Ann",
        "email": "Ann@Example.org",
        "fullName": "Ünal",
        "phoneNumber": None,
        "isActive": True,
        "isStaff": False,
        "joinedAt": user.date_joined.isoformat(),
        "lastLoginAt": None,
    }


def test_createuser_with_one_request_id_makes_one_account_and_says_so_twice() -> None:
    first = create("--request-id=order-7", "--json")
    second = create("--request-id=order-7", "--json")

    assert first == second
    assert json.loads(first[0])["pk"] == str(uuid.uuid5(REQUEST_IDS, "order-7"))
    assert len(stored_items()) == 3


def test_createuser_with_a_request_id_of_other_contents_fails() -> None:
    create("--request-id=order-7")
    before = stored_items()

    assert_fails(create("--request-id=order-7", password="another good one"), "request id")
    assert stored_items() == before


def test_createuser_with_an_unusable_password_twice_makes_one_account() -> None:
    arguments = ["createuser", *ANN, "--unusable-password", "--request-id=order-7"]

    assert run(*arguments) == run(*arguments)
    assert len(stored_items()) == 3


def test_createuser_names_all_that_is_taken_in_one_line(requests_sent: Requests) -> None:
    make_user(username="ann", email="ann@example.org")
    before = stored_items()
    requests_sent.clear()

    outcome = create()

    assert requests_sent.operations == ["TransactWriteItems"]
    assert_fails(outcome, "Another account has the username Ann.")
    assert_fails(outcome, "Another account has the email address Ann@Example.org.")
    assert stored_items() == before


def test_createuser_names_a_further_attribute_whose_value_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(User.unique.normalize, "phone_number", str)
    make_user(phone_number="+1 202-555-0124")

    outcome = create("--phone-number=+12025550124")

    assert_fails(outcome, "Another account has the phone number +12025550124.")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--username=a b"], "Username: Use letters"),
        (["--username=a@b"], "Username: Use letters"),
        (["--username="], "Username: This field is required."),
        (["--username=\udcff"], "Username: Use letters"),
        (["--email=nowhere"], "Email address: Enter a valid email address."),
        (["--email=a\n@example.org"], "Email address: Enter a valid email address."),
        (["--email=\udcff@example.org"], "Email address: Enter a valid email address."),
        (["--phone-number=12"], "Phone number: Enter a valid phone number"),
        (["--full-name=a\x07"], "Full name: Use printable characters only."),
        (["--full-name=\udcff"], "Full name: Use printable characters only."),
        (["--username=a b", "--email=nowhere"], "Email address: Enter a valid email address."),
        (["--request-id=\udcff"], "request id"),
    ],
)
def test_createuser_says_in_one_line_which_value_is_wrong(arguments: list[str], told: str) -> None:
    assert_fails(create(*arguments), told)
    assert stored_items() == {}


@pytest.mark.parametrize(
    "password",
    ["", "short1!", "password1", "8274619305", "Ann@Example.org", "ab1!" * 257],
    ids=lambda password: password[:20],
)
def test_createuser_holds_the_password_rules(password: str) -> None:
    assert_fails(create(password=password), "Password: ")
    assert stored_items() == {}


def test_createuser_without_a_terminal_or_a_flag_is_wrong_usage() -> None:
    assert_usage(run("createuser", *ANN))
    assert_usage(run_for_real("createuser", *ANN))
    assert stored_items() == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ["createuser"],
        ["createuser", "--username=ann"],
        ["createuser", "--email=ann@example.org"],
        ["createuser", *ANN, "--password-stdin", "--unusable-password"],
        ["createuser", *ANN, "--unusable-password", "--colour=red"],
        ["showuser"],
        ["showuser", "ann", "bob"],
        ["listusers", "--limit=0"],
        ["listusers", "--limit=-1"],
        ["listusers", "--limit=many"],
        ["listusers", "ann"],
        ["changeemail", "ann"],
        ["changeusername", "ann"],
        ["deactivateuser"],
        ["activateuser"],
        ["deleteuser"],
        ["deleteuser", "--no-input"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2_and_changes_nothing(ann: User, arguments: list[str]) -> None:
    before = stored_items()

    assert_usage(run(*arguments, stdin="yes\n"))

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
    user = User.find("ann")
    assert user.check_password(PASSWORD)
    assert f"Ann has the account {user.pk}." in shown
    assert PASSWORD not in shown


def test_createuser_ended_at_its_prompt_makes_nothing() -> None:
    end_of_file, interrupt = "\x04", "\x03"

    shown, code = run_on_a_terminal("createuser", *ANN, typed=[("Password: ", end_of_file)])
    assert code == 1
    assert "Traceback" not in shown

    shown, code = run_on_a_terminal("createuser", *ANN, typed=[("Password: ", interrupt)])
    assert code == 130
    assert "Traceback" not in shown
    assert stored_items() == {}


def test_createuser_refuses_a_password_that_is_no_text() -> None:
    stdin = b"\xff\xfe good password\n"

    assert_fails(run_for_real("createuser", *ANN, "--password-stdin", stdin=stdin), "Password: ")
    assert stored_items() == {}


# createsuperuser, grantstaff, revokestaff -------------------------------------------------------


def test_createsuperuser_makes_a_superuser_with_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)

    out, err, code = run("createsuperuser", *ANN, "--no-input")

    assert (out, err, code) == ("Superuser created successfully.\n", "", 0)
    ann = User.find("ann")
    assert (ann.is_staff, ann.is_superuser, ann.is_active) == (True, True, True)
    assert ann.check_password(PASSWORD)
    assert_guards_match_users()


def test_createsuperuser_without_a_password_makes_an_account_that_no_password_opens() -> None:
    run("createsuperuser", *ANN, "--no-input")

    assert not User.find("ann").has_usable_password()


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        ([], {}, "You must use --username"),
        (["--username=Bob"], {}, "You must use --email"),
        (["--username=ANN", "--email=b@example.org"], {}, "already taken"),
        (["--username=Bob", "--email=ANN@example.org"], {}, "ann@example.org"),
        (["--username=a b", "--email=b@example.org"], {}, ""),
        (["--username=Bob", "--email=nowhere"], {}, ""),
        (["--username=Bob", "--email=b@example.org"], {"PASSWORD": "x" * 5_000}, "at most"),
        (["--username=Bob", "--email=b@example.org"], {"PASSWORD": "\udcff"}, "not valid text"),
    ],
    ids=repr,
)
def test_createsuperuser_refuses_in_one_line_what_makes_no_account(
    arguments: list[str],
    environment: dict[str, str],
    told: str,
    ann: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"DJANGO_SUPERUSER_{name}", value)
    before = stored_items()

    out, err, code = run("createsuperuser", *arguments, "--no-input")

    assert_fails((out, err, code), "CommandError")
    assert told.lower() in err.lower()
    assert stored_items() == before


def test_createsuperuser_asks_again_for_what_breaks_a_rule_before_the_password() -> None:
    shown, code = run_on_a_terminal(
        "createsuperuser",
        typed=[
            ("Username: ", "сосо\n"),
            ("looks like", ""),
            ("Username: ", "ann\n"),
            ("Email address: ", "nowhere\n"),
            ("Enter a valid email address.", ""),
            ("Email address: ", "ann@example.org\n"),
            ("Password: ", f"{PASSWORD}\n"),
            ("Password (again): ", f"{PASSWORD}\n"),
        ],
    )

    assert code == 0
    assert "Superuser created successfully." in shown
    assert User.find("ann").email == "ann@example.org"


@pytest.mark.parametrize("who", ["ann", "ANN@example.org", "pk"])
@pytest.mark.parametrize(
    ("command", "rights", "said"),
    [
        (["grantstaff"], (True, False), "Ann is staff.\n"),
        (["grantstaff", "--superuser"], (True, True), "Ann is a superuser.\n"),
        (["revokestaff"], (False, False), "Ann is not staff.\n"),
    ],
    ids=str,
)
def test_rights_are_granted_and_revoked_and_it_is_harmless_to_repeat(
    ann: User, who: str, command: list[str], rights: tuple[bool, bool], said: str
) -> None:
    if command == ["revokestaff"]:
        grant_staff(ann)
    before = ann.version
    who = ann.pk if who == "pk" else who
    name, *options = command

    for _time in range(2):
        assert run(name, who, *options) == (said, "", 0)
        stored = User.get(ann.pk)
        assert (stored.is_staff, stored.is_superuser) == rights
    assert stored.version == before + 1
    assert_guards_match_users()


def test_grantstaff_without_superuser_leaves_a_superuser_one(ann: User) -> None:
    grant_staff(ann, superuser=True)

    assert run("grantstaff", "ann") == ("Ann is a superuser.\n", "", 0)

    assert User.get(ann.pk).is_superuser


def test_revokestaff_takes_the_superuser_flag_as_well(ann: User) -> None:
    grant_staff(ann, superuser=True)

    run("revokestaff", "ann")

    stored = User.get(ann.pk)
    assert (stored.is_staff, stored.is_superuser) == (False, False)


@pytest.mark.parametrize("command", ["grantstaff", "revokestaff"])
def test_rights_of_an_unknown_account_are_one_line_on_stderr(command: str, ann: User) -> None:
    before = stored_items()

    assert_fails(run(command, "nobody"), "nobody")
    assert_usage(run(command))

    assert stored_items() == before


# showuser, listusers ----------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["Ann", "ＡＮＮ", "ann@EXAMPLE.org", "pk", "PK"])
def test_showuser_finds_who_by_name_address_or_key(ann: User, who: str) -> None:
    who = {"pk": ann.pk, "PK": ann.pk.upper()}.get(who, who)

    out, err, code = run("showuser", who)

    assert (err, code) == ("", 0)
    lines = dict(line.split(":", 1) for line in out.splitlines())
    assert {name: value.strip() for name, value in lines.items()} == {
        "pk": ann.pk,
        "userName": "Ann",
        "email": "Ann@Example.org",
        "fullName": "Ann O.",
        "phoneNumber": "+12025550124",
        "isActive": "yes",
        "isStaff": "no",
        "joinedAt": ann.date_joined.isoformat(),
    }


def test_showuser_tells_people_who_is_a_superuser(ann: User) -> None:
    grant_staff(ann, superuser=True)

    out, _err, _code = run("showuser", "ann")

    assert "isSuperuser: yes\n" in out


def test_showuser_prints_json(ann: User) -> None:
    deactivate(ann)

    out, err, code = run("showuser", "ann", "--json")

    assert (err, code) == ("", 0)
    assert out.count("\n") == 1
    shown = json.loads(out)
    assert list(shown) == KEYS
    assert shown["pk"] == ann.pk
    assert shown["isActive"] is False
    assert shown["lastLoginAt"] is None


@pytest.mark.parametrize(
    "who",
    [
        "nobody",
        "nobody@example.org",
        "8ec436a8-97e6-4e72-aec2-b47668e96a94",
        "",
        "@",
        "userName#ann",
        "x" * 3000,
        "\udcff",
        "a\nb",
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["showuser"],
        ["changeemail", "new@example.org"],
        ["changeusername", "new"],
        ["deactivateuser"],
        ["activateuser"],
        ["deleteuser", "--no-input"],
    ],
    ids=lambda command: command[0],
)
def test_an_unknown_account_is_one_line(ann: User, command: list[str], who: str) -> None:
    before = stored_items()
    name, *rest = command

    assert_fails(run(name, who, *rest), "No account has")

    assert stored_items() == before


def test_listusers_prints_each_account_in_a_line(ann: User) -> None:
    bob = make_user(username="bob", email="bob@example.org")
    deactivate(bob)

    out, err, code = run("listusers")

    assert (err, code) == ("", 0)
    assert sorted(out.splitlines()) == sorted(
        [
            f"{ann.pk}  Ann  Ann@Example.org",
            f"{bob.pk}  bob  bob@example.org  (deactivated)",
        ]
    )


def test_listusers_prints_json_a_line_and_no_guards() -> None:
    users = {make_user().pk for _ in range(5)}

    out, err, code = run("listusers", "--json")

    assert (err, code) == ("", 0)
    shown = [json.loads(line) for line in out.splitlines()]
    assert {each["pk"] for each in shown} == users
    assert all(list(each) == KEYS for each in shown)


@pytest.mark.parametrize(("limit", "shown"), [(1, 1), (3, 3), (100, 5)])
def test_listusers_stops_at_the_limit(limit: int, shown: int) -> None:
    for _ in range(5):
        make_user()

    out, _err, code = run("listusers", f"--limit={limit}")

    assert code == 0
    assert len(out.splitlines()) == shown


def test_listusers_of_no_accounts_prints_nothing() -> None:
    assert run("listusers", "--json") == ("", "", 0)


def damage(user: User, attribute: str, value: dict[str, Any]) -> None:
    """Store something of another type in an attribute, as only who goes around the site can."""
    item = stored_items()[user.pk] | {attribute: value}
    send("PutItem", {"TableName": User.table(), "Item": item})


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_listusers_lists_all_others_and_names_those_that_are_damaged(options: list[str]) -> None:
    sound = [make_user() for _ in range(4)]
    broken = [make_user() for _ in range(3)]
    for user, attribute, value in zip(
        broken,
        ["userName", "isActive", "joinedAt"],
        [{"N": "7"}, {"S": "yes"}, {"S": "yesterday"}],
        strict=True,
    ):
        damage(user, attribute, value)

    out, err, code = run("listusers", *options)

    assert len(out.splitlines()) == 4
    assert all(user.pk in out for user in sound)
    (line,) = err.splitlines()
    assert "3 damaged accounts could not be read: " in line
    assert all(user.pk in line for user in broken)
    assert code == 1


def test_listusers_names_ten_damaged_ones_and_counts_the_others() -> None:
    for _ in range(12):
        damage(make_user(), "userName", {"N": "7"})

    out, err, code = run("listusers", "--limit=2")

    assert (out, code) == ("", 1)
    assert err.count(", ") == 9
    assert err.endswith(" and 2 more.\n")


def test_listusers_counts_damaged_ones_to_no_limit() -> None:
    damage(make_user(), "userName", {"N": "7"})
    for _ in range(2):
        make_user()

    out, _err, _code = run("listusers", "--limit=2")

    assert len(out.splitlines()) == 2


@pytest.mark.parametrize("command", ["listusers", "checkguards", "importusers"])
def test_what_reads_much_says_so_in_its_help(command: str) -> None:
    out, _err, code = run(command, "--help")

    assert code == 0
    assert "read unit" in " ".join(out.split())


# Changes ----------------------------------------------------------------------------------------


def test_changeemail_moves_the_address(ann: User) -> None:
    out, err, code = run("changeemail", "ann", "New@example.org")

    assert (out, err, code) == ("Ann has the email address New@example.org.\n", "", 0)
    assert guard_owner("email#new@example.org") == ann.pk
    assert_guards_match_users()


def test_changeusername_moves_the_name(ann: User) -> None:
    out, err, code = run("changeusername", "ann@example.org", "Anna")

    assert (out, err, code) == ("Ann@Example.org has the username Anna.\n", "", 0)
    assert guard_owner("userName#anna") == ann.pk
    assert_guards_match_users()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["changeemail", "ann", "BOB@example.org"], "email address BOB@example.org"),
        (["changeemail", "ann", "nowhere"], "Enter a valid email address."),
        (["changeusername", "ann", "ＢＯＢ"], "username ＢＯＢ"),
        (["changeusername", "ann", "a b"], "Use letters, digits"),
        (["changeusername", "ann", ""], "Use letters, digits"),
    ],
)
def test_a_refused_change_is_one_line_and_changes_nothing(
    ann: User, arguments: list[str], told: str
) -> None:
    make_user(username="bob", email="bob@example.org")
    before = stored_items()

    assert_fails(run(*arguments), told)

    assert stored_items() == before


def test_a_change_to_what_is_so_already_is_a_success(ann: User) -> None:
    before = stored_items()

    assert run("changeemail", "ann", "Ann@Example.org")[2] == 0
    assert run("changeusername", "ann", "Ann")[2] == 0
    assert run("activateuser", "ann")[2] == 0
    assert stored_items() == before


def test_an_account_is_deactivated_and_activated_as_often_as_one_likes(ann: User) -> None:
    for _ in range(2):
        assert run("deactivateuser", "ann") == ("Ann cannot sign in any more.\n", "", 0)
        assert User.get(ann.pk).is_active is False
    for _ in range(2):
        assert run("activateuser", "ann") == ("Ann can sign in.\n", "", 0)
        assert User.get(ann.pk).is_active is True


def test_deleteuser_deletes_without_asking_where_it_is_told_so(ann: User) -> None:
    outcome = run("deleteuser", "ann", "--no-input")

    assert outcome == ("The account of Ann was deleted.\n", "", 0)
    assert stored_items() == {}


def test_deleteuser_asks_first(ann: User) -> None:
    question = "Delete the account of Ann (Ann@Example.org)? Type yes to continue: "

    shown, code = run_on_a_terminal("deleteuser", "ann", typed=[(question, "no\n")])
    assert code == 1
    assert "Nothing was deleted." in shown
    assert stored_user(ann.pk) is not None

    shown, code = run_on_a_terminal("deleteuser", "ann", typed=[(question, "yes\n")])
    assert code == 0
    assert stored_items() == {}


@pytest.mark.parametrize("answer", ["", "\n", "no\n", "y\n", "yes please\n"])
def test_deleteuser_deletes_for_no_answer_but_yes(ann: User, answer: str) -> None:
    before = stored_items()

    _out, err, code = run("deleteuser", "ann", stdin=answer)

    assert code == 1
    assert "Nothing was deleted." in err
    assert stored_items() == before


# changepassword ---------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["Ann", "ann@example.org", "pk"])
def test_changepassword_asks_twice_on_a_terminal(ann: User, who: str) -> None:
    new = "quite another password"

    shown, code = run_on_a_terminal(
        "changepassword",
        ann.pk if who == "pk" else who,
        typed=[("Password: ", f"{new}\n"), ("Password (again): ", f"{new}\n")],
    )

    assert code == 0
    assert "Password changed successfully for user 'Ann'" in shown
    assert new not in shown
    assert User.get(ann.pk).check_password(new)


def test_changepassword_takes_no_password_that_no_form_takes(ann: User) -> None:
    before = stored_items()

    shown, code = run_on_a_terminal(
        "changepassword", "ann", typed=[("Password: ", "long " * 205 + "\n")]
    )

    assert code == 1
    assert "CommandError: Use at most 1024 characters." in shown
    assert stored_items() == before


def test_changepassword_of_nobody_is_one_line() -> None:
    assert_fails(run_for_real("changepassword", "nobody"), "user 'nobody' does not exist")


def test_changepassword_without_a_terminal_or_an_answer_is_one_line(ann: User) -> None:
    before = stored_items()

    _out, err, code = run_for_real("changepassword", "ann")

    assert (err, code) == ("CommandError: The input ended before there was an answer.\n", 1)
    assert stored_items() == before


def test_changepassword_without_a_terminal_reads_two_lines_and_says_nothing_of_it(
    ann: User,
) -> None:
    typed = "an entirely new one 5\n" * 2

    _out, err, code = run_for_real("changepassword", "ann", stdin=typed.encode())

    assert (err, code) == ("", 0)
    assert User.get(ann.pk).check_password("an entirely new one 5")


def test_changepassword_takes_nothing_that_is_no_text(ann: User) -> None:
    before = stored_items()

    _out, err, code = run_for_real("changepassword", "ann", stdin=b"longer than \xff eight\n" * 2)

    assert (err, code) == ("CommandError: This is not valid text.\n", 1)
    assert stored_items() == before


# Real processes ---------------------------------------------------------------------------------


def test_commands_work_as_processes_of_their_own() -> None:
    stdin = f"{PASSWORD}\n".encode()

    fresh = os.environ | {"PYTHONUTF8": "1"}

    out, err, code = run_for_real(
        "createuser", *ANN, "--password-stdin", "--json", stdin=stdin, env=fresh
    )
    assert (err, code) == ("", 0)
    made = json.loads(out)
    assert_fails(
        run_for_real("createuser", *ANN, "--password-stdin", stdin=stdin), "Another account has"
    )
    out, err, code = run_for_real("showuser", made["pk"], "--json")
    assert (json.loads(out), err, code) == (made, "", 0)
    out, err, code = run_for_real("listusers", "--json")
    assert (json.loads(out), err, code) == (made, "", 0)
    assert_usage(run_for_real("showuser"))
    assert_fails(
        run_for_real("showuser", "nobody"),
        "No account has the username, email address or primary key 'nobody'.",
    )


def test_no_command_prints_a_hash(ann: User) -> None:
    commands: list[list[str]] = [
        ["showuser", "ann"],
        ["showuser", "ann", "--json"],
        ["listusers"],
        ["listusers", "--json"],
        ["changeemail", "ann", "anna@example.org", "--verbosity=3"],
        ["changeusername", "ann", "anna"],
        ["deactivateuser", "anna"],
        ["activateuser", "anna"],
        ["deleteuser", "anna", "--no-input"],
        ["createuser", *ANN, "--password-stdin", "--json"],
    ]
    printed: list[Any] = [run(*command, stdin=f"{PASSWORD}\n") for command in commands]

    assert [code for _out, _err, code in printed] == [0] * len(commands)
    text = "".join(out + err for out, err, _code in printed)
    assert "md5$" not in text
    assert "password" not in text.lower()
