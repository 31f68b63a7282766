"""What the invoice commands share: whose invoices, and saying plainly which rule refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.management.base import CommandError, CommandParser

from sequences.management.base import SequenceCommand


@contextmanager
def said_plainly(about: str = "") -> Iterator[None]:
    """Turn what a rule refuses into one line on stderr, which begins with `about`; exit code 1."""
    before = f"{about}: " if about else ""
    try:
        yield
    except ValidationError as error:
        raise CommandError(f"{before}{' '.join(error.messages)}") from error


def find_user(who: str) -> Any:
    """The account that goes by `who`: with an @ an address, a UUID its key, else a user name.

    Raises:
        CommandError: nobody does, or the project has no accounts.
    """
    user_model = _user_model()
    try:
        return user_model.find(who)
    except user_model.DoesNotExist as error:
        raise CommandError(f"No account goes by {who!r}.") from error


def _user_model() -> Any:
    """The project's class of accounts; a project that has counters alone has none."""
    try:
        user_model: Any = get_user_model()
    except ImproperlyConfigured:
        user_model = None
    if not hasattr(user_model, "find"):
        raise CommandError("This project has no accounts that invoices could belong to.")
    return user_model


def find_account(who: str) -> str:
    """The primary key of the account that goes by `who`, which may be deleted: invoices stay.

    Raises:
        CommandError: nobody goes by `who`, and it is no primary key.
    """
    try:
        return str(find_user(who).pk)
    except CommandError:
        try:
            return str(uuid.UUID(who))
        except ValueError:
            # Said as it was, not as a malformed key.
            pass
        raise


class InvoiceCommand(SequenceCommand):
    """A command on the invoices of one account, `--user WHO`."""

    #: Whether it takes the number of one invoice.
    takes_number = False

    def add_arguments(self, parser: CommandParser) -> None:
        """Take WHO, and NUMBER."""
        parser.add_argument(
            "--user",
            metavar="WHO",
            required=True,
            help="a user name, an e-mail address or a primary key",
        )
        if self.takes_number:
            parser.add_argument("number", metavar="NUMBER", help="such as 2026-000042")
