"""`importusers`: each row becomes an account once, earlier rows win, rejections are explained."""

import csv
import json
import os
import signal
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import (
    Argon2PasswordHasher,
    PBKDF2PasswordHasher,
    ScryptPasswordHasher,
    make_password,
)

from accounts.imports import files
from accounts.imports.services import MOST_WRITES, ROWS_PER_WORKER, import_users
from accounts.models import User
from accounts.services import change_email, change_username, find_user
from dynamo.runtime import deadline
from tests.commands import run
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    make_unique,
    make_user,
    stored_items,
)
from tests.faults.kinds import Answer, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy, through
from tests.programs import start
from tests.requests import Requests
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")

COLUMNS = ["username", "email", "full_name", "phone_number", "password_hash"]
Counts = dict[str, int]

#: Rows of one transaction.
ROWS_AT_ONCE = MOST_WRITES // (1 + len(User.uniques()))


def import_file(path: Path, *options: str) -> tuple[Counts, str]:
    """The counts that the command prints, and the line with which it exits 1 (empty on success)."""
    out, err, code = run("importusers", str(path), "--json", *options)
    assert code == err.count("\n") == bool(err)
    assert out.count("\n") <= 1
    complaint = err.removeprefix("CommandError: ").removesuffix("\n")
    return (json.loads(out) if out else {}), complaint


def counts(created: int = 0, unchanged: int = 0, rejected: int = 0) -> Counts:
    return {"created": created, "unchanged": unchanged, "rejected": rejected}


def write_csv(path: Path, rows: Iterable[Iterable[str]], header: Iterable[str] = COLUMNS) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def row(
    username: str, email: str, full_name: str = "", phone: str = "", hash: str = ""
) -> list[str]:
    return [username, email, full_name, phone, hash]


def numbered(count: int) -> list[list[str]]:
    return [row(f"user{n}", f"user{n}@example.org", f"Person {n}") for n in range(count)]


def rejections(path: Path) -> dict[int, str]:
    """The reasons in a file of rejected rows, by line."""
    with path.open(encoding="utf-8", newline="") as file:
        rows: Any = csv.DictReader(file) if path.suffix == ".csv" else map(json.loads, file)
        return {int(item["line"]): item["reason"] for item in rows}


def users() -> dict[str, str]:
    """The email addresses of all accounts, by username."""
    items = stored_items().values()
    return {item["userName"]["S"]: item["email"]["S"] for item in items if "userName" in item}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users.csv"


@pytest.fixture
def rejected(tmp_path: Path) -> Path:
    return tmp_path / "users.rejected.csv"


# What a row becomes -------------------------------------------------------------------------------


