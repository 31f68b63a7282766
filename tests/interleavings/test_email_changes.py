"""Changes of address that wait for their link, in every order of their requests and with time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accounts.emails import links
from accounts.emails.change import cancel_change, confirm_change, request_change
from accounts.models import User
from accounts.services import account_key, change_password, delete
from tests.emailchanges import NEW, token_of
from tests.interleavings.accounts import AccountScenario, fresh, signed_up
from tests.interleavings.conftest import LOSSES, Explore
from tests.interleavings.interception import Clock
from tests.interleavings.operations import pass_by

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")

EVE = account_key("request of eve")

Ends = list[tuple[list[str], dict[str, str]]]


def waiting() -> User:
    """Ann, whose address changes to NEW once her link is followed."""
    ann = signed_up("ann")
    request_change(ann, NEW)
    return ann


def world_of(
    begin: Callable[[], User], *acts: Callable[[User], object]
) -> tuple[Callable[[], AccountScenario], Ends]:
    """A scenario in which all of `acts` are done to the user of `begin`, and what came of it."""
    ends: Ends = []

    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann = begin()
        scenario.operations = [lambda act=act: act(ann) for act in acts]  # type: ignore[misc]
        scenario.expects = lambda outcomes: ends.append(
            (scenario.words(outcomes), scenario.accounts)
        )
        return scenario

    return make, ends


def follow(ann: User) -> object:
    """Follow the link that `ann` was sent."""
    return confirm_change(token_of(ann))


@pytest.mark.parametrize(
    "rival",
    [
        pytest.param(lambda ann: signed_up("bob", NEW), id="registers"),
        pytest.param(lambda ann: request_change(User.get(EVE), NEW), id="reserves"),
    ],
)
@pytest.mark.parametrize("losses", LOSSES)
def test_an_address_is_reserved_for_one(
    explore: Explore, rival: Callable[[User], object], losses: int
) -> None:
    def begin() -> User:
        signed_up("eve")
        return signed_up("ann")

    make, ends = world_of(begin, lambda ann: request_change(fresh(ann), NEW), rival)

    explore(make, losses=losses)

    assert all(sorted(words) == ["EmailTaken", "done"] for words, _stored in ends)
    assert {"ann": "ann@example.com", "eve": "eve@example.com"} in [stored for _, stored in ends]


@pytest.mark.parametrize("losses", LOSSES)
def test_a_link_followed_twice_changes_the_address_for_both(explore: Explore, losses: int) -> None:
    make, ends = world_of(waiting, follow, follow)

    explore(make, losses=losses)

    assert all(end == (["done", "done"], {"ann": NEW}) for end in ends)


@pytest.mark.parametrize("losses", LOSSES)
def test_a_link_followed_while_its_change_is_cancelled_is_followed_or_void(
    explore: Explore,
    losses: int,
) -> None:
    make, ends = world_of(waiting, follow, lambda ann: cancel_change(fresh(ann)))

    explore(make, losses=losses)

    for (followed, cancelled), stored in ends:
        assert cancelled == "done"
        if followed == "done":
            assert stored == {"ann": NEW}
        else:
            assert (followed, stored) == ("BadLink", {"ann": "ann@example.com"})


@pytest.mark.parametrize("losses", LOSSES)
def test_a_link_followed_while_the_account_goes_is_followed_or_void(
    explore: Explore, losses: int
) -> None:
    make, ends = world_of(waiting, follow, lambda ann: delete(fresh(ann)))

    explore(make, losses=losses)

    for (followed, gone), stored in ends:
        if gone == "done":
            assert stored == {}
            assert followed in {"done", "BadLink"}
        else:
            assert (followed, gone, stored) == ("done", "StaleUser", {"ann": NEW})


@pytest.mark.parametrize("losses", LOSSES)
def test_a_link_followed_while_another_address_is_asked_for_is_followed_or_void(
    explore: Explore,
    losses: int,
) -> None:
    make, ends = world_of(
        waiting, follow, lambda ann: request_change(fresh(ann), "newer@example.org")
    )

    explore(make, losses=losses)

    for (followed, asked), stored in ends:
        assert (stored == {"ann": NEW}) == (followed == "done")
        assert followed in {"done", "BadLink"}
        assert asked == "done" or (asked, followed) == ("StaleUser", "done")


@pytest.mark.parametrize("losses", LOSSES)
def test_a_link_followed_while_the_password_changes_is_followed_or_void(
    explore: Explore, losses: int
) -> None:
    make, ends = world_of(waiting, follow, lambda ann: change_password(fresh(ann), "another one"))

    explore(make, losses=losses)

    for (followed, changed), stored in ends:
        assert (stored == {"ann": NEW}) == (followed == "done")
        assert followed in {"done", "BadLink"}
        assert changed == "done" or (changed, followed) == ("StaleUser", "done")


@pytest.mark.parametrize("losses", LOSSES)
def test_an_address_that_nobody_waits_for_any_more_is_free_at_once_and_not_before(
    explore: Explore, losses: int
) -> None:
    make, ends = world_of(
        waiting, lambda ann: cancel_change(fresh(ann)), lambda _ann: signed_up("bob", NEW)
    )

    explore(make, losses=losses)

    for (cancelled, came), stored in ends:
        assert cancelled == "done"
        assert stored["ann"] == "ann@example.com"
        assert (stored.get("bob") == NEW) == (came in {"done", "late"})
    assert {came for (_cancelled, came), _stored in ends} >= {"done", "EmailTaken"}


# A reservation that lapses ------------------------------------------------------------------------


def assert_one_has_it(ends: Ends) -> None:
    """Of who followed the link and who signed up, at most one has the address, and was told so.

    Who was told nothing in time, or whose lost request came late, may have it as well.
    """
    for (_time, followed, came), stored in ends:
        assert followed in {"done", "BadLink", "EmailTaken", "Unavailable", "late"}
        assert came in {"done", "EmailTaken", "Unavailable", "late"}
        assert not (stored["ann"] == NEW and "bob" in stored)
        for word, has_it in ((followed, stored["ann"] == NEW), (came, "bob" in stored)):
            assert has_it == (word == "done") or word in {"Unavailable", "late"}


def sign_up_any_time(_ann: User) -> object:
    # It reads the clock when it begins, so that must be able to come after the time has passed.
    pass_by("begin")
    return signed_up("bob", NEW)


def lapsing(clock: Clock) -> tuple[Callable[[], AccountScenario], Ends]:
    """Three days pass, ann follows her link, and bob signs up with the address."""
    return world_of(
        waiting,
        lambda _ann: clock.pass_seconds(links.VALID_SECONDS),
        follow,
        sign_up_any_time,
    )


def test_a_reservation_that_lapses_meanwhile_leaves_the_address_with_one(explore: Explore) -> None:
    clock = Clock()
    make, ends = lapsing(clock)

    explore(make, clock=clock)

    assert_one_has_it(ends)
    assert {(followed, came) for (_time, followed, came), _stored in ends} == {
        ("done", "EmailTaken"),
        ("BadLink", "done"),
        ("BadLink", "EmailTaken"),
        ("EmailTaken", "done"),
    }


@pytest.mark.slow
def test_so_does_one_that_lapses_while_requests_are_lost_and_processes_die(
    explore: Explore,
) -> None:
    clock = Clock()
    make, ends = lapsing(clock)

    explore(make, clock=clock, losses=1)

    assert_one_has_it(ends)


def test_who_dies_with_a_reservation_is_in_nobodys_way_when_it_lapses(explore: Explore) -> None:
    clock = Clock()

    def reserve(ann: User) -> object:
        request_change(fresh(ann), NEW)
        return confirm_change(token_of(fresh(ann)))

    def sign_up_later(_ann: User) -> object:
        clock.pass_seconds(links.VALID_SECONDS)
        return signed_up("bob", NEW)

    make, ends = world_of(lambda: signed_up("ann"), reserve, sign_up_later)

    explore(make, clock=clock, deaths=1)

    for (reserved, came), stored in ends:
        assert reserved in {"done", "dead", "EmailTaken", "StaleUser", "BadLink"}
        assert came in {"done", "dead", "EmailTaken"}
        assert (stored.get("bob") == NEW) == (came == "done")
        assert (stored["ann"] == NEW) == (reserved == "done")
    # Who asked and died, and lived again no more, keeps nobody from the address after three days.
    assert (["dead", "done"], {"ann": "ann@example.com", "bob": NEW}) in ends
