"""The counter behind every rate limit: at most so many attempts in a window, also in races."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache

from accounts.conf import LIMITS
from accounts.exceptions import TooManyAttempts
from accounts.limits.windows import WIDER_TIMES, ClientLimit, Limit, limit
from dynamo.auth import passwords
from dynamo.exceptions import Unavailable
from tests.faults.kinds import CloseBefore, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.pages import stored_counts
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

LIMIT = Limit("tries", 3, 900)
FIVE = Limit("tries", 5, 900)


class Clock:
    """The clock of this process, which tests move."""

    seconds = 1_800_000_000.4

    def __call__(self) -> int:
        return round(self.seconds * 1000) * 1_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "time_ns", clock)
    return clock


def taken(limit: Limit, attempts: int, who: str = "ann") -> int:
    """How many of `attempts` get a slot."""
    return sum(is_taken(limit, who) for _attempt in range(attempts))


def is_taken(limit: Limit, who: str = "ann") -> bool:
    try:
        limit.take(who)
    except TooManyAttempts:
        return False
    return True


# Windows ------------------------------------------------------------------------------------------


def test_a_window_begins_with_the_first_attempt_and_refusals_do_not_extend_it(clock: Clock) -> None:
    assert taken(LIMIT, 2) == 2
    clock.seconds += 600
    assert taken(LIMIT, 9) == 1
    with pytest.raises(TooManyAttempts) as refused:
        LIMIT.take("ann")
    assert refused.value.limit == "tries"
    assert 300 <= refused.value.retry_after_seconds <= 301

    clock.seconds += refused.value.retry_after_seconds - 1.1
    assert not is_taken(LIMIT)
    clock.seconds += 1.1
    assert taken(LIMIT, 9) == 3


def test_each_subject_and_each_limit_has_a_counter_which_can_be_cleared() -> None:
    assert taken(LIMIT, 9) == 3
    assert taken(LIMIT, 9, "bob") == 3
    assert taken(Limit("others", 2, 900), 9) == 2

    LIMIT.clear("ann")

    assert taken(LIMIT, 9) == 3
    assert taken(LIMIT, 9, "bob") == 0


def test_a_limit_that_is_off_refuses_nothing_and_sends_nothing(requests_sent: Requests) -> None:
    off = Limit("tries", None, 0)

    assert taken(off, 50) == 50
    off.take("ann").give_back()
    off.clear("ann")
    assert requests_sent.operations == []


def test_any_text_can_be_a_subject_with_its_own_counter() -> None:
    names = ["", " ", "a b", "ä" * 200, "\ud800", "\0", "\n", "𠮷", "account.1#/?"]
    names += ["x" * 5000, "x" * 300 + "a", "x" * 300 + "b"]

    assert [taken(LIMIT, 5, who) for who in names] == [3] * len(names)


def test_the_settings_set_every_limit_and_limits_of_clients_count_networks(settings: Any) -> None:
    for name in LIMITS:
        kind = ClientLimit if name.endswith("_client") else Limit
        for allowed, made in (((2, 60), kind(name, 2, 60)), (None, kind(name, None, 0))):
            settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {name: allowed}
            assert limit(name) == made


def test_the_first_slot_costs_one_request_and_each_further_one_two(requests_sent: Requests) -> None:
    for item, who, cost in (
        (LIMIT, "ann", ["PutItem"]),
        (LIMIT, "ann", ["PutItem", "UpdateItem"]),
        # Only an IPv6 client has a second counter.
        (CLIENT_LIMIT, "192.0.2.7", ["PutItem"]),
        (CLIENT_LIMIT, "unknown", ["PutItem"]),
        (CLIENT_LIMIT, networks(1)[0], ["PutItem", "PutItem"]),
    ):
        requests_sent.clear()
        item.take(who)
        assert requests_sent.operations == cost


# IPv6 networks ------------------------------------------------------------------------------------

CLIENT_LIMIT = ClientLimit("tries", 3, 900)
WIDER = 3 * WIDER_TIMES


def networks(count: int, first: int = 0) -> list[str]:
    """`count` /64 networks of one /48."""
    return [f"2001:db8:0:{number:x}::/64" for number in range(first, first + count)]


def test_networks_share_the_counter_of_their_wider_network_whose_slots_can_be_given_back() -> None:
    for client in networks(WIDER + 5):
        CLIENT_LIMIT.take(client).give_back()

    got = [is_taken(CLIENT_LIMIT, client) for client in networks(WIDER + 5)]

    assert got == [True] * WIDER + [False] * 5
    assert is_taken(CLIENT_LIMIT, "2001:db8:1::/64")
    assert is_taken(CLIENT_LIMIT, "192.0.2.7")


def test_a_network_over_its_own_limit_uses_no_slots_of_the_wider_network() -> None:
    assert taken(CLIENT_LIMIT, WIDER + 5, networks(1)[0]) == 3

    left = sum(is_taken(CLIENT_LIMIT, client) for client in networks(WIDER, first=1))
    assert left == WIDER - 3


# Slots given back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds_back", [0, 600], ids=["right clock", "slow clock"])
def test_a_slot_of_an_ended_window_is_not_added_to_the_next(
    clock: Clock, seconds_back: int
) -> None:
    slot = LIMIT.take("ann")
    clock.seconds += 901
    assert taken(LIMIT, 2) == 2

    clock.seconds -= seconds_back
    slot.give_back()
    clock.seconds += seconds_back

    assert taken(LIMIT, 9) == 1


def test_a_slot_of_a_cleared_window_is_not_added_to_the_next(clock: Clock) -> None:
    slot = LIMIT.take("ann")
    LIMIT.clear("ann")
    slot.give_back()
    assert stored_counts() == []

    clock.seconds += 0.002  # windows are told apart by the millisecond of their end
    assert taken(LIMIT, 2) == 2
    slot.give_back()
    assert taken(LIMIT, 9) == 1


def test_a_slot_is_not_given_back_shortly_before_its_window_ends(
    clock: Clock, requests_sent: Requests
) -> None:
    slot = LIMIT.take("ann")
    clock.seconds += 891
    requests_sent.clear()

    slot.give_back()

    assert requests_sent.operations == []


# Waiting ------------------------------------------------------------------------------------------


def test_an_attempt_waits_a_moment_for_others_and_not_after_they_failed(
    monkeypatch: pytest.MonkeyPatch, requests_sent: Requests
) -> None:
    monkeypatch.setattr(passwords, "WAIT_SECONDS", 0.1)
    slots = [LIMIT.take("ann", waits=True) for _attempt in range(3)]

    with pytest.raises(TooManyAttempts) as refused:
        LIMIT.take("ann", waits=True)
    assert refused.value.retry_after_seconds == 1
    # The one that waited does not count.
    slots[0].give_back()
    slots[0] = LIMIT.take("ann", waits=True)

    for slot in slots:
        slot.note_failure()
    requests_sent.clear()
    with pytest.raises(TooManyAttempts) as refused:
        LIMIT.take("ann", waits=True)
    assert refused.value.retry_after_seconds > 800
    assert requests_sent.operations == ["PutItem", "UpdateItem"]


def test_a_failure_is_noted_in_the_later_half_and_not_in_another_window(
    clock: Clock, requests_sent: Requests
) -> None:
    slots = [FIVE.take("ann") for _attempt in range(5)]
    requests_sent.clear()

    for slot in slots:
        slot.note_failure()

    assert requests_sent.operations == ["UpdateItem"] * 3
    FIVE.clear("ann")
    clock.seconds += 0.002
    assert taken(FIVE, 4) == 4
    before = stored_counts()
    slots[4].note_failure()
    assert [item["value"] for item in stored_counts()] == [item["value"] for item in before]
    assert taken(FIVE, 9) == 1


# Races --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_next", [False, True], ids=["first window", "next window"])
def test_of_thirty_threads_three_get_a_slot(
    clock: Clock, at_once: Callable[..., list[bool]], is_next: bool
) -> None:
    if is_next:
        taken(LIMIT, 9)
        clock.seconds += 901

    assert sum(at_once(lambda _number: is_taken(LIMIT), 30)) == 3


def test_an_attempt_is_refused_if_every_window_ends_during_its_requests(proxy: FaultProxy) -> None:
    LIMIT.take("ann")
    key = f"limits.{LIMIT.name}.ann"
    window = cache.get(key)

    def is_conditional(body: dict[str, Any]) -> bool:
        return "ConditionExpression" in body

    for _attempt in range(8):
        proxy.plan("PutItem", Meanwhile(lambda: cache.set(key, window)), when=is_conditional)
        proxy.plan("UpdateItem", Meanwhile(lambda: cache.delete(key)))

    assert not is_taken(LIMIT)
    assert is_taken(LIMIT)


# Lost replies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [DropReply(), CloseBefore()], ids=["reply", "request"])
def test_a_lost_reply_or_request_uses_no_more_than_its_slot_and_two_losses_are_an_error(
    proxy: FaultProxy, lost: DropReply | CloseBefore
) -> None:
    is_counted = isinstance(lost, DropReply)
    FIVE.take("ann")
    proxy.plan("UpdateItem", lost)
    FIVE.take("ann")
    assert taken(FIVE, 9) == (2 if is_counted else 3)

    FIVE.take("bob")
    proxy.plan("UpdateItem", lost, times=2)
    with pytest.raises(Unavailable):
        FIVE.take("bob")
    assert taken(FIVE, 9, "bob") == (2 if is_counted else 4)


@pytest.mark.parametrize("before", [2, 3], ids=["the last slot", "no slot left"])
def test_a_lost_reply_never_exceeds_the_limit(proxy: FaultProxy, before: int) -> None:
    taken(LIMIT, before)
    proxy.plan("UpdateItem", DropReply())

    assert not is_taken(LIMIT)
    assert taken(LIMIT, 9) == 0


def test_giving_back_frees_one_slot_although_a_reply_was_lost(proxy: FaultProxy) -> None:
    taken(LIMIT, 1)
    proxy.plan("UpdateItem", DropReply())
    slot = LIMIT.take("ann")  # takes two slots

    proxy.plan("UpdateItem", DropReply())
    slot.give_back()

    assert taken(LIMIT, 9) == 1
