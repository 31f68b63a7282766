"""Processes that issue on the same series adapt how widely they spread their groups."""

import pytest

from sequences import pace
from sequences.pace import LONGEST_PAUSE_SECONDS, NARROWEST, RIVALRY_SECONDS, WIDEST, Pace

TOOK = 0.01
"""How long each attempt takes."""


def lost_often(times: int, now: float = 100.0) -> Pace:
    """A pace after so many losses at one moment."""
    each = Pace()
    for _ in range(times):
        each = each.lost(now, TOOK, told=True)
    return each


def pauses(each: Pace, now: float) -> list[float]:
    """The pauses after a loss, many times."""
    return [each.lost(now, TOOK, told=False).begins_at - now for _ in range(200)]


@pytest.mark.parametrize(
    "each",
    [Pace().won(100.0, TOOK), Pace().lost(100.0, TOOK, told=True)],
    ids=["after a success", "after a first loss that shows the counter"],
)
def test_a_process_without_rivals_neither_waits_nor_reads(each: Pace) -> None:
    assert each.begins_at <= 100
    assert not each.must_look(100.0)


def test_a_process_that_met_another_one_pauses_and_reads() -> None:
    waits = pauses(Pace(), 100.0)

    assert 0 <= min(waits) < max(waits) <= pace.WIDER * TOOK
    assert Pace().lost(100.0, TOOK, told=False).must_look(100.0)


def test_each_loss_spreads_the_groups_more_widely_and_each_success_less() -> None:
    widths = [lost_often(times).width for times in range(1, 4)]
    assert widths == sorted(set(widths))
    assert lost_often(100).width == WIDEST

    each = lost_often(3)
    assert each.won(100.0, TOOK).width < each.width
    for _ in range(100):
        each = each.won(100.0, TOOK)
    assert each.width == NARROWEST


def test_a_process_that_has_lost_for_long_hardly_pauses_until_it_succeeds() -> None:
    each = lost_often(10)

    assert max(pauses(each, 100.3)) < 0.2 * max(pauses(each, 100.0))
    assert each.won(101.0, TOOK).lost_since is None


def test_a_winner_with_rivals_rests_and_reads() -> None:
    each = lost_often(2).won(100.0, TOOK)

    assert 0 < each.begins_at - 100 <= each.width * TOOK
    assert each.must_look(each.begins_at)


def test_rivals_are_forgotten() -> None:
    after = 100 + RIVALRY_SECONDS + 0.01
    each = lost_often(2)

    assert not each.must_look(after)
    assert each.won(after, TOOK).begins_at <= after


def test_pauses_follow_the_mean_time_of_an_attempt_up_to_a_limit() -> None:
    each = Pace().lost(100.0, 1.0, told=True).lost(100.0, 3.0, told=False)
    assert (each.attempt_seconds, each.won(100.0, 1.0).attempt_seconds) == (2.0, 1.5)

    for _ in range(10):
        each = each.lost(100.0, 3.0, told=False)

    assert each.begins_at - 100 <= LONGEST_PAUSE_SECONDS
    assert each.won(100.0, 3.0).begins_at - 100 <= LONGEST_PAUSE_SECONDS


@pytest.mark.parametrize("has_rivals", [True, False])
def test_throttling_pauses_longer_each_time_and_reads_only_with_rivals(has_rivals: bool) -> None:
    each = lost_often(2) if has_rivals else Pace()

    longest = [0.0] * 3
    for _ in range(200):
        slowed = each
        for number in range(3):
            slowed = slowed.slowed(100.0)
            longest[number] = max(longest[number], slowed.begins_at - 100)

    assert longest[0] < longest[1] < longest[2]
    assert slowed.must_look(100.0) == has_rivals
    assert slowed.won(100.0, TOOK).throttled == 0
