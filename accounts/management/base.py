"""The base of the account commands, which finds an account and shows it."""

import json
from collections.abc import Callable
from datetime import date
from numbers import Number
from typing import ClassVar

from django.core.management.base import CommandParser

from accounts.models import AbstractAccount
from accounts.personal_data import by_stored_name, own_attributes
from accounts.services import find_user
from dynamo.management.base import DynamoCommand
from dynamo.wire.fields import ShownEncoder

_SHOWN = ("pk", "username", "email", "full_name", "phone_number")
_SHOWN_LAST = ("is_active", "is_staff", "date_joined", "last_login")


class UserCommand(DynamoCommand):
    """A command on one account, WHO. Subclasses name an operation, or override `act`."""

    #: It gets the account and the texts of the further `arguments`, which have a help each.
    operation: ClassVar[Callable[..., object]]
    arguments: tuple[tuple[str, str], ...] = ()
    #: Further options without a value, and their help.
    flags: tuple[tuple[str, str], ...] = ()
    #: The text to print about the changed account.
    message = ""

    def add_arguments(self, parser: CommandParser) -> None:
        who = "its email address or primary key, or its username if accounts have one"
        parser.add_argument("who", metavar="WHO", help=who)
        for name, help_text in self.arguments:
            parser.add_argument(name.lower(), metavar=name, help=help_text)
        for name, help_text in self.flags:
            parser.add_argument(name, action="store_true", help=help_text)

    def handle(self, *args: object, who: str, **options: object) -> None:
        self.act(find_user(who), **options)

    def act(self, user: AbstractAccount, **options: object) -> None:
        """Call the operation, and print what it did."""
        type(self).operation(user, *(options[name.lower()] for name, _help in self.arguments))
        self.tell(self.message.format(user=user))


def as_json(user: AbstractAccount) -> str:
    """One JSON object. Times are ISO 8601 in UTC, missing values are null."""
    return json.dumps(_shown(user), default=_plain, ensure_ascii=False)


def as_lines(user: AbstractAccount) -> str:
    """One line for each value that the account has."""
    shown = _shown(user) | ({"isSuperuser": True} if user.is_superuser else {})
    return "\n".join(
        f"{key + ':':<12} {_readable(value)}" for key, value in shown.items() if value is not None
    )


def as_row(user: AbstractAccount) -> str:
    state = "" if user.is_active else "  (deactivated)"
    names = dict.fromkeys((str(user), user.email))
    return f"{user.pk}  {'  '.join(names)}{state}"


def _shown(user: AbstractAccount) -> dict[str, object]:
    return by_stored_name(user, (*_SHOWN, *own_attributes(), *_SHOWN_LAST))


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else ShownEncoder().default(value)


def _readable(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, (str, Number)) else ShownEncoder().encode(value)
