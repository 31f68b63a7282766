"""What can go wrong with an account.

AccountError
├── ValueTaken            another account holds a unique value
│   ├── UsernameTaken
│   └── EmailTaken
├── RequestIdUsed         the registration's request id made an account of other contents
├── StaleUser             the account changed, or was deleted, since it was read
├── UnknownUser           no account goes by this username, address or key
├── BadLink               a mailed link is too old, was used, or is not for what it was followed for
├── TooManyAttempts       a limit is reached (`accounts.limits.windows`); it passes by itself
├── UnreadableFile        a file of accounts cannot be read as rows (`accounts.imports.files`)
└── ImportStopped         DynamoDB did not do all rows (`accounts.imports.services`)
"""

from __future__ import annotations


class AccountError(Exception):
    """Base of every error of an account operation."""


class ValueTaken(AccountError):
    """Another account holds `value` of the unique attribute `attribute` (its Python name)."""

    #: What people call the attribute, where its Python name does not say it.
    label: str | None = None

    def __init__(self, attribute: str, value: str) -> None:
        super().__init__(attribute, value)
        self.attribute = attribute
        self.value = value

    def __str__(self) -> str:
        label = self.label or self.attribute.replace("_", " ")
        return f"Another account has the {label} {self.value}."


class UsernameTaken(ValueTaken):
    """Another account has this username, in whatever spelling."""

    label = "username"


class EmailTaken(ValueTaken):
    """Another account has this email address, in whatever spelling."""

    label = "email address"


_TAKEN: dict[str, type[ValueTaken]] = {"username": UsernameTaken, "email": EmailTaken}


def taken(attribute: str, value: str) -> ValueTaken:
    """The error that says that another account holds `value` of `attribute`."""
    return _TAKEN.get(attribute, ValueTaken)(attribute, value)


class RequestIdUsed(AccountError):
    """This registration's request id made an account already, and of other contents."""

    def __init__(self, request_id: str) -> None:
        super().__init__(request_id)
        self.request_id = request_id

    def __str__(self) -> str:
        return "This request has made an account with other contents already; use a new request id."


class StaleUser(AccountError):
    """The account changed since it was read, or was deleted; nothing was written."""

    def __init__(self, pk: str, *, deleted: bool = False) -> None:
        super().__init__(pk)
        self.pk = pk
        self.deleted = deleted

    def __str__(self) -> str:
        what = "was deleted" if self.deleted else "changed"
        return f"The account {self.pk} {what} meanwhile; nothing was written."


class UnknownUser(AccountError):
    """No account goes by `who`: a username, an email address or a primary key."""

    def __init__(self, who: str) -> None:
        super().__init__(who)
        self.who = who

    def __str__(self) -> str:
        return f"No account goes by {self.who!r}."


class BadLink(AccountError):
    """A mailed link is not, or no longer, good for `purpose`; nothing was written."""

    def __init__(self, purpose: str) -> None:
        super().__init__(purpose)
        self.purpose = purpose

    def __str__(self) -> str:
        return "This link was already used, is too old, or is incomplete."


class TooManyAttempts(AccountError):
    """The limit named `limit` is reached; after `retry_after_seconds` it is not any more."""

    def __init__(self, retry_after_seconds: int, limit: str = "") -> None:
        super().__init__(retry_after_seconds, limit)
        self.retry_after_seconds = retry_after_seconds
        self.limit = limit

    def __str__(self) -> str:
        return f"Too many attempts; the next may be made in {self.retry_after_seconds} seconds."
