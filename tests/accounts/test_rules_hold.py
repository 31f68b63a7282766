"""Random operations against a model of the rules: after each step, users and guards agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from accounts.exceptions import AccountError, EmailTaken, StaleUser, UsernameTaken
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
from accounts.values import comparable_email, comparable_username
from dynamo.exceptions import Refused
from tests.emptying import empty
from tests.factories import PASSWORD, assert_guards_match_users, stored_items
from tests.stateful import stateful_settings

# Few values in several spellings, so that rivals meet often.
NAMES = st.sampled_from(["ann", "Ann", "ＡＮＮ", "bob", "BOB", "straße", "STRASSE", "eve"])
ADDRESSES = st.sampled_from(
    [
        "a@example.org",
        "A@EXAMPLE.org",
        "b@bücher.example",
        "b@xn--bcher-kva.example",
        "c@example.org",
        "c+tag@example.org",
    ]
)
TEXTS = st.text(st.characters(categories=["L", "N", "Zs"]), max_size=20)


class Accounts(RuleBasedStateMachine):
    """What the site promises, kept in two dictionaries beside it."""

    users = Bundle("users")

    def __init__(self) -> None:
        super().__init__()
        empty(User.table())
        self.live: dict[str, dict[str, Any]] = {}

    def holder(self, attribute: str, comparable: str) -> str | None:
        fold = comparable_username if attribute == "username" else comparable_email
        for pk, values in self.live.items():
            if fold(values[attribute]) == comparable:
                return pk
        return None

    @rule(target=users, username=NAMES, email=ADDRESSES, request_id=st.integers(0, 5))
    def register(self, username: str, email: str, request_id: int) -> Any:
        try:
            user = register(
                username=username, email=email, password=PASSWORD, request_id=str(request_id)
            )
        except (AccountError, Refused) as error:
            errors = error.exceptions if isinstance(error, Refused) else (error,)
            self.justify(username, email, errors)
            return None
        known = self.live.setdefault(user.pk, {"username": username, "email": email})
        assert comparable_username(known["username"]) == comparable_username(username)
        assert comparable_email(known["email"]) == comparable_email(email)
        return user.pk

    def justify(self, username: str, email: str, errors: Any) -> None:
        kinds = {type(error) for error in errors}
        name_held = self.holder("username", comparable_username(username)) is not None
        address_held = self.holder("email", comparable_email(email)) is not None
        if kinds <= {UsernameTaken, EmailTaken}:
            assert (UsernameTaken in kinds, EmailTaken in kinds) == (name_held, address_held)

    @rule(pk=users, username=NAMES)
    def change_username(self, pk: str | None, username: str) -> None:
        self.change(pk, "username", username, comparable_username(username), change_username)

    @rule(pk=users, email=ADDRESSES)
    def change_email(self, pk: str | None, email: str) -> None:
        self.change(pk, "email", email, comparable_email(email), change_email)

    def change(
        self, pk: str | None, attribute: str, value: str, comparable: str, operation: Any
    ) -> None:
        if pk not in self.live:
            return
        holder = self.holder(attribute, comparable)
        try:
            operation(User.get(pk), value)
        except (UsernameTaken, EmailTaken):
            assert holder not in {None, pk}
        else:
            assert holder in {None, pk}
            self.live[pk][attribute] = value

    @rule(pk=users, full_name=TEXTS, phone_number=st.sampled_from(["", "+442079460000"]))
    def edit_profile(self, pk: str | None, full_name: str, phone_number: str) -> None:
        if pk in self.live:
            edit_profile(User.get(pk), full_name=full_name, phone_number=phone_number)

    @rule(pk=users, on=st.booleans())
    def switch(self, pk: str | None, on: bool) -> None:
        if pk in self.live:
            (activate if on else deactivate)(User.get(pk))

    @rule(pk=users)
    def change_password(self, pk: str | None) -> None:
        if pk in self.live:
            change_password(User.get(pk), PASSWORD)

    @rule(pk=users)
    def change_what_changed_meanwhile(self, pk: str | None) -> None:
        if pk not in self.live:
            return
        stale = User.get(pk)
        edit_profile(User.get(pk), full_name="first", vat_id=str(stale.version))
        try:
            edit_profile(stale, full_name="second")
        except StaleUser:
            return
        raise AssertionError("a stale account was changed")

    @rule(pk=consumes(users))
    def delete(self, pk: str | None) -> None:
        if pk in self.live:
            delete(User.get(pk))
            del self.live[pk]

    @invariant()
    def what_is_stored_is_what_was_promised(self) -> None:
        assert_guards_match_users()
        items = stored_items()
        stored = {
            pk: {"username": item["userName"]["S"], "email": item["email"]["S"]}
            for pk, item in items.items()
            if "#" not in pk
        }
        assert stored == self.live


@pytest.mark.usefixtures("engine")
class TestAccounts(Accounts.TestCase):  # type: ignore[misc, name-defined]  # built by hypothesis
    settings = stateful_settings(12)


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
class TestAccountsAtLength(Accounts.TestCase):  # type: ignore[misc, name-defined]  # as above
    settings = stateful_settings(100)
