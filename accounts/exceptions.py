"""Errors of accounts.

AccountError
├── ValueTaken            another account has a unique value
│   ├── UsernameTaken
│   └── EmailTaken
├── AccountRequestReused  the request id registered an account with other values
├── StaleUser             the account changed or was deleted since it was read
├── UnknownUser           no account has this username, email address or key
├── BadLink               a mailed link is too old, was used or replaced, or has another purpose
│   └── UsedLink          the link has already had its effect
├── TooManyAttempts       a limit is reached (`accounts.limits`)
├── UnreadableFile        a file of accounts cannot be read (`accounts.imports`)
└── ImportStopped         a request for a row of an import failed
"""

from collections.abc import Mapping

from dynamo import DynamoError
from dynamo.exceptions import ErrorWithValues, RequestIdReused


class AccountError(ErrorWithValues):
    """Base of every error of an account operation."""


class ValueTaken(AccountError):
    """Another account has the `values` of the unique `attributes` (their Python names)."""

    attributes: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def uniques(self) -> list[tuple[str, ...]]:
        """The attribute names of each taken `Unique`, as in `dynamo.exceptions.Taken`."""
        return [self.attributes]

    def __str__(self) -> str:
        named = (
            f"{_LABELS.get(name, name.replace('_', ' '))} {value}"
            for name, value in zip(self.attributes, self.values, strict=True)
        )
        return f"Another account has the {' and the '.join(named)}."


class UsernameTaken(ValueTaken):
    pass


class EmailTaken(ValueTaken):
    pass


_TAKEN: dict[tuple[str, ...], type[ValueTaken]] = {
    ("username",): UsernameTaken,
    ("email",): EmailTaken,
}
#: Names of attributes in messages that differ from the Python names.
_LABELS = {"email": "email address"}


def taken(names: tuple[str, ...], values: Mapping[str, object]) -> ValueTaken:
    """The error for the attributes `names`, if another account has their `values`."""
    found = tuple(str(values[name]) for name in names)
    return _TAKEN.get(names, ValueTaken)(names, found)


class AccountRequestReused(AccountError, RequestIdReused):
    """The request id has registered an account with other values."""

    text = "This request id has created an account with other values. Use a new request id."


class StaleUser(AccountError):
    """The account changed or was deleted since it was read. Nothing was written."""

    pk: str
    deleted: bool = False

    def __str__(self) -> str:
        what = "was deleted" if self.deleted else "changed"
        return f"The account {self.pk} {what} meanwhile. Nothing was written."


class UnknownUser(AccountError):
    """No account has the username, email address or primary key `who`."""

    who: str

    text = "There is no account {who!r}."


class BadLink(AccountError):
    """A mailed link for `purpose` is not valid, or not any more. Nothing was written."""

    purpose: str

    text = "This link was already used, is too old, or is incomplete."


class UsedLink(BadLink):
    pass


class TooManyAttempts(AccountError):
    """The limit named `limit` is reached. It ends after `retry_after_seconds`."""

    retry_after_seconds: int
    limit: str = ""

    text = "Too many attempts. Try again in {retry_after_seconds} seconds."


class UnreadableFile(AccountError):
    """A file of accounts cannot be read; `reason` says where and why."""

    reason: str

    text = "{reason}"


class ImportStopped(AccountError):
    """A request for the row at `line` failed. A few of the rows after it may have been imported."""

    line: int
    error: DynamoError

    text = "Stopped at line {line}: {error}"