def test_a_row_becomes_an_account_and_without_json_the_counts_are_a_sentence(file: Path) -> None:
    write_csv(file, [row("Ann", "Ann@Example.org", "Ann O'Neill", "+1 202-555-0124")])

    outcome = run("importusers", str(file))

    assert outcome == ("Created 1, unchanged 0, rejected 0.\n", "", 0)
    user = find_user("ann")
    assert (user.username, user.email) == ("Ann", "Ann@Example.org")
    assert (user.full_name, user.phone_number) == ("Ann O'Neill", "+12025550124")
    assert not user.has_usable_password()
    assert_guards_match_users()


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("users.csv", b"email,username\r\nann@example.org,ann\r\nbob@example.org,bob"),
        # Spreadsheets write a byte order mark and blank lines.
        (
            "users.CSV",
            b'\xef\xbb\xbfusername,email\r\n\r\nann,ann@example.org\r\n \r\n"bob",bob@example.org',
        ),
        # A spreadsheet's table with empty rows, in other countries and as "Unicode text".
        *(
            (
                "users.csv",
                "\r\n".join(["", ";;", "Username;EMAIL;Full Name", *rows, ";;", ""])
                .replace(";", separator)
                .encode(encoding),
            )
            for rows in [("ann;ann@example.org;Ċ 上 ਊ", '"bob";bob@example.org;')]
            for separator in ",;\t"
            for encoding in ("utf-8", "utf-8-sig", "utf-16")
        ),
        (
            "users.csv",
            "\ufeffusername;email\nann;ann@example.org\nbob;bob@example.org".encode("utf-16-be"),
        ),
        (
            "users.jsonl",
            '{"username": "ann", "email": "ann@example.org"}\n'
            '{"username": "bob", "email": "bob@example.org"}\n'.encode("utf-16"),
        ),
        (
            "users.jsonl",
            b'{"username": "ann", "email": "ann@example.org"}\n\n'
            b'{"email": "bob@example.org", "username": "bob", "phone_number": null}',
        ),
    ],
)
def test_csv_and_json_lines_are_imported(tmp_path: Path, name: str, contents: bytes) -> None:
    file = tmp_path / name
    file.write_bytes(contents)

    assert import_file(file) == (counts(created=2), "")

    assert users() == {"ann": "ann@example.org", "bob": "bob@example.org"}
    assert sorted(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("change", ["address", "name", "both"])
def test_an_account_that_changed_since_is_not_created_again(
    file: Path, rejected: Path, change: str
) -> None:
    write_csv(file, [row("ann", "ann@example.org")])
    import_file(file)
    user = find_user("ann")
    if change != "name":
        change_email(user, "new@example.org")
    if change != "address":
        change_username(user, "anna")
    before = stored_items()

    assert import_file(file)[0] == counts(rejected=1)
    assert rejections(rejected) == {
        2: "This row was imported before, and the account has changed since."
    }
    assert import_file(file, "--dry-run")[0] == counts(rejected=1)
    assert stored_items() == before
    [(name, email)] = users().items()
    assert import_file(write_csv(file, [row(name, email)]))[0] == counts(unchanged=1)


# Rejected rows ------------------------------------------------------------------------------------


NOT_A_HASH = "Password hash: This is not a Django password hash"
#: By the ending of the file: lines, and a part of the reason why each is rejected.
BAD_LINES = {
    "csv": [
        ("a b,ann@example.org,,,", "Username: Use letters, digits"),
        (",ann@example.org,,,", "Username: This field is required."),
        ("ann,nonsense,,,", "Email address: Enter a valid email address."),
        ("ann,a@example.org,x\x00y,,", "Full name: Use printable characters only."),
        ("ann,a@example.org,,12,", "Phone number: Enter a valid phone number"),
        ("ann,a@example.org,,,hunter2", NOT_A_HASH),
        ("ann,a@example.org,,,!hunter2", NOT_A_HASH),
        ("ann,ann@example.org", "There are 2 fields for 5 columns."),
        ("ann,ann@example.org,,,,and,more", "There are 7 fields for 5 columns: and,"),
        (",nonsense,,,", "Username: This field is required. Email address: Enter a valid"),
        ('"a"nn', "This is not CSV: "),
    ],
    "jsonl": [
        ("{", "This is not JSON: "),
        ("[" * 50_000, "This is not JSON: "),
        ('{"username": ' + "9" * 5000 + "}", "This is not JSON: "),
        ('["ann", "ann@example.org"]', "This is not a JSON object."),
        ('{"username": "ann", "email": "a@example.org", "shoe": 7}', "There is an unknown key: sh"),
        ('{"username": 7, "email": "a@example.org"}', "There is a value that is not text: usern"),
        ('{"username": "ann", "email": false}', "There is a value that is not text: email."),
        ('{"username": "ann"}', "Email address: This field is required."),
        ('{"username": "a\\ud800", "email": "a@example.org"}', "Username: Use letters, digits"),
    ],
}


@pytest.mark.parametrize(
    ("ending", "header", "carol"),
    [
        ("csv", [",".join(COLUMNS)], "carol,carol@example.org,,,"),
        ("jsonl", [], '{"username": "carol", "email": "carol@example.org"}'),
    ],
)
def test_an_invalid_row_is_rejected_and_the_next_one_imported(
    tmp_path: Path, ending: str, header: list[str], carol: str
) -> None:
    lines, reasons = zip(*BAD_LINES[ending], strict=True)
    file = tmp_path / f"users.{ending}"
    file.write_text("\n".join([*header, *lines, carol]))

    assert import_file(file)[0] == counts(created=1, rejected=len(lines))

    found = rejections(tmp_path / f"users.rejected.{ending}")
    assert list(found) == list(range(len(header) + 1, len(header) + 1 + len(lines)))
    for said, reason in zip(found.values(), reasons, strict=True):
        assert reason in said
    assert users() == {"carol": "carol@example.org"}


def test_rejected_rows_keep_their_columns_and_can_be_corrected_and_imported(
    file: Path, rejected: Path
) -> None:
    header = ["email", "phone_number", "username"]
    write_csv(file, [["ann@example.org", "+1 202", "Ann, the 1st"]], header)
    file.write_text(file.read_text().replace(",", ";").replace("Ann; the", "Ann, the"))
    import_file(file)

    assert rejected.stat().st_mode & 0o777 == 0o600
    with rejected.open(newline="", encoding="utf-8") as kept:
        columns, only = csv.reader(kept, delimiter=";")
    assert columns == [*header, "line", "reason"]
    assert only[:4] == ["ann@example.org", "+1 202", "Ann, the 1st", "2"]

    text = rejected.read_text(encoding="utf-8").replace("Ann, the 1st", "ann")
    rejected.write_text(text.replace("+1 202", ""), encoding="utf-8")
    assert import_file(rejected)[0] == counts(created=1)
    # Without rejected rows there is no such file.
    file.write_text("username,email\n")
    import_file(file)
    assert list(file.parent.iterdir()) == [file]


def test_a_rejected_json_object_is_kept_as_it_was(tmp_path: Path) -> None:
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


# Password hashes ----------------------------------------------------------------------------------


@pytest.fixture
def known_hashers(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 20_000)  # a million takes a second
    monkeypatch.setattr(Argon2PasswordHasher, "memory_cost", 1024)
    monkeypatch.setattr(ScryptPasswordHasher, "work_factor", 2**10)
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.Argon2PasswordHasher",
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",
        "django.contrib.auth.hashers.ScryptPasswordHasher",
        "django.contrib.auth.hashers.BCryptSHA256PasswordHasher",
    ]


