"""Random changes of address that wait, against a model of the rules, while time goes by."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest
from django.core.management import call_command
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from accounts.emails import links
from accounts.emails.change import cancel_change, confirm_change, request_change
from accounts.exceptions import BadLink, EmailTaken
from accounts.models import User
from accounts.services import change_email, delete, register
from accounts.values import comparable_email
from dynamo.unique import guards
from tests.emailchanges import DAY, token_of
from tests.emptying import empty
from tests.factories import PASSWORD, assert_guards_match_users, stored_items
from tests.stateful import stateful_settings

# Few accounts and addresses, in two spellings, so that rivals meet often.
PEOPLE = st.sampled_from(["ann", "bob", "eve"])
ADDRESSES = st.sampled_from(["a@example.org", "A@example.ORG", "b@example.org", "c@example.org"])


class Changes(RuleBasedStateMachine):
    """What the site promises, kept beside it: who has which address, and who waits for which."""

    def __init__(self) -> None:
        super().__init__()
        empty(User.table())
        self.now = int(time.time())
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(guards, "now", lambda: self.now)
        self.emails: dict[str, str] = {}
        #: By account: the awaited address, when it lapses, and the token of its link.
        self.waiting: dict[str, tuple[str, int, str]] = {}
        #: Every link that ever was sent, with its account; and those that were followed.
        self.sent: list[tuple[str, str]] = []

    def teardown(self) -> None:
        self.patch.undo()

    def claimed_by(self, email: str) -> str | None:
        """Who has the address, or a claim to it."""
        wanted = comparable_email(email)
        for name, held in self.emails.items():
            if comparable_email(held) == wanted:
                return name
        for name, (awaited, until, _token) in self.waiting.items():
            if comparable_email(awaited) == wanted and until > self.now:
                return name
        return None

    def allowed(self, name: str, email: str, act: Any) -> bool:
        """Do it; whether it was done, which it must be if nobody else has a claim."""
        claimed = self.claimed_by(email)
        try:
            act()
        except EmailTaken:
            assert claimed not in {None, name}
            return False
        assert claimed in {None, name}
        return True

    def user(self, name: str) -> User:
        return User.unique.get("username", name)

    @initialize()
    def begin(self) -> None:
        self.register("ann", "a@example.org")
        self.register("bob", "b@example.org")

    @rule(name=PEOPLE, email=ADDRESSES)
    def register(self, name: str, email: str) -> None:
        if name in self.emails:
            return

        def act() -> None:
            register(username=name, email=email, password=PASSWORD)

        if self.allowed(name, email, act):
            self.emails[name] = email

    @rule(name=PEOPLE, email=ADDRESSES)
    def request(self, name: str, email: str) -> None:
        if name not in self.emails:
            return
        user = self.user(name)
        if not self.allowed(name, email, lambda: request_change(user, email)):
            return
        self.waiting.pop(name, None)
        if comparable_email(email) == comparable_email(self.emails[name]):
            self.emails[name] = email
        else:
            self.waiting[name] = (email, self.now + links.VALID_SECONDS, token_of(user))
            self.sent.append((name, token_of(user)))

    @rule(name=PEOPLE, email=ADDRESSES)
    def change(self, name: str, email: str) -> None:
        if name not in self.emails:
            return
        user = self.user(name)
        if self.allowed(name, email, lambda: change_email(user, email)):
            self.emails[name] = email
            self.waiting.pop(name, None)

    @rule(name=PEOPLE)
    def follow(self, name: str) -> None:
        if name not in self.waiting:
            return
        email, until, token = self.waiting[name]
        if until > self.now:
            assert confirm_change(token).former == self.emails[name]
            self.emails[name] = email
            del self.waiting[name]
        else:
            with pytest.raises(BadLink):
                confirm_change(token)

    @rule(data=st.data())
    def follow_a_link_that_is_void_or_was_followed(self, data: st.DataObject) -> None:
        live = {token for _email, _until, token in self.waiting.values()}
        old = [token for _name, token in self.sent if token not in live]
        if not old:
            return
        before = stored_items()
        with suppress(BadLink):
            assert confirm_change(data.draw(st.sampled_from(old))).former is None
        assert stored_items() == before

    @rule(name=PEOPLE)
    def cancel(self, name: str) -> None:
        if name in self.emails:
            cancel_change(self.user(name))
            self.waiting.pop(name, None)

    @rule(name=PEOPLE)
    def delete(self, name: str) -> None:
        if name in self.emails:
            delete(self.user(name))
            del self.emails[name]
            self.waiting.pop(name, None)

    @rule(days=st.sampled_from([1, 2, 3]))
    def let_time_pass(self, days: int) -> None:
        self.now += days * DAY

    @invariant()
    def what_is_stored_is_what_was_promised(self) -> None:
        assert_guards_match_users()
        users = [User.from_raw_data(item) for pk, item in stored_items().items() if "#" not in pk]
        assert {user.username: user.email for user in users} == self.emails
        awaited = {user.username: user.awaited_email for user in users if user.awaited_email}
        assert awaited == {
            name: email for name, (email, until, _token) in self.waiting.items() if until > self.now
        }

    @rule()
    def check(self) -> None:
        call_command("checkguards", "--json")  # a CommandError where it finds anything


@pytest.mark.usefixtures("engine")
class TestChanges(Changes.TestCase):  # type: ignore[misc, name-defined]  # built by hypothesis
    settings = stateful_settings(12)


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
class TestChangesAtLength(Changes.TestCase):  # type: ignore[misc, name-defined]  # as above
    settings = stateful_settings(100)
