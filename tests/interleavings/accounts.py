"""Scenarios of accounts, and the rules of usernames and email addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from accounts.exceptions import AccountError
from accounts.models import User
from accounts.services import register
from dynamo.exceptions import DynamoError, Refused
from tests.emptying import empty
from tests.factories import assert_guards_match_users, stored_items
from tests.interleavings.operations import DEAD

#: What an operation on an account may answer, besides a success.
REFUSALS = (AccountError, DynamoError, Refused, User.DoesNotExist)


class AccountScenario:
    """No accounts at first. A test adds accounts and operations, and checks the outcomes."""

    late: set[int]

    def __init__(self) -> None:
        empty(User.table())
        self._items: dict[str, dict[str, Any]] | None = None
        self.operations: list[Callable[[], object]] = []
        self.expects: Callable[[list[Any]], None] = lambda _outcomes: None

    def always(self, wrote: bool) -> None:
        """Every user has exactly its guards, every guard exactly its user."""
        if wrote:
            self._items = None
            assert_guards_match_users(self.items)

    def afterwards(self, outcomes: list[Any]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, REFUSALS):
                raise outcome
        self.expects(outcomes)

    def words(self, outcomes: list[Any]) -> list[str]:
        """As `words_of`; late if a lost request of an operation succeeded after its answer."""
        return [
            "late" if number in self.late and word != "done" else word
            for number, word in enumerate(words_of(outcomes))
        ]

    @property
    def items(self) -> dict[str, dict[str, Any]]:
        """What is stored after the last step."""
        if self._items is None:
            self._items = stored_items()
        return self._items

    @property
    def accounts(self) -> dict[str, str]:
        """The usernames and email addresses that are stored after the last step."""
        users = [item for pk, item in self.items.items() if "#" not in pk]
        return {user["userName"]["S"]: user["email"]["S"] for user in users}


def signed_up(name: str, email: str = "", request_id: str | None = None) -> User:
    """Sign up without a password, which takes time to hash."""
    return register(
        username=name,
        email=email or f"{name}@example.com",
        password_hash="!",
        request_id=request_id or f"request of {name}",
    )


def fresh(user: User) -> User:
    """The account as it is stored now; one request."""
    return User.get(user.pk)


def words_of(outcomes: Iterable[Any]) -> list[str]:
    """Each outcome in a word: an error's name (of a group its members'), dead, or done."""
    return [_word(outcome) for outcome in outcomes]


def _word(outcome: Any) -> str:
    if isinstance(outcome, Refused):
        return "+".join(sorted(type(each).__name__ for each in outcome.exceptions))
    if isinstance(outcome, Exception):
        return type(outcome).__name__
    return DEAD if outcome == DEAD else "done"