@pytest.mark.usefixtures("known_hashers")
def test_an_imported_hash_signs_in_and_djangos_mark_is_no_password(file: Path) -> None:
    hashers = {name: make_password(PASSWORD, hasher=name) for name in ("argon2", "scrypt")}
    hashers["pbkdf2"] = make_password(PASSWORD, hasher="pbkdf2_sha256")
    marks = {"mark": "!" + "aB3" * 13 + "x", "old": "!"}
    rows = [row(name, f"{name}@x.org", hash=hasher) for name, hasher in (hashers | marks).items()]

    assert import_file(write_csv(file, rows))[0] == counts(created=5)

    for name, encoded in hashers.items():
        user = find_user(name)
        assert user.password == encoded
        assert authenticate(username=name, password="wrong") is None
        assert authenticate(username=name, password=PASSWORD) == user
    assert not any(find_user(name).has_usable_password() for name in marks)
    # Some hashes are upgraded by now, which makes no difference.
    assert import_file(file)[0] == counts(unchanged=5)


ARGON2 = "argon2$argon2id$v=19$m=102400,t=2,p=8$c29tZXNhbHRzb21lc2FsdA$"
DIGEST = "A" * 43
SHA256 = DIGEST + "="
#: By the hash: a part of its reason.
UNUSABLE_HASHES = dict.fromkeys(
    (
        "argon2",
        "pbkdf2_sha256$1000$salt",  # a part is missing
        "pbkdf2_sha256$many$salt$aGFzaA==",
        "pbkdf2_sha256$-5$salt$aGFzaA==",
        "pbkdf2_sha256$99999999999$salt$aGFzaA==",  # hours for each sign-in
        "pbkdf2_sha256$1000$$aGFzaA==",
        f"pbkdf2_sha256$1000$salt${DIGEST}",  # one character is missing
        f"pbkdf2_sha256$+1000$salt${SHA256}",
        "scrypt$16384$salt$8$5$aGFzaA==",
        ARGON2.replace("m=102400", "m=99999999") + DIGEST,
        ARGON2.replace("id$v", "xx$v") + DIGEST,
        "scrypt$salt$1000$8$5$aGFzaA==",  # not a power of two
        "bcrypt_sha256$$2b$12$" + "x" * 53,  # its library is not installed
    ),
    "This hash is broken",
) | {
    **dict.fromkeys((ARGON2 + "ä" + DIGEST, "sha512_crypt$salt$hash"), NOT_A_HASH),
    **dict.fromkeys(("!" + "x" * 300, "pbkdf2_sha256$1000$salt$" + "x" * 300), NOT_A_HASH),
    "md5$salt$0123456789abcdef0123456789abcdef": "The hasher md5 is not enabled here",
}


