"""`createsuperuser`: Django's command, for the users of `dynamo.auth`."""

import os
import sys
from typing import Any
from unittest.mock import patch

from django.contrib.auth.management.commands import createsuperuser
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import models

from dynamo.auth.passwords import check_new_password
from dynamo.management.base import DynamoCommand, read_line

#: Django's command reads the password from this variable.
VARIABLE = "DJANGO_SUPERUSER_PASSWORD"


class Command(DynamoCommand, createsuperuser.Command):
    """Asks on a terminal, or takes options and the variables DJANGO_SUPERUSER_…."""

    UserModel: Any

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--password-stdin",
            action="store_true",
            help="read the password from a line of stdin, and ask for nothing",
        )

    def handle(self, *args: object, password_stdin: bool = False, **options: object) -> str | None:
        given = {}
        if password_stdin:
            options["interactive"] = False
            given[VARIABLE] = self._read_password(options)
        try:
            with patch.dict(os.environ, given):
                return super().handle(*args, **options)
        except UnicodeEncodeError as error:
            raise CommandError(
                "The username, email address or password is not valid text."
            ) from error

    def _read_password(self, options: dict[str, object]) -> str:
        password = read_line(sys.stdin)
        if not password.strip() or "\0" in password:
            raise CommandError("Password: Send it as one line of text.")
        named = {name: options[name] for name in self.UserModel.needed() if options[name]}
        try:
            check_new_password(password)
            validate_password(password, self.UserModel(**named))
        except ValidationError as error:
            raise CommandError(f"Password: {' '.join(error.messages)}") from error
        return password

    def get_input_data(
        self, field: models.Field, message: str, default: str | None = None
    ) -> str | None:
        """Ask for a value.

        Returns None if it breaks a rule, so that Django's command asks again.
        """
        value = super().get_input_data(field, message, default)
        if value is not None:
            try:
                self.UserModel.cleaned(**{field.name: value})
            except ValidationError as error:
                self.stderr.write(f"Error: {' '.join(error.messages)}")
                return None
        return value
