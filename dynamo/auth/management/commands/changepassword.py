"""`changepassword`: Django's, which also reads the password from a pipe."""

import sys
import warnings
from getpass import GetPassWarning

from django.contrib.auth.management.commands import changepassword

from dynamo.auth.passwords import check_new_password
from dynamo.management.base import DynamoCommand, read_line


class Command(DynamoCommand, changepassword.Command):
    """Asks twice for a password and stores its hash. Without a terminal it reads two lines."""

    def _get_pass(self, *args: object, **options: object) -> str:
        try:
            with warnings.catch_warnings():
                # Without a terminal, getpass warns that the password may be echoed.
                warnings.simplefilter("error", GetPassWarning)
                password: str = super()._get_pass(*args, **options)  # type: ignore[misc]  # not in the stubs
        except GetPassWarning:
            password = read_line(sys.stdin)
        check_new_password(password)
        return password