@pytest.mark.usefixtures("known_hashers")
def test_a_hash_that_no_sign_in_could_check_is_rejected(file: Path, rejected: Path) -> None:
    hashes = [*UNUSABLE_HASHES]
    write_csv(file, [row(f"ann{n}", f"{n}@x.org", hash=hash_) for n, hash_ in enumerate(hashes)])

    assert import_file(file)[0] == counts(rejected=len(hashes))
    reasons = rejections(rejected).values()
    for (encoded, told), reason in zip(UNUSABLE_HASHES.items(), reasons, strict=True):
        assert told in reason
        assert encoded not in reason


# Many rows ----------------------------------------------------------------------------------------


def sample() -> tuple[list[list[str]], dict[int, str]]:
    """300 rows, of which 20 repeat values of earlier rows, and by line why these are rejected."""
    rows, reasons = numbered(300), {}
    for count, place in enumerate(range(14, 300, 15)):
        earlier = place // 2 - (place // 2 % 15 == 14)
        name, email, *_rest = rows[earlier]
        rows[place], reasons[place + 2] = [
            (row(name, f"new{place}@example.org"), f"has the username {name}."),
            (row(f"new{place}", email), f"has the email address {email}."),
            (row(name, email), f"is the same as line {earlier + 2}."),
            (row(name.upper(), email.upper()), f"is the same as line {earlier + 2}."),
            (row(name, rows[0][1]), f"has the username {name}. Another account has the email"),
        ][count % 5]
    return rows, reasons


@pytest.mark.fault_of("moto", "loses what meets a refused transaction")
def test_exactly_the_duplicates_are_rejected_also_in_a_dry_run_and_a_second_run(
    file: Path, rejected: Path
) -> None:
    rows, reasons = sample()
    write_csv(file, rows)

    foreseen = import_file(file, "--dry-run")[0]
    first = import_file(file)[0]
    first_reasons = rejections(rejected)
    second = import_file(file)[0]

    assert foreseen == first == counts(created=280, rejected=20)
    assert second == counts(unchanged=280, rejected=20)
    assert first_reasons.keys() == reasons.keys()
    assert all(reason in first_reasons[line] for line, reason in reasons.items())
    assert rejections(rejected) == first_reasons
    assert_guards_match_users()


