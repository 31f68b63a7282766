"""Issuing while the network and DynamoDB fail: one invoice in the end, or one clear error."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dynamo import tables
from dynamo.exceptions import Rejected, Unavailable
from dynamo.signals import request_sent
from invoices import issuing
from invoices.documents import Invoice
from invoices.exceptions import AlreadyVoided, RequestIdReused, UnknownInvoice
from invoices.records import find_invoice, void
from tests import engines
from tests.faults.kinds import (
    Answer,
    CloseBefore,
    Delay,
    DropReply,
    Fault,
    Meanwhile,
    Reply,
    TimeOut,
)
from tests.faults.proxy import FaultProxy, through
from tests.invoice_factories import (
    assert_whole,
    issued,
    new_account,
    put_counter,
    put_invoice,
    series,
    stored_invoices,
    stored_numbers,
)
from tests.invoices.test_issuing import together
from tests.sequences.test_combining import until

pytestmark = pytest.mark.usefixtures("proxy")

FAULTS: dict[str, Fault] = {
    "conflict": Answer(
        400, "TransactionCanceledException", reasons=["TransactionConflict", "None", "None"]
    ),
    "conflict beside a refusal": Answer(
        400,
        "TransactionCanceledException",
        reasons=["ConditionalCheckFailed", "TransactionConflict", "None"],
    ),
    "throttled in a transaction": Answer(
        400, "TransactionCanceledException", reasons=["None", "ThrottlingError", "None"]
    ),
    "in progress": Answer(400, "TransactionInProgressException"),
    "in progress, then done": Answer(400, "TransactionInProgressException", carried_out=True),
    "throttled": Answer(400, "ThrottlingException"),
    "table throttled": Answer(400, "ProvisionedThroughputExceededException"),
    "fails": Answer(500, "InternalServerError"),
    "fails after it was done": Answer(500, "InternalServerError", carried_out=True),
    "unavailable": Answer(503, "ServiceUnavailable"),
    "closed before": CloseBefore(),
    "reply lost": DropReply(),
    "timed out": TimeOut(),
}


@pytest.fixture(params=FAULTS)
def fault(request: pytest.FixtureRequest) -> Fault:
    """Each of them."""
    return FAULTS[request.param]


@pytest.fixture
def account() -> str:
    """An account that nobody has used."""
    return new_account()


@pytest.mark.parametrize("times", [1, 2])
def test_a_passing_fault_ends_in_one_invoice(
    account: str, proxy: FaultProxy, fault: Fault, times: int
) -> None:
    proxy.plan("TransactWriteItems", fault, times)

    invoice = issued(account, request_id="a")

    assert invoice.number == 1
    assert find_invoice(account, invoice.label) == invoice
    assert_whole(account, 1)
    assert issued(account, request_id="a") == invoice


@pytest.mark.usefixtures("impatient")
def test_a_lasting_fault_is_one_clear_error_and_never_a_duplicate(
    account: str, proxy: FaultProxy, fault: Fault
) -> None:
    proxy.plan("TransactWriteItems", fault, 1_000)

    with pytest.raises(Unavailable):
        issued(account, request_id="a")
    with pytest.raises(Unavailable):
        issued(account, request_id="a")
    proxy.forget()
    invoice = issued(account, request_id="a")

    assert invoice.number == 1
    assert_whole(account, 1)


@pytest.mark.usefixtures("impatient")
def test_a_counter_that_cannot_be_read_is_one_error(account: str, proxy: FaultProxy) -> None:
    proxy.plan("GetItem", Answer(500, "InternalServerError"), 1_000)

    with pytest.raises(Unavailable) as failed:
        issued(account)

    assert not failed.value.maybe_written
    proxy.forget()
    assert_whole(account, 0)


@pytest.mark.parametrize("forgets", ["token", "everything"])
@pytest.mark.usefixtures("impatient")
def test_the_same_request_after_a_lost_reply_gets_the_stored_invoice(
    account: str, proxy: FaultProxy, forgets: str
) -> None:
    proxy.plan("TransactWriteItems", DropReply(), 1_000)
    with pytest.raises(Unavailable) as failed:
        issued(account, request_id="a")
    assert failed.value.maybe_written
    proxy.forget()
    assert_whole(account, 1)
    if forgets == "everything":
        issuing._heads._begin()

    with pytest.raises(RequestIdReused):
        issued(account, request_id="a", customer="Eve")
    assert issued(account, request_id="a").number == 1
    assert_whole(account, 1)


def test_the_engine_is_restarted_between_the_commit_and_its_repetition(
    account: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = engines.free_port()
    running = [engines.start("dynoxide", port, tmp_path)]

    def restart() -> None:
        # With -9 after the commit: it forgets every request token.
        running[-1].kill()
        running[-1].wait()
        running.append(engines.start("dynoxide", port, tmp_path))

    try:
        with FaultProxy(f"http://127.0.0.1:{port}") as proxy, through(proxy):
            for table in tables.all_tables():
                tables.create(table)
            for request_id in ("a", "b", None):
                proxy.plan("TransactWriteItems", DropReply())
                proxy.plan("TransactWriteItems", Meanwhile(restart))

                invoice = issued(account, request_id=request_id)

                assert find_invoice(account, invoice.label) == invoice
                assert issued(account, request_id=invoice.request_id) == invoice
            assert len(running) == 4
            assert_whole(account, 3)
    finally:
        running[-1].kill()
        running[-1].wait()


# Another transaction on the counter ---------------------------------------------------------------


def issue_elsewhere(account: str) -> None:
    """The second invoice of an account, from a process that this one knows nothing of."""
    put_invoice(stored_invoices(account)[0], number={"N": "2"})
    put_counter(account, 2)


def test_a_group_that_met_another_is_not_sent_again_but_made_anew(
    account: str, proxy: FaultProxy
) -> None:
    issued(account)
    proxy.seen.clear()
    proxy.plan("TransactWriteItems", FAULTS["conflict"])
    proxy.plan("GetItem", Meanwhile(lambda: issue_elsewhere(account)))

    invoice = issued(account)

    assert invoice.number == 3
    # What the rival did meanwhile costs a look, and no second refusal.
    assert (proxy.count("TransactWriteItems"), proxy.count("GetItem")) == (2, 1)
    assert_whole(account, 3)


def test_who_comes_while_a_group_waits_for_its_turn_goes_with_it(
    account: str, proxy: FaultProxy
) -> None:
    issued(account)
    proxy.seen.clear()
    proxy.plan("TransactWriteItems", FAULTS["conflict"])
    others: list[Future[Invoice]] = []

    def come() -> None:
        others.extend(pool.submit(issued, account) for _ in range(3))
        until(lambda: len(issuing._combiner._queues[series(account)].waiting) == 3)

    proxy.plan("GetItem", Meanwhile(come))

    with ThreadPoolExecutor(3) as pool:
        first = issued(account)
        numbers = [first.number, *(each.result().number for each in others)]

    assert sorted(numbers) == [2, 3, 4, 5]
    assert proxy.count("TransactWriteItems") == 2
    assert_whole(account, 5)


@pytest.mark.fault_of("moto", "ignores request tokens")
@pytest.mark.parametrize("first", [DropReply(), CloseBefore()])
def test_once_a_reply_was_lost_a_conflict_is_no_reason_for_another_request(
    account: str, proxy: FaultProxy, first: Fault
) -> None:
    issued(account)
    proxy.seen.clear()
    proxy.plan("TransactWriteItems", first)
    proxy.plan("TransactWriteItems", FAULTS["conflict"])

    invoice = issued(account)

    # The first attempt may have been carried out: the same bytes under the same token.
    one, again, last = (seen.body for seen in proxy.seen)
    assert one == again == last
    assert invoice.number == 2
    assert stored_numbers(account) == [1, 2]


def test_a_group_that_is_throttled_takes_in_who_comes_and_looks_at_nothing(
    account: str, proxy: FaultProxy
) -> None:
    issued(account)
    proxy.seen.clear()
    proxy.plan("TransactWriteItems", FAULTS["throttled in a transaction"], 2)

    assert issued(account).number == 2

    tokens = [seen.body["ClientRequestToken"] for seen in proxy.seen]
    assert len(set(tokens)) == 3
    assert_whole(account, 2)


# Groups -------------------------------------------------------------------------------------------


def test_a_group_whose_reply_is_lost_is_issued_once(account: str, proxy: FaultProxy) -> None:
    proxy.plan("TransactWriteItems", Delay(0.15))
    proxy.plan("TransactWriteItems", DropReply())

    with ThreadPoolExecutor(16) as pool:
        numbers = [
            each.number
            for each in pool.map(lambda n: issued(account, request_id=str(n)), range(16))
        ]

    assert sorted(numbers) == list(range(1, 17))
    assert_whole(account, 16)


def test_a_leader_that_fails_does_not_fail_those_who_follow(
    account: str, proxy: FaultProxy
) -> None:
    issued(account)
    proxy.plan("TransactWriteItems", Answer(400, "AccessDeniedException"))

    def attempt(number: int) -> int | str:
        try:
            return issued(account, request_id=str(number)).number
        except Rejected:
            return "rejected"

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(attempt, range(16)))

    assert outcomes.count("rejected") == 1
    assert sorted(each for each in outcomes if isinstance(each, int)) == list(range(2, 17))
    assert_whole(account, 16)


@pytest.mark.usefixtures("impatient")
def test_a_leader_out_of_time_leaves_its_followers_to_the_next(
    account: str, proxy: FaultProxy
) -> None:
    issued(account)
    proxy.plan("TransactWriteItems", CloseBefore(), 1)
    proxy.plan("TransactWriteItems", Delay(0.45))

    def attempt(number: int) -> int:
        time.sleep(number / 100)
        while True:
            try:
                return issued(account, request_id=str(number)).number
            except Unavailable:
                continue  # as a client would

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(attempt, range(8)))

    assert sorted(numbers) == list(range(2, 10))
    assert_whole(account, 9)


def behind_a_first(account: str, attempt: Callable[[int], Any], count: int) -> list[Any]:
    """What so many attempts come to, all but the first of which wait in their order behind it."""

    def at(number: int) -> Callable[[], Any]:
        return lambda: attempt(number)

    outcomes: list[Any] = []
    with together(account, lambda: outcomes.append(attempt(0))) as then:
        waiting = [then(at(number)) for number in range(1, count)]
    return [*outcomes, *(each.result() for each in waiting)]


def test_followers_are_served_again_after_a_retry_of_their_group_was_rejected(
    account: str, proxy: FaultProxy
) -> None:
    issued(account)
    proxy.plan("TransactWriteItems", Meanwhile(lambda: None))
    proxy.plan("TransactWriteItems", DropReply())
    proxy.plan("TransactWriteItems", Answer(400, "ExpiredTokenException"))

    def attempt(_number: int) -> bool:
        try:
            return bool(issued(account))
        except Unavailable:
            return False

    outcomes = behind_a_first(account, attempt, 4)

    # Only who sent the group is not answered: the others know their invoices by their guards.
    assert sorted(outcomes) == [False, True, True, True]
    assert_whole(account, 5)


def test_followers_whose_leader_is_interrupted_after_its_commit_get_the_stored_invoices(
    account: str,
) -> None:
    def interrupt(**signal: Any) -> None:
        # The group of three: a counter, three invoices, three guards.
        if len(signal["request"].get("TransactItems", ())) == 7:
            request_sent.disconnect(interrupt)
            raise KeyboardInterrupt

    request_sent.connect(interrupt, weak=False)
    try:
        with together(account, lambda: issued(account)) as then:
            leader, *followers = [then(lambda: issued(account)) for _ in range(3)]
    finally:
        request_sent.disconnect(interrupt)

    assert isinstance(leader.exception(), KeyboardInterrupt)
    assert sorted(follower.result().number for follower in followers) == [3, 4]
    assert_whole(account, 4)


def test_a_repeated_request_reads_guard_and_invoice_at_one_instant(
    account: str, proxy: FaultProxy
) -> None:
    invoice = issued(account, request_id="a")
    key = {"series": {"S": series(account)}, "number": {"N": "1"}}
    # As DynamoDB may answer while the transaction of another process is being carried out.
    proxy.plan("GetItem", Reply(lambda _body: {}), when=lambda body: body["Key"] == key)

    assert issued(account, request_id="a") == invoice


def test_a_rejected_repetition_after_a_lost_reply_is_no_refusal(
    account: str, proxy: FaultProxy
) -> None:
    proxy.plan("TransactWriteItems", DropReply())
    proxy.plan("TransactWriteItems", Answer(400, "ExpiredTokenException"))

    with pytest.raises(Unavailable) as failed:
        issued(account, request_id="a")

    assert failed.value.maybe_written
    assert issued(account, request_id="a").number == 1
    assert_whole(account, 1)


def test_who_is_stored_gets_its_invoice_though_its_companions_fail(
    account: str, proxy: FaultProxy
) -> None:
    issued(account)
    proxy.plan("TransactWriteItems", Meanwhile(lambda: None))
    # The group of three is rejected, so each goes alone: the leader, then one that finds no table.
    proxy.plan("TransactWriteItems", Answer(400, "ValidationException"))
    proxy.plan("TransactWriteItems", Meanwhile(lambda: None))
    proxy.plan("TransactWriteItems", Answer(400, "ResourceNotFoundException"))

    def attempt(number: int) -> int:
        return issued(account, request_id=str(number)).number

    numbers = behind_a_first(account, attempt, 4)

    assert sorted(numbers) == [2, 3, 4, 5]
    assert_whole(account, 5)


@pytest.mark.usefixtures("impatient")
def test_a_refusal_that_shows_no_item_does_not_loop_past_the_deadline(
    account: str, proxy: FaultProxy
) -> None:
    issued(account)
    refused = Answer(
        400,
        "TransactionCanceledException",
        reasons=["None", "None", "ConditionalCheckFailed"],
    )
    proxy.plan("TransactWriteItems", refused, 100_000)

    with pytest.raises(Unavailable):
        issued(account, request_id="a")

    proxy.forget()
    assert issued(account, request_id="a").number == 2


def test_voiding_whose_reply_is_lost_succeeds(account: str, proxy: FaultProxy) -> None:
    invoice = issued(account)
    proxy.plan("UpdateItem", DropReply())

    voided = void(account, invoice.label, "typo")

    assert voided.is_voided
    assert find_invoice(account, invoice.label) == voided


def test_voiding_does_not_take_anothers_work_for_its_own(account: str, proxy: FaultProxy) -> None:
    invoice = issued(account)
    proxy.plan("UpdateItem", CloseBefore())
    proxy.plan("UpdateItem", Meanwhile(lambda: void(account, invoice.label, "theirs")))

    with pytest.raises(AlreadyVoided) as refused:
        void(account, invoice.label, "ours")

    assert refused.value.reason == "theirs"


def test_an_invoice_that_is_issued_just_after_it_was_to_be_voided_was_not_there(
    account: str, proxy: FaultProxy
) -> None:
    label = issued(account).label.replace("000001", "000002")
    proxy.plan("GetItem", Meanwhile(lambda: issued(account)))

    with pytest.raises(UnknownInvoice):
        void(account, label, "typo")

    assert not find_invoice(account, label).is_voided
