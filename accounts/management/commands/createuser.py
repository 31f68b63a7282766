"""`createuser`: an account from the command line."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from accounts.forms import OperatorsAccountForm
from accounts.management.base import as_json, is_text, said_plainly
from accounts.models import User
from accounts.services import register
from accounts.values import PASSWORD_MAX_LENGTH
from dynamo.management.base import DynamoCommand


class Command(DynamoCommand):
    """Makes an account with its guards, under the rules of the sign-up page.

    Only the reserved usernames are allowed here.
    """

    help = "Create an account."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the account's values and where its password comes from."""
        parser.add_argument("--username", required=True)
        parser.add_argument("--email", required=True)
        parser.add_argument("--full-name", default="")
        parser.add_argument("--phone-number", default="")
        source = parser.add_mutually_exclusive_group()
        source.add_argument(
            "--password-stdin", action="store_true", help="read the password's line from stdin"
        )
        source.add_argument(
            "--unusable-password", action="store_true", help="let no password sign in"
        )
        parser.add_argument("--staff", action="store_true", help="allow the use of the staff pages")
        parser.add_argument(
            "--superuser", action="store_true", help="also allow actions on other staff"
        )
        parser.add_argument(
            "--request-id", help="names this registration: repeated with it, it happens once"
        )
        parser.add_argument("--json", action="store_true")
        self.parser = parser

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, register, print."""
        if not (options["password_stdin"] or options["unusable_password"] or sys.stdin.isatty()):
            self.parser.error("give --password-stdin or --unusable-password: no terminal to ask on")
        values = self._checked(options)
        with said_plainly():
            password = None if options["unusable_password"] else self._password(options, values)
            user = register(
                **values,
                password=password,
                is_staff=options["staff"] or options["superuser"],
                is_superuser=options["superuser"],
                request_id=options["request_id"],
            )
        if options["json"]:
            self.stdout.write(as_json(user))
        else:
            self.stdout.write(f"{user.username} has the account {user.pk}.")

    def _checked(self, options: dict[str, Any]) -> dict[str, Any]:
        if not is_text(options["request_id"] or ""):
            raise CommandError("The request id is no text.")
        form = OperatorsAccountForm(
            {name: options[name] for name in OperatorsAccountForm.base_fields}
        )
        if not form.is_valid():
            raise CommandError(
                " ".join(
                    f"{form.fields[name].label}: {' '.join(map(str, errors))}"
                    for name, errors in form.errors.items()
                )
            )
        return form.account_values()

    def _password(self, options: dict[str, Any], values: dict[str, Any]) -> str:
        if options["password_stdin"]:
            try:
                password = sys.stdin.readline().rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise CommandError("Password: This is no text.") from error
            self._validate(password, values)
            return password
        while True:
            password = getpass.getpass("Password: ")
            if password != getpass.getpass("Password (again): "):
                self.stderr.write("The passwords differ. Please try again.")
                continue
            try:
                self._validate(password, values)
            except CommandError as error:
                self.stderr.write(str(error))
                continue
            return password

    def _validate(self, password: str, values: dict[str, Any]) -> None:
        if not is_text(password):
            raise CommandError("Password: This is no text.")
        if len(password) > PASSWORD_MAX_LENGTH:
            # No form takes it, so nobody could ever sign in with it.
            raise CommandError(f"Password: Use at most {PASSWORD_MAX_LENGTH} characters.")
        user: Any = User(**{name: value for name, value in values.items() if value})
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise CommandError(f"Password: {' '.join(error.messages)}") from error