def test_rows_are_read_only_as_they_are_needed(
    file: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(file, numbered(200))
    read = 0
    ahead: list[int] = []

    class Counted(files.CsvFile):
        def _row(self, line: int, fields: list[str]) -> files.Row:
            nonlocal read
            read += 1
            ahead.append(read - ROWS_AT_ONCE * proxy.count("TransactWriteItems"))
            return super()._row(line, fields)

    monkeypatch.setitem(files._BY_ENDING, ".csv", Counted)
    with FaultProxy(engine) as proxy, through(proxy):
        import_file(file, "--workers", "2")

    assert max(ahead) <= 2 * ROWS_PER_WORKER + 1


#: Rows, and why each is rejected.
FORESEEN = [
    (row("ann", "ann@example.org"), ""),
    (row("ANN", "ann2@example.org"), "Another account has the username ANN."),
    (row("Taken", "taken@example.org", phone="+1 202-555-0109"), ""),
    (row("new", "taken@example.org"), "Another account has the email address taken@example.org."),
    (row("ann", "ann@example.org"), "This is the same as line 2."),
    (
        row("no name", "x@example.org"),
        "Username: Use letters, digits and the characters . + - _ only.",
    ),
    (
        row("bob", "bob@example.org", phone="+1 202-555-0101"),
        "Another account has the phone number +12025550101.",
    ),
    (row("eve", "eve@example.org", phone="+1 202-555-0103"), ""),
    (
        row("joe", "joe@example.org", phone="+1 202 555 0103"),
        "Another account has the phone number +12025550103.",
    ),
    (
        row("taken", "other@example.org"),
        "Another account has the username taken. "
        "Another account has the email address other@example.org.",
    ),
    (row("bücher", "a@bücher.example"), ""),
    (row("Bücher", "A@xn--bcher-kva.example"), "This is the same as line 12."),
    (row("james", "Ann@Example.org"), "Another account has the email address Ann@Example.org."),
    (row("ADMIN", "admin@example.org"), ""),
    (row("Сосо", "Older@example.org"), ""),
    (row("admin", "else@example.org"), "Username: This username is reserved."),
    (
        row("сосо", "else@example.org"),
        "Username: This username looks like “coco” but has different letters. Choose another one.",
    ),
    (row("root", "older@example.org"), "Username: This username is reserved."),
]


@pytest.mark.fault_of("moto", "loses what meets a refused transaction")
def test_a_dry_run_foresees_every_row_and_writes_nothing(
    file: Path, rejected: Path, requests_sent: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_unique(monkeypatch, "phone_number")
    make_user(username="taken", email="taken@example.org", phone_number="+12025550101")
    for name in ("other", "admin"):
        make_user(username=name, email=f"{name}@example.org")
    # Earlier rules allowed this username, which is Cyrillic.
    make_user(username="before", email="older@example.org").change(username="сосо")
    write_csv(file, [item for item, _reason in FORESEEN])
    before = stored_items()
    requests_sent.clear()

    out, err, code = run("importusers", str(file), "--dry-run")

    assert (err, code) == ("CommandError: Rows that would be rejected: 12.\n", 1)
    reasons = {line: reason for line, (_row, reason) in enumerate(FORESEEN, 2) if reason}
    assert out.splitlines() == [
        *(f"Line {line}: {reason}" for line, reason in reasons.items()),
        "Would be: created 3, unchanged 3, rejected 12.",
    ]
    assert set(requests_sent.operations) == {"BatchGetItem"}
    assert requests_sent.units <= 4 * len(FORESEEN)
    assert stored_items() == before
    assert not rejected.exists()
    expected = counts(created=3, unchanged=3, rejected=12)
    assert import_file(file) == (expected, f"Rejected rows: 12, see {rejected}.")
    assert rejections(rejected) == reasons


# Unusable files -----------------------------------------------------------------------------------


def test_a_wrong_header_ends_the_import_at_once(file: Path) -> None:
    for header, complaint in (
        ("username,full_name", "The header has no column: email. It has: username, full_name."),
        ("name\tMail", "The header has no column: username, email. It has: name, Mail."),
        (
            f"{'x' * 40_000},{'y' * 40_000}",
            f"The header has no column: username, email. It has: {'x' * 200}.",
        ),
        ("username,email,shoe_size", "The header has an unknown column: shoe_size."),
        ("username,email,email", "The header repeats the column: email."),
        ("username,email,", "The header has an unknown column: ."),
        ('"a"b,username,email', "Line 1 is not CSV: "),
        ("", "The header has no column: username, email."),
    ):
        file.write_text(f"{header}\nann,ann@example.org\n" if header else "")
        done, said = import_file(file)
        assert said.startswith(complaint)
        assert (done, list(file.parent.iterdir())) == ({}, [file])
    assert stored_items() == {}


def test_files_that_cannot_be_used_end_the_import_at_once(tmp_path: Path, file: Path) -> None:
    other, folder, missing = (tmp_path / name for name in ("users.xlsx", "folder.csv", "no.csv"))
    folder.mkdir()

    assert import_file(other) == ({}, "users.xlsx: the file name must end in .csv or .jsonl.")
    assert import_file(missing) == ({}, f"{missing}: No such file or directory.")
    assert import_file(folder) == ({}, f"{folder}: Is a directory.")
    assert stored_items() == {}


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (b"bob,b\xf6b@example.org\n", "Line 3 is not UTF-8."),
        (b"x" * 100_001, "Line 3 is longer than 100,000 characters."),
        (
            b'"bob,bob@example.org\ncarol,carol@example.org\n',
            "The quotation mark in line 3 is never closed",
        ),
    ],
)
def test_the_rows_before_an_unreadable_line_are_imported(
    file: Path, broken: bytes, complaint: str
) -> None:
    file.write_bytes(b"username,email\nann,ann@example.org\n" + broken)

    done, said = import_file(file)

    assert done == counts(created=1)
    assert said.startswith(complaint)
    assert users() == {"ann": "ann@example.org"}


