"""An email address that is reserved for three days, while others want it and time passes."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.emails import links
from accounts.emails.change import confirm_change, request_change
from accounts.models import User
from tests.emailchanges import NEW, token_of
from tests.interleavings.accounts import AccountScenario, fresh, signed_up
from tests.interleavings.conftest import Explore
from tests.interleavings.interception import Clock
from tests.interleavings.operations import pass_by

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")


@pytest.mark.parametrize("losses", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_reservation_that_lapses_leaves_the_address_with_at_most_one_account(
    explore: Explore, losses: int
) -> None:
    clock = Clock()
    reached = set()

    def sign_up_any_time() -> object:
        # It reads the clock when it begins, so that must be able to come after the time has passed.
        pass_by("begin")
        return signed_up("bob", NEW)

    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann = signed_up("ann")
        request_change(ann, NEW)
        scenario.operations = [
            lambda: clock.pass_seconds(links.VALID_SECONDS),
            lambda: confirm_change(token_of(ann)),
            sign_up_any_time,
        ]

        def expects(outcomes: list[Any]) -> None:
            _time, followed, came = scenario.words(outcomes)
            stored = scenario.accounts
            assert followed in {"done", "BadLink", "EmailTaken", "Unavailable", "late"}
            assert came in {"done", "EmailTaken", "Unavailable", "late"}
            assert not (stored["ann"] == NEW and "bob" in stored)
            # Without an answer in time, or by a lost request that arrives late, either is possible.
            assert (stored["ann"] == NEW) == (followed == "done") or followed in UNKNOWN
            assert ("bob" in stored) == (came == "done") or came in UNKNOWN
            reached.add((followed, came))

        scenario.expects = expects
        return scenario

    explore(make, clock=clock, losses=losses)

    assert reached >= {
        ("done", "EmailTaken"),
        ("BadLink", "done"),
        ("BadLink", "EmailTaken"),
        ("EmailTaken", "done"),
    }


UNKNOWN = {"Unavailable", "late"}


def test_a_process_that_dies_with_a_reservation_keeps_the_address_for_three_days_only(
    explore: Explore,
) -> None:
    clock = Clock()
    reached = []

    def reserve(ann: User) -> object:
        request_change(fresh(ann), NEW)
        return confirm_change(token_of(fresh(ann)))

    def sign_up_later() -> object:
        clock.pass_seconds(links.VALID_SECONDS)
        return signed_up("bob", NEW)

    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann = signed_up("ann")
        scenario.operations = [lambda: reserve(ann), sign_up_later]

        def expects(outcomes: list[Any]) -> None:
            reserved, came = scenario.words(outcomes)
            stored = scenario.accounts
            assert reserved in {"done", "dead", "EmailTaken", "StaleUser", "BadLink"}
            assert came in {"done", "dead", "EmailTaken"}
            assert (stored.get("bob") == NEW) == (came == "done")
            assert (stored["ann"] == NEW) == (reserved == "done")
            reached.append((reserved, came))

        scenario.expects = expects
        return scenario

    explore(make, clock=clock, deaths=1)

    assert ("dead", "done") in reached
