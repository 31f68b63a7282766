"""The count behind every limit: never more than so many in a window, whoever races."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts.exceptions import TooManyAttempts
from accounts.limits.windows import DEFAULTS, WIDER_TIMES, ClientLimit, Limit, limit
from dynamo.cache import CacheItem
from dynamo.exceptions import Unavailable
from tests import limit_workers
from tests.emptying import empty
from tests.factories import make_user
from tests.faults.kinds import CloseBefore, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy, through
from tests.pages import stored_counts
from tests.requests import Requests
from tests.waiting import wait_until
from tests.workers import end, go

pytestmark = pytest.mark.usefixtures("engine")

LIMIT = Limit("tries", 3, 900)


class Clock:
    """The time of this process, which stands until it is told to go on."""

    seconds = 1_800_000_000.4

    def __call__(self) -> int:
        return round(self.seconds * 1000) * 1_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "time_ns", clock)
    return clock


def taken(limit: Limit, attempts: int, who: str = "ann") -> int:
    """How many of so many attempts get a slot."""
    return sum(is_taken(limit, who) for _attempt in range(attempts))


def is_taken(limit: Limit, who: str = "ann") -> bool:
    try:
        limit.take(who)
    except TooManyAttempts:
        return False
    return True


# One after the other ------------------------------------------------------------------------------


def test_so_many_get_a_slot_and_the_next_is_told_when_to_come_again(clock: Clock) -> None:
    assert taken(LIMIT, 3) == 3
    clock.seconds += 100

    with pytest.raises(TooManyAttempts) as refused:
        LIMIT.take("ann")

    assert 800 <= refused.value.retry_after_seconds <= 801
    assert refused.value.limit == "tries"


def test_each_who_and_each_limit_has_a_count_of_its_own() -> None:
    assert taken(LIMIT, 9) == 3
    assert taken(LIMIT, 9, "bob") == 3
    assert taken(Limit("others", 2, 900), 9) == 2


def test_the_window_begins_with_the_first_and_ends_when_it_said(clock: Clock) -> None:
    assert taken(LIMIT, 2) == 2
    clock.seconds += 600
    assert taken(LIMIT, 2) == 1
    with pytest.raises(TooManyAttempts) as refused:
        LIMIT.take("ann")

    clock.seconds += refused.value.retry_after_seconds - 1.1
    assert not is_taken(LIMIT)
    clock.seconds += 1.1
    assert taken(LIMIT, 9) == 3


def test_a_refusal_does_not_make_the_window_longer(clock: Clock) -> None:
    taken(LIMIT, 3)
    for _second in range(0, 900, 60):
        assert not is_taken(LIMIT)
        clock.seconds += 60

    assert is_taken(LIMIT)


def test_a_window_passes_by_itself() -> None:
    short = Limit("tries", 2, 1)
    assert taken(short, 2) == 2

    wait_until(lambda: is_taken(short))


def test_clearing_gives_all_slots_anew() -> None:
    taken(LIMIT, 9)
    taken(LIMIT, 9, "bob")

    LIMIT.clear("ann")

    assert taken(LIMIT, 9) == 3
    assert taken(LIMIT, 9, "bob") == 0


def test_what_is_off_limits_nobody_and_asks_nobody(requests_sent: Requests) -> None:
    off = Limit("tries", None, 0)

    assert taken(off, 50) == 50
    off.give_back(off.take("ann"))
    off.clear("ann")
    assert requests_sent.operations == []


@pytest.mark.parametrize(
    "who", ["", " ", "a b", "ä" * 200, "x" * 5000, "\ud800", "\0", "\n", "𠮷", "account.1#/?"]
)
def test_anything_can_be_a_who(who: str) -> None:
    assert taken(LIMIT, 5, who) == 3


def test_long_names_that_begin_alike_count_apart() -> None:
    assert taken(LIMIT, 5, "x" * 300 + "a") == 3
    assert taken(LIMIT, 5, "x" * 300 + "b") == 3


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_settings_say_how_many(settings: Any, name: str) -> None:
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {name: (2, 60)}
    assert taken(limit(name), 5) == 2

    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {name: None}
    assert taken(limit(name), 5) == 5


def test_a_slot_costs_one_request_at_first_and_then_two(requests_sent: Requests) -> None:
    LIMIT.take("ann")
    assert requests_sent.operations == ["PutItem"]
    requests_sent.clear()

    LIMIT.take("ann")
    assert requests_sent.operations == ["PutItem", "UpdateItem"]


# IPv6 networks ------------------------------------------------------------------------------------

CLIENT_LIMIT = ClientLimit("tries", 3, 900)


def networks(count: int, first: int = 0) -> list[str]:
    """So many /64 of one /48, as clients are counted."""
    return [f"2001:db8:0:{number:x}::/64" for number in range(first, first + count)]


def test_the_networks_of_a_site_share_a_larger_count() -> None:
    got = [is_taken(CLIENT_LIMIT, client) for client in networks(3 * WIDER_TIMES + 5)]

    assert got == [True] * 3 * WIDER_TIMES + [False] * 5
    assert is_taken(CLIENT_LIMIT, "2001:db8:1::/64")
    assert is_taken(CLIENT_LIMIT, "192.0.2.7")


def test_a_network_beyond_its_own_count_uses_up_nothing_of_the_site() -> None:
    assert taken(CLIENT_LIMIT, 3 * WIDER_TIMES + 5, networks(1)[0]) == 3

    left = sum(is_taken(CLIENT_LIMIT, client) for client in networks(3 * WIDER_TIMES, first=1))
    assert left == 3 * WIDER_TIMES - 3


def test_a_slot_given_back_comes_back_to_the_site_as_well() -> None:
    for client in networks(3 * WIDER_TIMES + 5):
        CLIENT_LIMIT.give_back(CLIENT_LIMIT.take(client))

    assert taken(CLIENT_LIMIT, 9, networks(1)[0]) == 3


def test_of_many_networks_at_once_no_more_than_the_count_of_the_site_get_a_slot(
    at_once: Callable[..., list[bool]],
) -> None:
    clients = networks(3 * WIDER_TIMES + 10)

    got = at_once(lambda number: is_taken(CLIENT_LIMIT, clients[number]), len(clients))

    assert sum(got) == 3 * WIDER_TIMES


def test_only_an_ipv6_client_costs_a_second_count(requests_sent: Requests) -> None:
    CLIENT_LIMIT.take("192.0.2.7")
    assert requests_sent.operations == ["PutItem"]
    requests_sent.clear()

    CLIENT_LIMIT.give_back(CLIENT_LIMIT.take(networks(1)[0]))
    assert requests_sent.operations == ["PutItem"] * 2 + ["UpdateItem"] * 2


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_limit_of_clients_counts_wider_networks(name: str) -> None:
    assert isinstance(limit(name), ClientLimit) == name.endswith("_client")


# Slots that come back -----------------------------------------------------------------------------


def test_a_slot_given_back_is_one_slot_more() -> None:
    slot = LIMIT.take("ann")
    taken(LIMIT, 2)

    LIMIT.give_back(slot)

    assert taken(LIMIT, 9) == 1


def test_a_slot_of_a_window_that_ended_adds_none_to_the_next(clock: Clock) -> None:
    slot = LIMIT.take("ann")
    clock.seconds += 901
    assert taken(LIMIT, 2) == 2

    LIMIT.give_back(slot)

    assert taken(LIMIT, 9) == 1


def test_a_slot_that_comes_back_late_adds_none_though_the_clock_is_slow(clock: Clock) -> None:
    slot = LIMIT.take("ann")
    clock.seconds += 901
    assert taken(LIMIT, 2) == 2
    clock.seconds -= 600

    LIMIT.give_back(slot)

    clock.seconds += 600
    assert taken(LIMIT, 9) == 1


def test_a_slot_of_a_window_that_was_cleared_adds_none_to_the_next() -> None:
    slot = LIMIT.take("ann")
    LIMIT.clear("ann")
    time.sleep(0.002)  # another millisecond: windows are told apart by their end
    assert taken(LIMIT, 2) == 2

    LIMIT.give_back(slot)

    assert taken(LIMIT, 9) == 1


def test_near_the_end_of_its_window_a_slot_does_not_come_back(
    clock: Clock, requests_sent: Requests
) -> None:
    slot = LIMIT.take("ann")
    clock.seconds += 891
    requests_sent.clear()

    LIMIT.give_back(slot)

    assert requests_sent.operations == []


def test_a_slot_given_back_to_no_window_begins_none() -> None:
    slot = LIMIT.take("ann")
    LIMIT.clear("ann")

    LIMIT.give_back(slot)

    assert stored_counts() == []


# Together -----------------------------------------------------------------------------------------


def test_of_thirty_threads_three_get_a_slot(at_once: Callable[..., list[bool]]) -> None:
    got = at_once(lambda _number: is_taken(LIMIT), 30)

    assert sum(got) == 3


@pytest.mark.parametrize("attempt", range(5))
def test_of_those_who_race_for_the_next_window_three_get_a_slot(
    attempt: int, clock: Clock, at_once: Callable[..., list[bool]]
) -> None:
    taken(LIMIT, 9)
    clock.seconds += 901

    assert sum(at_once(lambda _number: is_taken(LIMIT), 16)) == 3


def test_slots_given_back_in_a_race_are_taken_again_and_none_besides(
    at_once: Callable[..., list[int]],
) -> None:
    many = Limit("tries", 8, 900)

    def take_and_return(_number: int) -> int:
        kept = 0
        for turn in range(6):
            try:
                slot = many.take("ann")
            except TooManyAttempts:
                continue
            if turn % 2:
                many.give_back(slot)
            else:
                kept += 1
        return kept

    kept = sum(at_once(take_and_return, 8))

    assert kept <= 8
    assert taken(many, 9) <= 8 - kept


@hypothesis_settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=st.lists(
        st.sampled_from(["take", "take", "take", "give back"]) | st.integers(1, 700), max_size=30
    )
)
def test_no_window_has_more_than_its_slots_whatever_happens(
    clock: Clock, steps: list[str | int]
) -> None:
    empty(CacheItem.table(), ("key",))
    held: dict[int, int] = {}
    slots = []
    for step in steps:
        if step == "take":
            try:
                slot = LIMIT.take("ann")
            except TooManyAttempts:
                continue
            assert slot is not None
            slots.append(slot)
            held[slot.ends_ms] = held.get(slot.ends_ms, 0) + 1
            assert held[slot.ends_ms] <= 3
        elif step == "give back" and slots:
            slot = slots.pop(0)
            LIMIT.give_back(slot)
            held[slot.ends_ms] -= 1
        elif isinstance(step, int):
            clock.seconds += step


def test_of_fifty_two_attempts_from_four_processes_ten_reach_the_password(engine: str) -> None:
    make_user(username="ann", email="ann@example.org")
    names = ["ann", "ANN", "ann@example.org", "Ann@EXAMPLE.org"]
    # Not by way of the proxy of other tests here, which lets so many wait at its door.
    with through(engine):
        workers = [limit_workers.start(name, threads=13) for name in names]
    try:
        outcomes = [outcome for answer in go(workers) for outcome in answer]
    finally:
        for worker in workers:
            end(worker)

    assert sorted(outcomes) == ["checked"] * 10 + ["refused"] * 42


def test_where_each_window_ends_under_the_hands_nobody_gets_through(proxy: FaultProxy) -> None:
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


def test_a_first_slot_whose_reply_was_lost_is_one_slot(proxy: FaultProxy) -> None:
    proxy.plan("PutItem", DropReply())

    assert taken(LIMIT, 9) == 3


@pytest.mark.parametrize("fault", [DropReply(), CloseBefore()], ids=["lost reply", "not sent"])
def test_a_further_slot_whose_reply_was_lost_is_got_and_uses_up_one_more_at_worst(
    proxy: FaultProxy, fault: DropReply | CloseBefore
) -> None:
    many = Limit("tries", 5, 900)
    many.take("ann")
    proxy.plan("UpdateItem", fault)

    assert many.take("ann") is not None

    assert taken(many, 9) == (2 if fault == DropReply() else 3)


def test_at_the_edge_a_lost_reply_lets_nobody_through_beyond_the_limit(proxy: FaultProxy) -> None:
    taken(LIMIT, 2)
    proxy.plan("UpdateItem", DropReply())

    # The lost one took the last slot, as anybody else might have.
    assert not is_taken(LIMIT)
    assert taken(LIMIT, 9) == 0


def test_beyond_the_limit_a_lost_reply_is_a_refusal_all_the_same(proxy: FaultProxy) -> None:
    taken(LIMIT, 3)
    proxy.plan("UpdateItem", DropReply())

    assert not is_taken(LIMIT)


def test_a_window_that_ends_while_a_reply_is_lost_is_followed_by_the_next(
    clock: Clock, proxy: FaultProxy
) -> None:
    def window_ends(_body: dict[str, Any]) -> bool:
        clock.seconds += 900
        return True

    LIMIT.take("ann")
    proxy.plan("UpdateItem", DropReply(), when=window_ends)

    assert is_taken(LIMIT)
    assert taken(LIMIT, 9) == 2


def test_a_slot_got_after_a_lost_reply_comes_back_and_what_was_lost_does_not(
    proxy: FaultProxy,
) -> None:
    taken(LIMIT, 1)
    proxy.plan("UpdateItem", DropReply())
    slot = LIMIT.take("ann")

    LIMIT.give_back(slot)

    assert taken(LIMIT, 9) == 1


@pytest.mark.parametrize("fault", [DropReply(), CloseBefore()], ids=["lost replies", "not sent"])
def test_where_no_reply_comes_nobody_gets_a_slot_and_two_are_used_up_at_worst(
    proxy: FaultProxy, fault: DropReply | CloseBefore
) -> None:
    many = Limit("tries", 5, 900)
    many.take("ann")
    proxy.plan("UpdateItem", fault, times=2)

    with pytest.raises(Unavailable):
        many.take("ann")

    assert taken(many, 9) == (2 if fault == DropReply() else 4)


def test_a_slot_that_came_back_though_the_reply_was_lost_comes_back_once(
    proxy: FaultProxy,
) -> None:
    slot = LIMIT.take("ann")
    taken(LIMIT, 2)
    proxy.plan("UpdateItem", DropReply())

    LIMIT.give_back(slot)

    assert taken(LIMIT, 9) == 1


def test_clearing_outlasts_a_lost_reply(proxy: FaultProxy) -> None:
    taken(LIMIT, 9)
    proxy.plan("DeleteItem", DropReply())

    LIMIT.clear("ann")

    assert taken(LIMIT, 9) == 3
