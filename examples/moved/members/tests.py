"""Users of a relational database become accounts, with their passwords."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management import CommandError, call_command
from django.test import override_settings

from dynamo.test import TestCase

PASSWORD = "correct horse battery"
HASH = "pbkdf2_sha256$1000$salt$hHq2CwjSpsUCltVF/ZDe25M5jA5hBHN9+inXRaOGbjU="
OLD = [("ann", "ann@example.org"), ("bob", "ANN@Example.org"), ("carl", "carl@example.org")]


def old_users() -> list[dict[str, Any]]:
    """As `dumpdata auth.user` writes them."""
    about = {"password": HASH, "first_name": "Any", "last_name": "Member", "is_active": True}
    gone = about | {"username": "gone", "email": "gone@example.org", "is_active": False}
    fields = [about | {"username": name, "email": email} for name, email in OLD]
    return [{"model": "auth.user", "fields": values} for values in (*fields, gone)]


HASHERS = ["MD5PasswordHasher", "PBKDF2PasswordHasher"]


@override_settings(PASSWORD_HASHERS=[f"django.contrib.auth.hashers.{name}" for name in HASHERS])
class MoveTests(TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(TemporaryDirectory()))
        dump = self.folder / "dump.json"
        dump.write_text(json.dumps(old_users()))
        for command in (["migrate"], ["loaddata", str(dump)]):
            self.before(*command)
        self.users = self.folder / "users.jsonl"
        self.users.write_text(self.before("writeusers"))

    def before(self, *command: str) -> str:
        """Run a command with the settings before the move."""
        return subprocess.run(
            [sys.executable, "manage.py", *command, "--settings=club.before"],
            env=os.environ | {"CLUB_DATABASE": str(self.folder / "db.sqlite3")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def moved(self) -> dict[str, int]:
        out = io.StringIO()
        with self.assertRaises(CommandError):  # a row was rejected
            call_command("importusers", str(self.users), "--json", stdout=out)
        counts: dict[str, int] = json.loads(out.getvalue())
        return counts

    def test_passwords_stay_duplicates_are_named_and_a_second_run_creates_nothing(self) -> None:
        self.assertEqual(self.moved(), {"created": 2, "unchanged": 0, "rejected": 1})
        for name in ("ann", "carl@example.org"):
            typed = {"username": name, "password": PASSWORD}
            self.assertEqual(self.client.post("/accounts/login/", typed).status_code, 302)
            self.client.post("/accounts/logout/")

        rejected = self.folder / "users.rejected.jsonl"
        [row] = map(json.loads, rejected.read_text().splitlines())
        self.assertEqual((row["line"], row["username"]), (2, "bob"))
        self.assertIn("ANN@Example.org", row["reason"])
        self.assertEqual(self.moved(), {"created": 0, "unchanged": 2, "rejected": 1})
