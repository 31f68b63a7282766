"""Importing accounts from a file: each row once, the earlier line wins, rejects said plainly."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import PBKDF2PasswordHasher, make_password
from django.core.management import CommandError, call_command

from accounts.imports import files
from accounts.models import User
from accounts.services import change_email, change_password, change_username, delete, find_user
from dynamo.client import deadline
from tests.factories import PASSWORD, assert_guards_match_users, make_user, stored_items
from tests.faults.kinds import Answer, DropReply, Meanwhile, Reply, nothing_processed
from tests.faults.proxy import NOWHERE, FaultProxy, through
from tests.forked import Forked
from tests.programs import start
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

COLUMNS = ["username", "email", "full_name", "phone_number", "password_hash"]


@dataclass
class Import:
    """How one run of the command ended."""

    counts: dict[str, int]
    complaint: str

    @property
    def created(self) -> int:
        return self.counts["created"]

    @property
    def unchanged(self) -> int:
        return self.counts["unchanged"]

    @property
    def rejected(self) -> int:
        return self.counts["rejected"]


def import_file(path: Path, *options: str) -> Import:
    out = StringIO()
    failures: list[CommandError] = []
    try:
        call_command("importusers", str(path), "--json", *options, stdout=out)
    except CommandError as error:
        failures.append(error)
    assert [each.returncode for each in failures] in ([], [1])
    complaint = "".join(str(each) for each in failures)
    assert "\n" not in complaint
    printed = out.getvalue()
    assert printed.count("\n") <= 1
    return Import(json.loads(printed) if printed else {}, complaint)


def refused_outright(path: Path, *options: str) -> str:
    """The complaint about a file of which no row was looked at; nothing was made."""
    done = import_file(path, *options)
    assert done.counts == {}
    assert stored_items() == {}
    assert not list(path.parent.glob("*.rejected.*"))
    return done.complaint


def write_csv(path: Path, rows: Iterable[Iterable[str]], header: Iterable[str] = COLUMNS) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def row(
    username: str, email: str, full_name: str = "", phone: str = "", hash: str = ""
) -> list[str]:
    return [username, email, full_name, phone, hash]


def rejections(path: Path) -> dict[int, str]:
    """The reasons in a file of rejected rows, by line."""
    with path.open(encoding="utf-8", newline="") as file:
        rows: Iterable[dict[str, Any]] = (
            csv.DictReader(file) if path.suffix == ".csv" else map(json.loads, file)
        )
        return {int(each["line"]): each["reason"] for each in rows}


def users() -> dict[str, str]:
    """The addresses of all accounts, by username."""
    items = stored_items().values()
    return {item["userName"]["S"]: item["email"]["S"] for item in items if "userName" in item}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users.csv"


@pytest.fixture
def rejected(tmp_path: Path) -> Path:
    return tmp_path / "users.rejected.csv"


# What a row becomes


def test_a_row_becomes_an_account_with_what_it_says(file: Path) -> None:
    write_csv(file, [row("Ann", "Ann@Example.org", "Ann O'Neill", "+1 202-555-0124")])

    assert import_file(file).counts == {"created": 1, "unchanged": 0, "rejected": 0}

    user = find_user("ann")
    assert (user.username, user.email) == ("Ann", "Ann@Example.org")
    assert (user.full_name, user.phone_number) == ("Ann O'Neill", "+12025550124")
    assert not user.has_usable_password()
    assert_guards_match_users()


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
def test_a_row_costs_one_request_and_six_units(file: Path, requests_sent: Requests) -> None:
    write_csv(file, [row("ann", "ann@example.org"), row("bob", "bob@example.org")])

    import_file(file)

    assert requests_sent.operations == ["TransactWriteItems"] * 2
    assert requests_sent.units == 12


def test_columns_come_in_any_order_and_only_two_are_needed(file: Path) -> None:
    write_csv(file, [["ann@example.org", "ann"]], header=["email", "username"])

    assert import_file(file).created == 1
    assert users() == {"ann": "ann@example.org"}


def test_a_file_from_a_spreadsheet_has_a_byte_order_mark_and_blank_lines(file: Path) -> None:
    file.write_bytes(
        b'\xef\xbb\xbfusername,email\r\n\r\nann,ann@example.org\r\n \r\n"bob",bob@example.org'
    )

    assert import_file(file).counts == {"created": 2, "unchanged": 0, "rejected": 0}


def test_a_file_of_json_lines_is_imported_too(tmp_path: Path) -> None:
    file = tmp_path / "users.jsonl"
    file.write_text(
        '{"username": "ann", "email": "ann@example.org", "full_name": "Änn"}\n'
        "\n"
        '{"email": "bob@example.org", "username": "bob", "phone_number": null}',
        encoding="utf-8",
    )

    assert import_file(file).counts == {"created": 2, "unchanged": 0, "rejected": 0}
    assert find_user("ann").full_name == "Änn"
    assert not (tmp_path / "users.rejected.jsonl").exists()


@pytest.mark.parametrize("name", ["users.csv", "users.jsonl", "users.JSONL"])
def test_a_file_without_rows_makes_nothing(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text("username,email\n" if name.endswith("csv") else "\n")

    assert import_file(file).counts == {"created": 0, "unchanged": 0, "rejected": 0}


# Running it again


def test_running_it_again_creates_nothing(file: Path) -> None:
    write_csv(file, [row(f"user{n}", f"user{n}@example.org", f"Person {n}") for n in range(50)])
    assert import_file(file).created == 50
    before = stored_items()

    assert import_file(file).counts == {"created": 0, "unchanged": 50, "rejected": 0}
    assert stored_items() == before


def test_an_account_that_was_made_otherwise_is_left_as_it_is(file: Path) -> None:
    user = make_user(username="Ann", email="ann@example.org", full_name="Ann herself")
    write_csv(file, [row("ann", "ANN@example.org", "Somebody else")])
    before = stored_items()

    assert import_file(file).counts == {"created": 0, "unchanged": 1, "rejected": 0}
    assert stored_items() == before
    assert find_user("ann") == user


def test_an_account_that_signs_in_by_another_password_by_now_is_unchanged(file: Path) -> None:
    write_csv(file, [row("ann", "ann@example.org", hash=make_password("as it was"))])
    import_file(file)
    change_password(find_user("ann"), PASSWORD)

    assert import_file(file).counts == {"created": 0, "unchanged": 1, "rejected": 0}
    assert find_user("ann").check_password(PASSWORD)


@pytest.mark.parametrize(
    "change",
    [
        lambda user: change_email(user, "new@example.org"),
        lambda user: change_username(user, "anna"),
        lambda user: (change_email(user, "new@example.org"), change_username(user, "anna")),
    ],
    ids=["address", "name", "both"],
)
def test_an_account_that_has_changed_since_is_not_made_again(
    file: Path, rejected: Path, change: Any
) -> None:
    write_csv(file, [row("ann", "ann@example.org")])
    import_file(file)
    change(find_user("ann"))
    before = stored_items()

    assert import_file(file).counts == {"created": 0, "unchanged": 0, "rejected": 1}
    assert rejections(rejected) == {2: "This was imported before; the account has changed since."}
    assert import_file(file, "--dry-run").rejected == 1
    assert stored_items() == before


def test_the_new_values_of_an_account_that_has_changed_are_found(file: Path) -> None:
    write_csv(file, [row("ann", "ann@example.org")])
    import_file(file)
    change_email(find_user("ann"), "new@example.org")

    write_csv(file, [row("ann", "new@example.org")])

    assert import_file(file).unchanged == 1
    assert len(users()) == 1


def test_an_account_that_was_deleted_is_made_anew(file: Path) -> None:
    write_csv(file, [row("ann", "ann@example.org")])
    import_file(file)
    delete(find_user("ann"))

    assert import_file(file).created == 1
    assert_guards_match_users()


def test_a_reply_that_was_lost_is_no_second_account(file: Path, engine: str) -> None:
    write_csv(file, [row("ann", "ann@example.org"), row("bob", "bob@example.org")])
    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan("TransactWriteItems", DropReply())

        assert import_file(file).counts == {"created": 2, "unchanged": 0, "rejected": 0}
        assert proxy.count("TransactWriteItems") == 3
    assert_guards_match_users()


# Rows that are rejected


@pytest.mark.fault_of("moto", "loses what meets a refused transaction")
def test_each_kind_of_duplicate_is_rejected_with_its_reason(file: Path, rejected: Path) -> None:
    make_user(username="taken", email="taken@example.org")
    make_user(username="other", email="other@example.org")
    write_csv(
        file,
        [
            row("Bob", "bob@example.org"),
            row("ＢＯＢ", "bob2@example.org"),
            row("robert", "BOB@Example.ORG"),
            row("bob", "Bob@example.org", "spelled otherwise"),
            row("TAKEN", "free@example.org"),
            row("free", "other@example.org"),
            row("taken", "other@example.org"),
            row("bücher", "a@bücher.example"),
            row("Bücher", "A@xn--bcher-kva.example"),
        ],
    )

    done = import_file(file)

    assert done.counts == {"created": 2, "unchanged": 0, "rejected": 7}
    assert done.complaint == f"Rejected rows: 7, see {rejected}."
    assert rejections(rejected) == {
        3: "Another account has the username ＢＯＢ.",
        4: "Another account has the email address BOB@Example.ORG.",
        5: "This is the same as line 2.",
        6: "Another account has the username TAKEN.",
        7: "Another account has the email address other@example.org.",
        8: "Another account has the username taken. "
        "Another account has the email address other@example.org.",
        10: "This is the same as line 9.",
    }
    assert_guards_match_users()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (row("a b", "ann@example.org"), "Username: Use letters, digits"),
        (row("", "ann@example.org"), "Username: This field is required."),
        (row("ann", "nonsense"), "Email address: Enter a valid email address."),
        (row("ann", "a@example.org", "x" * 151), "Full name: Use at most 150 characters."),
        (row("ann", "a@example.org", "x\x00y"), "Full name: Use printable characters only."),
        (row("ann", "a@example.org", "", "12"), "Phone number: Enter a valid phone number"),
        (
            row("ann", "a@example.org", hash="hunter2"),
            "Password hash: This is not a Django password hash",
        ),
        (
            row("ann", "a@example.org", hash="!hunter2"),
            "Password hash: This is not a Django password hash",
        ),
        (["ann", "ann@example.org"], "There are 2 fields for 5 columns."),
        ([*row("ann", "ann@example.org"), "and", "more"], "There are 7 fields for 5 columns: and,"),
        (row("", "nonsense"), "Username: This field is required. Email address: Enter a valid"),
    ],
)
def test_a_row_that_breaks_a_rule_is_rejected_and_the_next_one_made(
    file: Path, rejected: Path, bad: list[str], reason: str
) -> None:
    write_csv(file, [bad, row("carol", "carol@example.org")])

    assert import_file(file).counts == {"created": 1, "unchanged": 0, "rejected": 1}
    assert rejections(rejected)[2].startswith(reason)
    assert users() == {"carol": "carol@example.org"}


def test_rejected_rows_keep_their_columns_and_can_be_mended_and_imported(
    file: Path, rejected: Path
) -> None:
    header = ["email", "phone_number", "username"]
    write_csv(file, [["ann@example.org", "+1 202", "Ann, the 1st"]], header)
    import_file(file)

    with rejected.open(newline="", encoding="utf-8") as kept:
        columns, only = csv.reader(kept)
    assert columns == [*header, "line", "reason"]
    assert only[:4] == ["ann@example.org", "+1 202", "Ann, the 1st", "2"]

    text = rejected.read_text(encoding="utf-8").replace('"Ann, the 1st"', "ann")
    rejected.write_text(text.replace("+1 202", ""), encoding="utf-8")
    assert import_file(rejected).created == 1


def test_only_its_owner_may_read_what_was_rejected(file: Path, rejected: Path) -> None:
    write_csv(file, [row("ann", "nonsense")])

    import_file(file)

    assert rejected.stat().st_mode & 0o777 == 0o600


def test_a_file_of_rejected_rows_goes_when_none_is_rejected_any_more(
    file: Path, rejected: Path
) -> None:
    write_csv(file, [row("ann", "nonsense")])
    import_file(file)
    assert rejected.exists()

    write_csv(file, [row("ann", "ann@example.org")])
    import_file(file)

    assert sorted(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "This is no JSON: "),
        ("[" * 50_000, "This is no JSON: "),
        ('{"username": ' + "9" * 5000 + "}", "This is no JSON: "),
        ('["ann", "ann@example.org"]', "This is no JSON object."),
        ('{"username": "ann", "email": "a@example.org", "shoe": 7}', "There is an unknown key: sh"),
        ('{"username": 7, "email": "a@example.org"}', "There is a value that is no text: username"),
        ('{"username": "ann", "email": false}', "There is a value that is no text: email."),
        ('{"username": "ann"}', "Email address: This field is required."),
        ('{"username": "a\\ud800", "email": "a@example.org"}', "Username: Use letters, digits"),
    ],
)
def test_a_line_of_json_that_is_no_account_is_rejected_and_the_next_one_made(
    tmp_path: Path, line: str, reason: str
) -> None:
    file = tmp_path / "users.jsonl"
    file.write_text(f'{line}\n{{"username": "carol", "email": "carol@example.org"}}\n')

    assert import_file(file).counts == {"created": 1, "unchanged": 0, "rejected": 1}
    assert rejections(tmp_path / "users.rejected.jsonl")[1].startswith(reason)


def test_a_rejected_object_is_kept_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "users.jsonl"
    written = {
        "username": "ännchen\ud800",
        "email": ["ä"],
        "shoe": {"size": 7.5},
        "full_name": None,
    }
    file.write_text(json.dumps(written) + "\nnonsense\n")

    import_file(file)

    kept = (tmp_path / "users.rejected.jsonl").read_text(encoding="utf-8")
    first, second = map(json.loads, kept.splitlines())
    assert first.pop("reason").startswith("There is an unknown key: shoe")
    assert first == written | {"line": 1}
    assert second["text"] == "nonsense"


def test_a_quotation_mark_astray_costs_its_own_line_only(file: Path, rejected: Path) -> None:
    file.write_text('username,email\n"a"nn,ann@example.org\nbob,bob@example.org\n')

    assert import_file(file).counts == {"created": 1, "unchanged": 0, "rejected": 1}
    assert rejections(rejected)[2].startswith("This is no CSV: ")


# Passwords


@pytest.fixture
def known_hashers(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # A million, as Django's, would be five seconds of the suite.
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 20_000)
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.Argon2PasswordHasher",
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",
        "django.contrib.auth.hashers.ScryptPasswordHasher",
        "django.contrib.auth.hashers.BCryptSHA256PasswordHasher",
    ]


@pytest.mark.usefixtures("known_hashers")
@pytest.mark.parametrize("hasher", ["argon2", "pbkdf2_sha256", "scrypt"])
def test_who_had_a_password_elsewhere_signs_in_with_it(file: Path, hasher: str) -> None:
    encoded = make_password(PASSWORD, hasher=hasher)
    write_csv(file, [row("ann", "ann@example.org", hash=encoded)])

    assert import_file(file).created == 1

    assert find_user("ann").password == encoded
    assert authenticate(username="ann@example.org", password="wrong") is None
    assert authenticate(username="ann@example.org", password=PASSWORD) == find_user("ann")
    assert import_file(file).unchanged == 1  # though its hash may be a newer one by now


ARGON2 = "argon2$argon2id$v=19$m=102400,t=2,p=8$c29tZXNhbHRzb21lc2FsdA$"
DIGEST = "A" * 43
SHA256 = DIGEST + "="


@pytest.mark.usefixtures("known_hashers")
@pytest.mark.parametrize(
    "encoded",
    [
        "pbkdf2_sha256$1000$salt",  # a part is missing
        "pbkdf2_sha256$many$salt$aGFzaA==",
        "pbkdf2_sha256$0$salt$aGFzaA==",
        "pbkdf2_sha256$-5$salt$aGFzaA==",
        "pbkdf2_sha256$99999999999$salt$aGFzaA==",  # hours for each sign-in
        "pbkdf2_sha256$1000$$aGFzaA==",
        f"pbkdf2_sha256$1000$salt${DIGEST}",  # cut off by one sign
        f"pbkdf2_sha256$+1000$salt${SHA256}",
        f"pbkdf2_sha256$1_000$salt${SHA256}",
        f"pbkdf2_sha256$01000$salt${SHA256}",
        "scrypt$16384$salt$8$5$aGFzaA==",  # cut off
        "argon2$argon2id$v=19$nonsense",
        ARGON2.replace("m=102400", "m=99999999") + DIGEST,
        ARGON2.replace("id$v", "xx$v") + DIGEST,
        ARGON2 + "ä" + DIGEST,
        "scrypt$salt$1000$8$5$aGFzaA==",  # no power of two
        "bcrypt_sha256$$2b$12$" + "x" * 53,  # its library is not installed
        "md5$salt$0123456789abcdef0123456789abcdef",  # not a hasher of this site
        "argon2",
        "$",
        "!" + "x" * 300,
        "pbkdf2_sha256$1000$salt$" + "x" * 300,
    ],
)
def test_a_hash_that_no_sign_in_could_check_is_rejected(
    file: Path, rejected: Path, encoded: str
) -> None:
    write_csv(file, [row("ann", "ann@example.org", hash=encoded)])

    assert import_file(file).counts == {"created": 0, "unchanged": 0, "rejected": 1}
    assert rejections(rejected)[2].startswith("Password hash: ")
    assert encoded not in rejections(rejected)[2]


@pytest.mark.parametrize("mark", ["!" + "aB3" * 13 + "x", "!"])
def test_djangos_mark_of_an_unusable_password_is_an_account_that_no_password_opens(
    file: Path, mark: str
) -> None:
    write_csv(file, [row("ann", "ann@example.org", hash=mark)])

    assert import_file(file).created == 1

    assert not find_user("ann").has_usable_password()
    assert import_file(file).unchanged == 1


@pytest.mark.parametrize(
    ("encoded", "told"),
    [
        ("bcrypt_sha256$$2b$12$" + "x" * 53, "The hasher bcrypt_sha256 is not enabled here"),
        ("md5$salt$0123456789abcdef0123456789abcdef", "The hasher md5 is not enabled here"),
        ("sha512_crypt$salt$hash", "This is not a Django password hash"),
        ("bcrypt", "This is not a Django password hash"),
        ("None$", "This is not a Django password hash"),
    ],
)
def test_a_hasher_of_djangos_that_is_not_enabled_is_named(
    file: Path, rejected: Path, settings: Any, encoded: str, told: str
) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
    write_csv(file, [row("ann", "ann@example.org", hash=encoded)])

    assert import_file(file).counts == {"created": 0, "unchanged": 0, "rejected": 1}

    assert told in rejections(rejected)[2]


# The earlier line wins


@pytest.mark.fault_of("moto", "loses what meets a refused transaction")
def test_the_earlier_of_two_rivals_wins_however_many_workers_there_are(
    file: Path, rejected: Path
) -> None:
    rows = []
    for n in range(60):
        rows.append(row(f"name{n}", f"a{n}@example.org"))
        rows.append(row(f"NAME{n}", f"b{n}@example.org"))
        rows.append(row(f"other{n}", f"A{n}@Example.org"))
    write_csv(file, rows)

    assert import_file(file, "--workers", "16").counts == {
        "created": 60,
        "unchanged": 0,
        "rejected": 120,
    }
    assert users() == {f"name{n}": f"a{n}@example.org" for n in range(60)}
    assert list(rejections(rejected)) == [line for line in range(2, 182) if line % 3 != 2]
    assert_guards_match_users()


def test_an_earlier_line_that_dynamodb_fails_loses_to_no_later_one(file: Path, engine: str) -> None:
    write_csv(file, [row("ann", "first@example.org"), row("Ann", "second@example.org")])
    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan("TransactWriteItems", Answer(400, "ValidationException"))
        import_file(file, "--workers", "16")
    assert users() == {}

    import_file(file, "--workers", "16")

    assert users() == {"ann": "first@example.org"}


# A third unique attribute


@pytest.fixture
def _unique_phone_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(User.unique.normalise, "phone_number", str)


@pytest.mark.usefixtures("_unique_phone_numbers")
def test_of_rivals_for_a_third_unique_value_the_earlier_wins_too(
    file: Path, rejected: Path
) -> None:
    rows = []
    for n in range(10, 40):
        for who in ("first", "second"):
            name = f"{who}{n}"
            rows.append(row(name, f"{name}@example.org", phone=f"+1 202-555-01{n}"))
    write_csv(file, rows)

    assert import_file(file, "--workers", "16").created == 30

    assert sorted(users()) == [f"first{n}" for n in range(10, 40)]
    assert list(rejections(rejected)) == list(range(3, 63, 2))


@pytest.mark.usefixtures("_unique_phone_numbers")
def test_a_dry_run_foresees_what_becomes_of_a_third_unique_value(
    file: Path, rejected: Path
) -> None:
    make_user(username="held", email="held@example.org", phone_number="+12025550101")
    make_user(username="here", email="here@example.org", phone_number="+12025550102")
    rows = [
        row("ann", "ann@example.org", phone="+1 202-555-0101"),
        row("held", "bob@example.org", phone="+1 202-555-0101"),
        row("eve", "eve@example.org", phone="+1 202-555-0103"),
        row("joe", "joe@example.org", phone="+1 202 555 0103"),
        row("here", "here@example.org", phone="+1 202-555-0109"),
        row("none", "none@example.org"),
        row("nil", "nil@example.org"),
    ]
    write_csv(file, rows)
    out = StringIO()

    with pytest.raises(CommandError):
        call_command("importusers", str(file), "--dry-run", stdout=out)
    *foreseen, counts = out.getvalue().splitlines()
    made = import_file(file)

    assert counts == "Would be: created 3, unchanged 1, rejected 3."
    assert made.counts == {"created": 3, "unchanged": 1, "rejected": 3}
    reasons = rejections(rejected)
    assert foreseen == [f"Line {line}: {reason}" for line, reason in reasons.items()]
    assert reasons[2] == "Another account has the phone number +12025550101."


# Many rows


@dataclass
class Sample:
    rows: list[list[str]]
    reasons: dict[int, str]


def sample(singles: int, duplicates: int) -> Sample:
    """Rows of which `duplicates`, of five kinds, cannot become accounts; why, by line."""
    chance = random.Random(7)
    rows: list[list[str]] = []
    reasons: dict[int, str] = {}
    first_lines: list[int] = []
    duplicate_at = set(chance.sample(range(10, singles + duplicates), duplicates))
    for place in range(singles + duplicates):
        line = place + 2
        if place not in duplicate_at:
            rows.append(row(f"User{place}", f"user{place}@example.org", f"Person {place}"))
            first_lines.append(line)
            continue
        earlier = chance.choice(first_lines)
        name, email, *_rest = rows[earlier - 2]
        again, reason = {
            0: (row(name, f"new{place}@example.org"), f"has the username {name}."),
            1: (row(f"new{place}", email), f"has the email address {email}."),
            2: (row(name, email), f"is the same as line {earlier}."),
            3: (row(name.upper(), email.upper()), f"is the same as line {earlier}."),
            4: (
                row(name.lower(), rows[chance.choice(first_lines) - 2][1].title()),
                "",  # both values are taken, by two accounts (or this time by one)
            ),
        }[len(reasons) % 5]
        rows.append(again)
        reasons[line] = reason
    return Sample(rows, reasons)


@pytest.mark.fault_of("moto", "loses what meets a refused transaction")
@pytest.mark.parametrize(
    ("singles", "duplicates"),
    [(380, 20), pytest.param(9_500, 500, marks=pytest.mark.slow)],
)
def test_exactly_the_duplicates_are_reported_and_again_when_run_again(
    file: Path, rejected: Path, singles: int, duplicates: int
) -> None:
    made = sample(singles, duplicates)
    write_csv(file, made.rows)

    foreseen = import_file(file, "--dry-run").counts
    first = import_file(file)
    first_reasons = rejections(rejected)
    second = import_file(file)

    assert first.counts == {"created": singles, "unchanged": 0, "rejected": duplicates}
    assert foreseen == first.counts
    assert second.counts == {"created": 0, "unchanged": singles, "rejected": duplicates}
    assert first_reasons.keys() == made.reasons.keys()
    assert all(reason in first_reasons[line] for line, reason in made.reasons.items())
    assert rejections(rejected) == first_reasons
    assert_guards_match_users()


# Trying it first


def test_a_dry_run_says_what_would_be_rejected_and_writes_nothing(
    file: Path, rejected: Path, requests_sent: Requests
) -> None:
    make_user(username="taken", email="taken@example.org")
    write_csv(
        file,
        [
            row("ann", "ann@example.org"),
            row("ANN", "ann2@example.org"),
            row("Taken", "taken@example.org"),
            row("new", "taken@example.org"),
            row("ann", "ann@example.org"),
            row("no name", "x@example.org"),
        ],
    )
    before = stored_items()
    requests_sent.clear()
    out = StringIO()

    with pytest.raises(CommandError, match=r"^Rows that would be rejected: 4\.$"):
        call_command("importusers", str(file), "--dry-run", stdout=out)

    assert out.getvalue().splitlines() == [
        "Line 3: Another account has the username ANN.",
        "Line 5: Another account has the email address taken@example.org.",
        "Line 6: This is the same as line 2.",
        "Line 7: Username: Use letters, digits and the characters . + - _ only.",
        "Would be: created 1, unchanged 1, rejected 4.",
    ]
    assert requests_sent.operations == ["BatchGetItem"] * 2
    assert requests_sent.units <= 3 * 5
    assert stored_items() == before
    assert not rejected.exists()


def test_a_dry_run_asks_again_for_what_a_batch_left_out(file: Path, engine: str) -> None:
    make_user(username="ann", email="ann@example.org")
    write_csv(file, [row("ann", "ann@example.org")])
    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan("BatchGetItem", Reply(nothing_processed), times=2)

        assert import_file(file, "--dry-run").unchanged == 1


def test_without_json_the_counts_are_a_sentence(file: Path) -> None:
    write_csv(file, [row("ann", "ann@example.org")])
    out = StringIO()

    call_command("importusers", str(file), stdout=out)

    assert out.getvalue() == "Created 1, unchanged 0, rejected 0.\n"


# Files that are none


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ("username,full_name", "The header has no column: email."),
        ("name,mail", "The header has no column: username, email."),
        ("username,email,shoe_size", "The header has an unknown column: shoe_size."),
        ("username;email", "The header has no column: username, email."),
        ("username,email,email", "The header has more than once the column: email."),
        ("username,email,", "The header has an unknown column: ."),
        ('"a"b,username,email', "Line 1 is no CSV: "),
        ("", "The header has no column: username, email."),
    ],
)
def test_a_header_that_is_wrong_ends_it_at_once(file: Path, header: str, complaint: str) -> None:
    file.write_text(f"{header}\nann,ann@example.org\n" if header else "")

    assert refused_outright(file).startswith(complaint)


def test_another_ending_or_no_file_ends_it_at_once(tmp_path: Path) -> None:
    other = tmp_path / "users.xlsx"
    other.write_text("username,email\n")

    assert refused_outright(other) == "users.xlsx ends neither in .csv nor in .jsonl."
    missing = tmp_path / "missing.csv"
    assert refused_outright(missing) == f"{missing}: No such file or directory."
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert refused_outright(folder) == f"{folder}: Is a directory."


def test_where_rejected_rows_cannot_be_written_nothing_is_begun(file: Path) -> None:
    write_csv(file, [row("ann", "ann@example.org")])
    blocked = file.with_name("users.rejected.csv.part")
    blocked.mkdir()

    done = import_file(file)

    assert done.complaint == f"{blocked}: Is a directory."
    assert stored_items() == {}


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (b"bob,b\xf6b@example.org\n", "Line 3 is not UTF-8."),
        (b"x" * 100_001, "Line 3 is longer than 100,000 bytes."),
        (b'"bob,bob@example.org\ncarol,carol@example.org\n', "Line 3 opens a quotation that never"),
    ],
)
def test_where_a_file_stops_being_readable_the_rows_before_it_are_made(
    file: Path, broken: bytes, complaint: str
) -> None:
    file.write_bytes(b"username,email\nann,ann@example.org\n" + broken)

    done = import_file(file)

    assert done.counts == {"created": 1, "unchanged": 0, "rejected": 0}
    assert done.complaint.startswith(complaint)
    assert users() == {"ann": "ann@example.org"}


@pytest.mark.parametrize("workers", ["0", "65", "-1", "many", "٣"])
def test_workers_are_1_to_64(file: Path, workers: str) -> None:
    with pytest.raises(CommandError, match="is not a whole number from 1 to 64"):
        call_command("importusers", str(file), "--workers", workers)


# Breaking off


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is repeated for a second only."""
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 1.0)


