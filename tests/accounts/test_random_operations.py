"""Random operations while time passes, against a model: what is stored is what was promised."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.management import call_command
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from accounts.emails import links
from accounts.emails.change import Confirmed, cancel_change, confirm_change, request_change
from accounts.exceptions import (
    AccountError,
    AccountRequestReused,
    BadLink,
    EmailTaken,
    StaleUser,
    UsernameTaken,
)
from accounts.models import User
from accounts.services import (
    activate,
    change_email,
    change_password,
    change_username,
    deactivate,
    delete,
    edit_profile,
    register,
)
from dynamo.auth.addresses import comparable_email
from dynamo.auth.usernames import comparable_username
from dynamo.exceptions import Refused
from tests.emailchanges import DAY, token_of
from tests.emptying import empty
from tests.factories import PASSWORD, assert_guards_match_users, stored_items
from tests.stateful import stateful_settings

# Few values in several spellings, so that operations often want the same one.
NAMES = st.sampled_from(["ann", "Ann", "ＡＮＮ", "bob", "BOB", "straße", "STRASSE", "eve"])
ADDRESSES = st.sampled_from(
    [
        "a@example.org",
        "A@EXAMPLE.org",
        "b@bücher.example",
        "b@xn--bcher-kva.example",
        "c@example.org",
    ]
)
CHOICES = st.integers(0, 100)


@dataclass
class Account:
    """An account as it was promised: its values, and the change that waits for its link."""

    pk: str
    username: str
    email: str
    awaited: str = ""
    lapses_at: int = 0
    token: str = ""

    def end_waiting(self) -> None:
        """Forget the change that waits."""
        self.awaited, self.lapses_at, self.token = "", 0, ""

    def waits_for(self, now: int) -> str:
        """The address that the account gets by its link; empty if it waits for none."""
        return self.awaited if self.lapses_at > now else ""


class Accounts(RuleBasedStateMachine):
    """The promises, kept beside the site."""

    def __init__(self) -> None:
        super().__init__()
        empty(User.table())
        self.now = int(time.time())
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(time, "time", lambda: self.now)
        self.accounts: dict[str, Account] = {}
        #: The token of every link that was ever sent.
        self.sent: list[str] = []

    def teardown(self) -> None:
        self.patch.undo()

    def chosen(self, choice: int) -> Account | None:
        accounts = sorted(self.accounts.values(), key=lambda each: each.pk)
        return accounts[choice % len(accounts)] if accounts else None

    def username_held_by(self, username: str) -> str | None:
        wanted = comparable_username(username)
        for each in self.accounts.values():
            if comparable_username(each.username) == wanted:
                return each.pk
        return None

    def email_held_by(self, email: str) -> str | None:
        wanted = comparable_email(email)
        for each in self.accounts.values():
            if comparable_email(each.email) == wanted:
                return each.pk
        return None

    def succeeds(self, account: Account, holder: str | None, act: Callable[[], object]) -> bool:
        """Whether `act` was done. It must be, unless another account holds the value."""
        try:
            act()
        except (UsernameTaken, EmailTaken):
            assert holder not in {None, account.pk}
            return False
        assert holder in {None, account.pk}
        return True

    @initialize()
    def begin(self) -> None:
        self.register("ann", "a@example.org", 6)
        self.register("bob", "c@x.org", 7)

    @rule(username=NAMES, email=ADDRESSES, request_id=st.integers(0, 5))
    def register(self, username: str, email: str, request_id: int) -> None:
        values: dict[str, Any] = {"username": username, "email": email, "password": PASSWORD}
        try:
            user = register(**values, request_id=str(request_id))
        except AccountRequestReused:
            return
        except (AccountError, Refused) as error:
            errors = error.exceptions if isinstance(error, Refused) else (error,)
            kinds = {type(each) for each in errors}
            held = self.username_held_by(username), self.email_held_by(email)
            assert kinds == {
                kind for kind, by in zip((UsernameTaken, EmailTaken), held, strict=True) if by
            }
            return
        known = self.accounts.setdefault(user.pk, Account(user.pk, username, email))
        assert comparable_username(known.username) == comparable_username(username)
        assert comparable_email(known.email) == comparable_email(email)

    @rule(choice=CHOICES, username=NAMES)
    def change_username(self, choice: int, username: str) -> None:
        if account := self.chosen(choice):
            user, holder = User.get(account.pk), self.username_held_by(username)
            if self.succeeds(account, holder, lambda: change_username(user, username)):
                account.username = username

    @rule(choice=CHOICES, email=ADDRESSES)
    def change_email(self, choice: int, email: str) -> None:
        if account := self.chosen(choice):
            user, holder = User.get(account.pk), self.email_held_by(email)
            if self.succeeds(account, holder, lambda: change_email(user, email)):
                account.email = email
                account.end_waiting()

    @rule(choice=CHOICES, email=ADDRESSES)
    def request_change(self, choice: int, email: str) -> None:
        account = self.chosen(choice)
        if account is None:
            return
        user = User.get(account.pk)
        request_change(user, email)
        account.end_waiting()
        if comparable_email(email) == comparable_email(account.email):
            account.email = email
        else:
            account.awaited, account.token = email, token_of(user)
            account.lapses_at = self.now + links.VALID_SECONDS
            self.sent.append(account.token)

    @rule(choice=CHOICES)
    def follow_the_link(self, choice: int) -> None:
        account = self.chosen(choice)
        if account is None or not account.token:
            return
        if account.waits_for(self.now):
            made: list[Confirmed] = []
            holder = self.email_held_by(account.awaited)
            if self.succeeds(account, holder, lambda: made.append(confirm_change(account.token))):
                assert made[0].former == account.email
                account.email = account.awaited
                account.end_waiting()
        else:
            with pytest.raises(BadLink):
                confirm_change(account.token)

    @rule(choice=CHOICES)
    def follow_an_older_link(self, choice: int) -> None:
        waiting = {account.token for account in self.accounts.values()}
        older = [token for token in self.sent if token not in waiting]
        if not older:
            return
        before = stored_items()
        with suppress(BadLink):
            assert confirm_change(older[choice % len(older)]).former is None
        assert stored_items() == before

    @rule(choice=CHOICES)
    def cancel_change(self, choice: int) -> None:
        if account := self.chosen(choice):
            cancel_change(User.get(account.pk))
            account.end_waiting()

    @rule(choice=CHOICES, full_name=st.text(st.characters(categories=["L", "N"]), max_size=20))
    def edit_profile(self, choice: int, full_name: str) -> None:
        if account := self.chosen(choice):
            stale = User.get(account.pk)
            edit_profile(User.get(account.pk), full_name=full_name, vat_id=str(stale.version))
            with pytest.raises(StaleUser):
                edit_profile(stale, full_name="of a stale copy")

    @rule(choice=CHOICES, by_password=st.booleans())
    def end_sessions(self, choice: int, by_password: bool) -> None:
        if account := self.chosen(choice):
            if by_password:
                change_password(User.get(account.pk), PASSWORD)
            else:
                deactivate(User.get(account.pk))
                activate(User.get(account.pk))
            account.end_waiting()

    @rule(choice=CHOICES)
    def delete(self, choice: int) -> None:
        if account := self.chosen(choice):
            delete(User.get(account.pk))
            del self.accounts[account.pk]

    @rule(days=st.sampled_from([1, 2, 3]))
    def let_time_pass(self, days: int) -> None:
        self.now += days * DAY

    @invariant()
    def what_is_stored_is_what_was_promised(self) -> None:
        assert_guards_match_users()
        users = [User.from_raw_data(item) for pk, item in stored_items().items() if "#" not in pk]
        promised = sorted(
            (each.pk, each.username, each.email, each.waits_for(self.now))
            for each in self.accounts.values()
        )
        stored = [(user.pk, user.username, user.email, user.awaited_email or "") for user in users]
        assert sorted(stored) == promised

    @rule()
    def check(self) -> None:
        call_command("checkguards", "--json")  # a CommandError if it finds anything


@pytest.mark.usefixtures("engine")
class TestAccounts(Accounts.TestCase):  # type: ignore[misc, name-defined]  # built by hypothesis
    settings = stateful_settings(15)


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
class TestAccountsAtLength(Accounts.TestCase):  # type: ignore[misc, name-defined]  # as above
    settings = stateful_settings(100)
