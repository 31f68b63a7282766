"""Pages that take long: an account gets one at a time, and others wait or are refused.

What is true of each `Gate` is tested here and with password hashes.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from dynamo.runtime.deadline import page_deadline
from dynamo.runtime.gates import GateFull, in_turn
from invoices.pages import base
from invoices.pages.base import MOST_WAITING, MOST_WAITING_IN_ALL, one_at_a_time
from tests.forked import in_a_child
from tests.waiting import wait_until


class Pages:
    """Pages of accounts, each of which is being made until it may end."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self.made: list[int] = []
        self.may_end = threading.Semaphore(0)

    def start(self, account: str, number: int = 0) -> Future[None]:
        """Request a page. When this returns, it is in line."""
        before = places(account)
        asked = self._pool.submit(self._make, account, number)
        wait_until(lambda: places(account) > before)
        return asked

    def _make(self, account: str, number: int) -> None:
        with page_deadline(60), one_at_a_time(account):
            self.made.append(number)
            assert self.may_end.acquire(timeout=60)


def places(account: str) -> int:
    """How many pages of the account are being made or wait."""
    return base._gate().held(account)


#: How many accounts get a page at once here.
AT_ONCE = 2


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pages]:
    monkeypatch.setattr(base, "AT_ONCE", AT_ONCE)
    base._gate.reset()
    with ThreadPoolExecutor(AT_ONCE + MOST_WAITING_IN_ALL) as pool:
        made = Pages(pool)
        try:
            yield made
        finally:
            made.may_end.release(1_000)
    assert base._gate()._places == []
    base._gate.reset()


def test_pages_of_an_account_are_made_one_after_the_other(pages: Pages) -> None:
    asked = [pages.start("ann", number) for number in range(4)]

    for number in range(4):
        wait_until(lambda number=number: len(pages.made) == number + 1)
        pages.may_end.release()
        asked[number].result(60)

    assert pages.made == [0, 1, 2, 3]


def test_a_few_pages_wait_and_further_ones_are_refused_at_once(pages: Pages) -> None:
    for number in range(1 + MOST_WAITING):
        pages.start("ann", number)

    with page_deadline(60), pytest.raises(GateFull) as refused, one_at_a_time("ann"):
        pass

    assert refused.value.is_own
    assert places("ann") == 1 + MOST_WAITING
    with one_at_a_time("bob"):
        assert places("bob") == 1


def test_a_page_that_waits_until_its_deadline_is_refused_and_leaves_the_line(pages: Pages) -> None:
    pages.start("ann")

    with page_deadline(0.1), pytest.raises(GateFull) as refused, one_at_a_time("ann"):
        pass

    assert refused.value.is_own
    assert places("ann") == 1


def test_a_few_accounts_leave_places_to_those_that_have_none(pages: Pages) -> None:
    """However many pages they request, of which the first ones are made."""
    refused = 0
    for account in "abcdefg":
        for _page in range(1 + MOST_WAITING):
            if places(account) and total() >= AT_ONCE + MOST_WAITING_IN_ALL // 2:
                with page_deadline(60), pytest.raises(GateFull) as error, one_at_a_time(account):
                    pass
                assert error.value.is_own
                refused += 1
            else:
                pages.start(account)
    assert refused

    others = [f"other {number}" for number in range(AT_ONCE + MOST_WAITING_IN_ALL - total())]
    for other in others:
        pages.start(other)
    with page_deadline(60), pytest.raises(GateFull) as error, one_at_a_time("one too many"):
        pass
    assert not error.value.is_own
    assert len(others) >= 10


def test_an_account_that_rarely_comes_does_not_wait_for_those_that_often_come(pages: Pages) -> None:
    for number, account in enumerate("abcabcabc"):
        pages.start(account, number)
    for _page in range(3):
        pages.may_end.release()
    wait_until(lambda: len(pages.made) == 3 + AT_ONCE)

    rare = pages.start("rare", 100)
    pages.may_end.release()

    wait_until(lambda: len(pages.made) == 4 + AT_ONCE)
    assert pages.made[-1] == 100
    assert not rare.done()


def total() -> int:
    return len(base._gate()._places)


def test_a_page_that_fails_leaves_the_line() -> None:
    for _time in range(2):
        with pytest.raises(LookupError), one_at_a_time("ann"):
            raise LookupError

    assert places("ann") == 0


def test_a_page_in_line_does_not_hold_a_turn(pages: Pages) -> None:
    turns = threading.Semaphore(1)
    pages.start("ann")

    def make() -> None:
        with page_deadline(60), in_turn(turns), one_at_a_time("ann"):
            pass

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(make)
        wait_until(lambda: places("ann") == 2 or asked.done())
        with page_deadline(60), in_turn(turns):
            assert not asked.done()
        pages.may_end.release()
        asked.result(60)


def test_a_forked_child_has_empty_lines(pages: Pages) -> None:
    pages.start("ann")

    def child() -> None:
        with page_deadline(0.1), one_at_a_time("ann"):
            assert places("ann") == 1

    assert in_a_child(child) == 0
