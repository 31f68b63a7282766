import getpass
import sys
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from accounts.forms import AccountForm
from accounts.management.base import as_json
from accounts.models import account_model
from accounts.services import register
from dynamo.auth.passwords import check_new_password, is_text
from dynamo.management.base import DynamoCommand, read_line


class Command(DynamoCommand):
    """Follows the rules of the sign-up page, but also allows the reserved usernames."""

    help = "Create an account."

    def add_arguments(self, parser: CommandParser) -> None:
        form = AccountForm()
        for name, field in form.fields.items():
            option = f"--{name.replace('_', '-')}"
            default = form.get_initial_for_field(field, name)
            parser.add_argument(
                option,
                required=field.required and default is None,
                default="" if default is None else default,
                help=str(field.label),
            )
        # Without a terminal, the command cannot ask for the password.
        source = parser.add_mutually_exclusive_group(required=not sys.stdin.isatty())
        source.add_argument(
            "--password-stdin", action="store_true", help="read the password from a line of stdin"
        )
        source.add_argument(
            "--unusable-password", action="store_true", help="create the account without a password"
        )
        parser.add_argument("--staff", action="store_true", help="allow the use of the staff pages")
        parser.add_argument(
            "--superuser", action="store_true", help="also allow actions on other staff"
        )
        parser.add_argument(
            "--request-id", help="names this registration, so that a repetition creates nothing"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: object, **options: Any) -> None:
        if not is_text(options["request_id"] or ""):
            raise CommandError("The request id is not valid text.")
        form = AccountForm(options)
        if not form.is_valid():
            raise CommandError(" ".join(form.faults()))
        values = form.account_values()
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
            self.tell(f"The account of {user} has the primary key {user.pk}.")

    def _password(self, options: dict[str, Any], values: dict[str, Any]) -> str:
        while True:
            try:
                password = self._read(from_stdin=options["password_stdin"])
                check_new_password(password)
                user: Any = account_model()(**values)
                validate_password(password, user)
                return password
            except ValidationError as error:
                problem = f"Password: {' '.join(error.messages)}"
                if options["password_stdin"]:
                    raise CommandError(problem) from error
                self.stderr.write(problem)

    def _read(self, *, from_stdin: bool) -> str:
        if from_stdin:
            return read_line(sys.stdin, default="")
        while (password := getpass.getpass("Password: ")) != getpass.getpass("Password (again): "):
            self.stderr.write("The passwords differ. Please try again.")
        return password