# Interruptions ------------------------------------------------------------------------------------


def test_ctrl_c_finishes_the_current_rows_and_reports_what_was_done(
    file: Path, rejected: Path, engine: str
) -> None:
    write_csv(file, [row("nobody", "nonsense"), *numbered(300)])
    arguments = ("manage.py", "importusers", file, "--json", "--workers=1")
    with FaultProxy(engine) as proxy:
        proxy.plan("TransactWriteItems", Meanwhile(lambda: time.sleep(0.05)), times=10**9)
        env = os.environ | {"AWS_ENDPOINT_URL_DYNAMODB": proxy.url}
        with start(*arguments, env=env) as process:
            try:
                wait_until(lambda: proxy.count("TransactWriteItems") >= 2)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=120)
            finally:
                process.kill()

    assert process.returncode == 130
    done = json.loads(out)
    assert done == counts(created=len(users()), rejected=1)
    assert ROWS_AT_ONCE < done["created"] < ROWS_PER_WORKER - 1  # not even its first batch
    assert err.startswith("Interrupted at line ")
    assert err.endswith(f"Rejected rows: 1, see {rejected}.\n")
    assert err.count("\n") == 1
    assert list(rejections(rejected)) == [2]
    assert_guards_match_users()


@pytest.mark.fault_of("moto", "loses what meets a refused transaction")
def test_a_stopped_import_begins_no_further_row(file: Path, engine: str) -> None:
    make_user(username="user0", email="other@example.org")
    write_csv(file, [*numbered(ROWS_AT_ONCE), row("nobody", "nonsense")])
    stop = threading.Event()
    with FaultProxy(engine) as proxy, through(proxy), files.open_rows(file) as rows:
        proxy.plan("TransactWriteItems", Meanwhile(lambda: None), times=2)
        proxy.plan("TransactWriteItems", Meanwhile(stop.set))

        results = list(import_users(rows, workers=1, stop=stop))

    assert [(result.row.line, result.outcome) for result in results] == [
        (2, "rejected"),
        (3, "created"),
    ]
    assert users().keys() == {"user0", "user1"}


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
@pytest.mark.fault_of("ministack", "counts no units of an index")
def test_rows_share_a_request_also_when_they_are_imported_again(
    file: Path, requests_sent: Requests
) -> None:
    write_csv(file, numbered(2 * ROWS_AT_ONCE))
    import_file(file)
    assert requests_sent.operations == ["TransactWriteItems"] * 2
    assert requests_sent.units == 8 * 2 * ROWS_AT_ONCE
    requests_sent.clear()

    assert import_file(file)[0] == counts(unchanged=2 * ROWS_AT_ONCE)
    assert requests_sent.operations == ["TransactWriteItems"] * 2


@pytest.mark.fault_of("moto", "answers 500 to transactions that meet")
def test_an_import_stops_if_dynamodb_does_and_the_next_run_continues(
    file: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(file, numbered(200))
    with FaultProxy(engine) as proxy, through(proxy), monkeypatch.context() as patch:
        patch.setattr(deadline, "OPERATION_SECONDS", 1.0)
        proxy.plan("TransactWriteItems", DropReply())
        proxy.plan("TransactWriteItems", Meanwhile(lambda: None), times=5)
        proxy.plan("TransactWriteItems", Answer(400, "ThrottlingException"), times=10**9)

        began = time.monotonic()
        done, said = import_file(file, "--workers", "1")

    assert time.monotonic() - began < 10  # not a second for each row under way
    assert done == counts(created=5 * ROWS_AT_ONCE)
    assert said.startswith("Stopped at line ")
    assert "DynamoDB gave no answer to TransactWriteItems in time" in said
    made = done["created"]
    assert import_file(file)[0] == counts(created=200 - made, unchanged=made)
    assert_guards_match_users()