@pytest.fixture
def slow_engine(engine: str) -> Iterator[FaultProxy]:
    """Each transaction takes at least a twentieth of a second."""
    with FaultProxy(engine) as proxy:
        proxy.plan("TransactWriteItems", Meanwhile(lambda: time.sleep(0.05)), times=10**9)
        yield proxy


@contextmanager
def started(file: Path, endpoint: str, *options: str) -> Iterator[Forked]:
    env = os.environ | {"AWS_ENDPOINT_URL_DYNAMODB": endpoint}
    with start("manage.py", "importusers", file, *options, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(requests: int, proxy: FaultProxy, process: Forked) -> None:
    ends_at = time.monotonic() + 60
    while proxy.count("TransactWriteItems") < requests:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < ends_at
        time.sleep(0.01)


@pytest.mark.fault_of("moto", "loses what meets a refused transaction")
def test_killed_in_the_middle_and_run_again_it_ends_complete(
    file: Path, rejected: Path, slow_engine: FaultProxy
) -> None:
    made = sample(190, 10)
    write_csv(file, made.rows)
    with started(file, slow_engine.url) as process:
        wait_for(40, slow_engine, process)
        process.send_signal(signal.SIGKILL)

    made_before_it = len(users())
    assert 0 < made_before_it < 190
    done = import_file(file)
    assert done.counts["created"] + done.counts["unchanged"] == 190
    assert done.created >= 190 - made_before_it - 8  # a worker's request may have been under way
    assert rejections(rejected).keys() == made.reasons.keys()
    assert sorted(file.parent.iterdir()) == [file, rejected]
    assert_guards_match_users()


def test_ctrl_c_ends_the_rows_under_way_and_says_what_was_done(
    file: Path, rejected: Path, slow_engine: FaultProxy
) -> None:
    rows = [row("nobody", "nonsense"), *(row(f"u{n}", f"u{n}@example.org") for n in range(300))]
    write_csv(file, rows)
    with started(file, slow_engine.url, "--json") as process:
        wait_for(20, slow_engine, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)

    assert process.returncode == 130
    counts = json.loads(out)
    assert counts == {"created": len(users()), "unchanged": 0, "rejected": 1}
    assert 20 <= counts["created"] < 300
    assert err.startswith("Interrupted at line ")
    assert err.endswith(f"Rejected rows: 1, see {rejected}.\n")
    assert err.count("\n") == 1
    assert list(rejections(rejected)) == [2]
    assert_guards_match_users()


@pytest.mark.fault_of("moto", "answers 500 to transactions that meet")
@pytest.mark.usefixtures("little_patience")
def test_where_dynamodb_stops_answering_it_says_at_which_line_and_goes_on_next_time(
    file: Path, engine: str
) -> None:
    write_csv(file, [row(f"user{n}", f"user{n}@example.org") for n in range(200)])
    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan("TransactWriteItems", Meanwhile(lambda: None), times=50)
        proxy.plan("TransactWriteItems", Answer(400, "ThrottlingException"), times=10**9)

        began = time.monotonic()
        done = import_file(file)

    assert time.monotonic() - began < 10  # not a second for each row under way
    assert done.counts == {"created": 50, "unchanged": 0, "rejected": 0}
    assert done.complaint.startswith("Stopped at line ")
    assert "DynamoDB gave no answer to TransactWriteItems in time" in done.complaint
    assert import_file(file).counts == {"created": 150, "unchanged": 50, "rejected": 0}
    assert_guards_match_users()


@pytest.mark.usefixtures("little_patience")
def test_an_unreachable_dynamodb_is_one_line(file: Path) -> None:
    write_csv(file, [row("ann", "ann@example.org")])
    with through(NOWHERE):
        done = import_file(file)
        foreseen = import_file(file, "--dry-run")

    assert done.complaint.startswith("Stopped at line 2: DynamoDB gave no answer")
    assert foreseen.complaint.startswith("DynamoDB gave no answer to BatchGetItem")


@pytest.mark.fault_of("moto", "loses what meets a refused transaction")
def test_two_imports_of_one_file_at_once_make_each_account_once(file: Path) -> None:
    write_csv(file, [row(f"user{n}", f"user{n}@example.org") for n in range(100)])
    copies = [file, file.with_name("copy.csv")]
    copies[1].write_bytes(file.read_bytes())

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(import_file, copies))

    assert [each.rejected for each in done] == [0, 0]
    assert [each.created + each.unchanged for each in done] == [100, 100]
    assert len(users()) == 100
    assert_guards_match_users()


def test_rows_are_read_as_they_are_needed_and_never_many(
    file: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(file, [row(f"user{n}", f"user{n}@example.org") for n in range(200)])
    read = 0
    ahead: list[int] = []

    class Counted(files.CsvFile):
        def _row(self, line: int, fields: list[str]) -> files.Row:
            nonlocal read
            read += 1
            ahead.append(read - proxy.count("TransactWriteItems"))
            return super()._row(line, fields)

    monkeypatch.setitem(files._BY_ENDING, ".csv", Counted)
    with FaultProxy(engine) as proxy, through(proxy):
        import_file(file, "--workers", "2")

    assert max(ahead) <= 2 * 4 + 1
