"""The shared client, and which requests are sent again, for how long, and with what end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import SSLError
from botocore.parsers import ResponseParserError
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from dynamo.client import deadline
from dynamo.client.deadline import page, within
from dynamo.client.retries import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Fault,
    fault_of,
    is_repeatable,
    pause_seconds,
)
from dynamo.client.sending import client, reset, send
from dynamo.exceptions import ConditionFailed, Rejected, TableMissing, Unavailable
from dynamo.signals import request_sent
from dynamo.transactions import Transaction
from project import settings as site_settings
from tests.clocks import SleeplessClock, use_clock
from tests.conftest import CONNECT_SECONDS, PATIENCE_SECONDS, READ_SECONDS
from tests.factories import PASSWORD, make_user
from tests.faults.kinds import Answer, CloseBefore, DropReply, Garble, TimeOut
from tests.faults.proxy import NOWHERE, FaultProxy, through
from tests.requests import Requests

KEY = {"pk": {"S": "thing"}}

# Seen by whoever sent it, these say that nothing was written …
NOT_DONE = {
    "throttled": Answer(400, "ThrottlingException"),
    "over the table's limit": Answer(400, "ProvisionedThroughputExceededException"),
    "over the account's limit": Answer(400, "RequestLimitExceeded"),
    "another transaction": Answer(400, "TransactionConflictException"),
    "a write in another region": Answer(400, "ReplicatedWriteConflictException"),
}
# … and these leave it open.
MAYBE_DONE = {
    "reply lost": DropReply(),
    "request lost": CloseBefore(),
    "no reply in time": TimeOut(),
    "reply garbled": Garble(b"{", b"["),
    "server fault": Answer(500, "InternalServerError"),
    "server fault after the write": Answer(500, "InternalServerError", carried_out=True),
    "service away": Answer(503, "ServiceUnavailable"),
    "gateway": Answer(502, "BadGateway"),
    "transaction in progress": Answer(400, "TransactionInProgressException"),
}
PASSING = NOT_DONE | MAYBE_DONE

COUNTING = [
    "ADD #n :one",
    "SET #n = if_not_exists(#n, :zero) + :one",
    "SET #l = list_append(if_not_exists(#l, :none), :item)",
]


@pytest.fixture
def _own_client() -> Iterator[None]:
    """The test may spoil the environment that the client is made from."""
    reset()
    yield
    reset()


def put(value: str = "one", **more: Any) -> dict[str, Any]:
    item = {**KEY, "value": {"S": value}}
    return send("PutItem", {"TableName": User.table(), "Item": item, **more})


def stored() -> dict[str, Any] | None:
    return send("GetItem", {"TableName": User.table(), "Key": KEY}).get("Item")


def count_up(expression: str = "ADD #n :one") -> None:
    values = {
        ":one": {"N": "1"},
        ":zero": {"N": "0"},
        ":none": {"L": []},
        ":item": {"L": [{"S": "item"}]},
    }
    names = {"#n": "number", "#l": "list"}
    send(
        "UpdateItem",
        {
            "TableName": User.table(),
            "Key": KEY,
            "UpdateExpression": expression,
            "ExpressionAttributeNames": {
                sign: name for sign, name in names.items() if sign in expression
            },
            "ExpressionAttributeValues": {
                sign: value for sign, value in values.items() if sign in expression
            },
        },
    )


# One client ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine", "_own_client")
def test_threads_that_start_at_once_share_one_client(
    at_once: Callable[..., list[Any]],
) -> None:
    barrier = threading.Barrier(8)

    def first_use(_n: int) -> Any:
        barrier.wait()
        return client()

    assert len({id(each) for each in at_once(first_use)}) == 1


@pytest.mark.usefixtures("engine")
def test_threads_use_the_one_client_at_once(at_once: Callable[..., list[Any]]) -> None:
    def write_and_read(n: int) -> bool:
        key = {"pk": {"S": f"thing{n}"}}
        for number in range(5):
            item = {**key, "value": {"N": str(number)}}
            send("PutItem", {"TableName": User.table(), "Item": item})
            if send("GetItem", {"TableName": User.table(), "Key": key})["Item"] != item:
                return False
        return True

    assert all(at_once(write_and_read))


FORKING = """
import os, sys
import django
django.setup()
from dynamo.client.sending import client, send

def works():
    return "TableNames" in send("ListTables", {})

before = client()
assert works()
child = os.fork()
if not child:
    try:
        fresh = client() is not before and works()
    finally:
        os._exit(0 if fresh else 3)
_pid, status = os.waitpid(child, 0)
assert client() is before and works()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.usefixtures("engine")
def test_a_forked_child_makes_a_client_of_its_own() -> None:
    ended = subprocess.run([sys.executable, "-c", FORKING], check=False, timeout=120)

    assert ended.returncode == 0


FORKING_UNDER_LOCK = """
import os, sys
import django
django.setup()
from dynamo.client import sending
from dynamo.client.sending import send

with sending._ways._lock:  # as where another thread makes the client at that moment
    child = os.fork()
    if not child:
        try:
            done = "TableNames" in send("ListTables", {})
        finally:
            os._exit(0 if done else 3)
    _pid, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.usefixtures("engine")
def test_a_fork_while_a_thread_makes_the_client_does_not_block_the_child() -> None:
    ended = subprocess.run([sys.executable, "-c", FORKING_UNDER_LOCK], check=False, timeout=120)

    assert ended.returncode == 0


# Repeated, and to what end ------------------------------------------------------------------------


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_passing_failure_is_repeated_until_it_is_over(proxy: FaultProxy, fault: Any) -> None:
    proxy.plan("PutItem", fault, times=2)

    put()

    assert proxy.count("PutItem") >= 3
    assert stored() == {**KEY, "value": {"S": "one"}}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_failure_that_does_not_pass_is_one_error_soon_after_the_deadline(
    proxy: FaultProxy, impatient: float, fault: Any
) -> None:
    proxy.plan("PutItem", fault, times=1_000)
    began = time.monotonic()

    with pytest.raises(Unavailable) as unavailable:
        put()

    assert time.monotonic() - began < PATIENCE_SECONDS
    assert proxy.count("PutItem") > 1
    assert unavailable.value.operation == "PutItem"
    assert unavailable.value.maybe_written == (fault in MAYBE_DONE.values())


def test_an_error_names_the_operation_and_the_reason_in_one_line(
    proxy: FaultProxy, impatient: float
) -> None:
    proxy.plan("PutItem", NOT_DONE["throttled"], times=1_000)

    with pytest.raises(Unavailable) as unavailable:
        put()

    assert str(unavailable.value) == (
        "DynamoDB gave no answer to PutItem in time (ThrottlingException)."
    )


def test_an_error_says_where_the_write_may_have_arrived(
    proxy: FaultProxy, impatient: float
) -> None:
    proxy.plan("PutItem", DropReply(), times=1_000)

    with pytest.raises(Unavailable, match="It may have been written all the same") as unavailable:
        put()

    assert unavailable.value.reason == "ConnectionClosedError"


def test_a_value_that_changed_on_its_way_is_not_believed(proxy: FaultProxy) -> None:
    put("one")
    proxy.plan("GetItem", Garble(b'"one"', b'"two"'))

    assert stored() == {**KEY, "value": {"S": "one"}}
    assert proxy.count("GetItem") == 2


@pytest.mark.usefixtures("engine")
def test_a_refused_connection_is_repeated_and_nothing_was_written(
    impatient: float, requests_sent: Requests
) -> None:
    with through(NOWHERE):
        client()
        with pytest.raises(Unavailable) as unavailable:
            count_up()

    assert len(requests_sent.operations) > 1
    assert not unavailable.value.maybe_written


def test_every_attempt_is_a_request_that_is_noted(
    proxy: FaultProxy, requests_sent: Requests
) -> None:
    proxy.plan("PutItem", DropReply(), times=2)

    put()

    assert requests_sent.operations == ["PutItem"] * 3


# What counts up -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", NOT_DONE.values(), ids=NOT_DONE)
def test_a_count_that_was_not_made_is_made_again_and_counts_once(
    proxy: FaultProxy, fault: Any
) -> None:
    proxy.plan("UpdateItem", fault, times=2)

    count_up()

    assert stored() == {**KEY, "number": {"N": "1"}}


@pytest.mark.parametrize("fault", MAYBE_DONE.values(), ids=MAYBE_DONE)
def test_a_count_that_may_have_been_made_is_not_sent_again(proxy: FaultProxy, fault: Any) -> None:
    proxy.plan("UpdateItem", fault, times=1_000)

    with pytest.raises(Unavailable) as unavailable:
        count_up()

    assert unavailable.value.maybe_written
    assert proxy.count("UpdateItem") == 1
    assert stored() in (None, {**KEY, "number": {"N": "1"}})


@pytest.mark.parametrize("expression", COUNTING)
def test_whatever_counts_up_is_not_sent_again_after_a_lost_reply(
    proxy: FaultProxy, expression: str
) -> None:
    proxy.plan("UpdateItem", DropReply(), times=1_000)

    with pytest.raises(Unavailable):
        count_up(expression)

    assert proxy.count("UpdateItem") == 1


@pytest.mark.parametrize(
    ("operation", "request_", "repeatable"),
    [
        ("GetItem", {}, True),
        ("TransactGetItems", {}, True),
        ("PutItem", {}, True),
        ("DeleteItem", {}, True),
        ("UpdateItem", {"UpdateExpression": "SET #0 = :0, #1 = :1 REMOVE #2"}, True),
        ("UpdateItem", {"UpdateExpression": "SET #0 = if_not_exists(#0, :0)"}, True),
        ("UpdateItem", {"UpdateExpression": "SET #0 = #0 - :0"}, False),
        ("UpdateItem", {"UpdateExpression": "SET #0 = :0 ADD #1 :1"}, False),
        ("UpdateItem", {"UpdateExpression": "SET #0=#0+:0"}, False),
        ("TransactWriteItems", {"ClientRequestToken": "token"}, True),
        ("TransactWriteItems", {}, False),
    ],
)
def test_what_may_be_sent_twice(operation: str, request_: dict[str, Any], repeatable: bool) -> None:
    assert is_repeatable(operation, request_) is repeatable


@pytest.mark.parametrize(
    "error",
    [
        SSLError(endpoint_url="https://dynamodb", error="bad record MAC"),
        ResponseParserError("no JSON"),
    ],
)
def test_a_reply_that_breaks_while_it_is_read_may_be_that_of_a_write(error: Any) -> None:
    assert fault_of(error) is Fault.MAYBE_DONE


# Conditions ---------------------------------------------------------------------------------------


def put_if_absent() -> None:
    put("mine", ConditionExpression="attribute_not_exists(pk)")


def test_a_condition_that_is_false_is_said_at_once(proxy: FaultProxy) -> None:
    put()

    with pytest.raises(ConditionFailed) as failed:
        put_if_absent()

    assert not failed.value.repeated
    assert proxy.count("PutItem") == 2


@pytest.mark.parametrize("fault", NOT_DONE.values(), ids=NOT_DONE)
def test_a_condition_that_is_false_after_attempts_in_vain_is_anothers_work(
    proxy: FaultProxy, fault: Any
) -> None:
    put()
    proxy.plan("PutItem", fault, times=2)

    with pytest.raises(ConditionFailed) as failed:
        put_if_absent()

    assert not failed.value.repeated


@pytest.mark.parametrize("fault", [DropReply(), TimeOut(), Answer(500, "X", carried_out=True)])
def test_a_condition_that_is_false_after_a_lost_reply_may_be_our_own_work(
    proxy: FaultProxy, fault: Any
) -> None:
    proxy.plan("PutItem", fault)

    with pytest.raises(ConditionFailed) as failed:
        put_if_absent()

    assert failed.value.repeated
    assert stored() == {**KEY, "value": {"S": "mine"}}


def test_the_attempt_before_a_throttled_one_counts_too(proxy: FaultProxy) -> None:
    proxy.plan("PutItem", DropReply())
    proxy.plan("PutItem", NOT_DONE["throttled"])

    with pytest.raises(ConditionFailed) as failed:
        put_if_absent()

    assert failed.value.repeated


# Transactions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_transaction_is_repeated_byte_by_byte_under_one_token(
    proxy: FaultProxy, fault: Any
) -> None:
    proxy.plan("TransactWriteItems", fault, times=2)

    make_user()

    bodies = [json.dumps(seen.body) for seen in proxy.seen if "Write" in seen.operation]
    assert len(bodies) >= 3
    assert len(set(bodies)) == 1
    assert 1 <= len(json.loads(bodies[0])["ClientRequestToken"]) <= 36


def test_other_bytes_have_another_token(proxy: FaultProxy) -> None:
    for _ in range(2):
        make_user(request_id=None)

    tokens = {seen.body["ClientRequestToken"] for seen in proxy.seen}
    assert len(tokens) == 2


def test_a_transaction_sent_again_without_a_deletion_has_another_token(proxy: FaultProxy) -> None:
    guard = User.unique.guard_model
    with Transaction() as write:
        user = User(pk="1", username="a", email="a@example.org", password="!")
        write.put(user, User.pk.does_not_exist(), otherwise=LookupError())
        write.delete_if(guard("userName#gone", owner="1"), guard.owner == "1")

    tokens = {seen.body["ClientRequestToken"] for seen in proxy.seen}
    assert proxy.count("TransactWriteItems") == len(tokens) == 2


# Stalled transactions -----------------------------------------------------------------------------

IN_PROGRESS = Answer(400, "TransactionInProgressException")


@pytest.fixture
def attempts_at(proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """When each request of the test was sent, on a clock that only pauses move."""
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 5.0)
    clock = SleeplessClock()
    use_clock(clock, monkeypatch)
    times: list[float] = []

    def note(**_request: Any) -> None:
        times.append(clock.monotonic())

    request_sent.connect(note)
    yield times
    request_sent.disconnect(note)


def transact() -> None:
    put = {"TableName": User.table(), "Item": KEY}
    send("TransactWriteItems", {"TransactItems": [{"Put": put}], "ClientRequestToken": "token"})


def test_a_stalled_transaction_is_committed_when_dynamodb_recovers_it(
    proxy: FaultProxy, attempts_at: list[float]
) -> None:
    clock = deadline.time
    recovers_at = clock.monotonic() + 5.1
    proxy.plan(
        "TransactWriteItems",
        IN_PROGRESS,
        times=1_000,
        when=lambda _body: clock.monotonic() < recovers_at,
    )

    transact()

    assert stored() == KEY


def test_the_last_attempt_of_a_stalled_transaction_is_5_2_seconds_after_its_first(
    proxy: FaultProxy, attempts_at: list[float]
) -> None:
    proxy.plan("TransactWriteItems", IN_PROGRESS, times=1_000)

    with pytest.raises(Unavailable) as unavailable:
        transact()

    *others, last = attempts_at
    assert unavailable.value.maybe_written
    assert others[-1] <= 5.0
    assert last == pytest.approx(5.2)


@pytest.mark.parametrize("fault", [NOT_DONE["throttled"], Answer(500, "InternalServerError")])
def test_everything_else_ends_at_5_seconds(
    proxy: FaultProxy, attempts_at: list[float], fault: Any
) -> None:
    proxy.plan("TransactWriteItems", fault, times=1_000)

    with pytest.raises(Unavailable):
        transact()

    assert 4.0 <= attempts_at[-1] <= 5.0


@pytest.mark.parametrize(("waited", "last"), [(0.5, 5.7), (2.0, None)])
def test_the_last_attempt_of_a_page_begins_early_enough_for_an_answer_within_10_seconds(
    proxy: FaultProxy, attempts_at: list[float], waited: float, last: float | None
) -> None:
    proxy.plan("TransactWriteItems", IN_PROGRESS, times=1_000)

    with page(site_settings.DYNAMODB_PAGE_SECONDS):
        deadline.time.sleep(waited)
        with pytest.raises(Unavailable):
            transact()

    if last is None:
        assert attempts_at[-1] <= 5.5
    else:
        assert attempts_at[-1] == pytest.approx(last)


def test_the_last_attempt_of_a_page_is_bounded_by_its_time_outs() -> None:
    longest = (
        site_settings.DYNAMODB_PAGE_SECONDS
        + deadline.RECOVERY_GRACE_SECONDS
        + CONNECT_SECONDS
        + READ_SECONDS
    )
    assert longest < 10


# Reads --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("GetItem", {"Key": KEY}),
        ("Scan", {}),
        (
            "Query",
            {
                "KeyConditionExpression": "pk = :pk",
                "ExpressionAttributeValues": {":pk": KEY["pk"]},
            },
        ),
    ],
)
@pytest.mark.parametrize("asked", [{}, {"ConsistentRead": False}])
def test_a_read_is_consistent_whatever_the_caller_says(
    proxy: FaultProxy, operation: str, request_: dict[str, Any], asked: dict[str, Any]
) -> None:
    request = {"TableName": User.table(), **request_, **asked}
    as_given = dict(request)

    send(operation, request)

    assert proxy.seen[-1].body["ConsistentRead"] is True
    assert request == as_given


def test_a_batch_is_read_consistently_table_by_table(proxy: FaultProxy) -> None:
    tables = {
        "users": {"Keys": [KEY], "ConsistentRead": False},
        "cache": {"Keys": [{"key": KEY["pk"]}]},
    }

    send("BatchGetItem", {"RequestItems": tables})

    sent = proxy.seen[-1].body["RequestItems"]
    assert [wanted["ConsistentRead"] for wanted in sent.values()] == [True, True]


def test_every_read_of_a_visit_is_consistent(proxy: FaultProxy) -> None:
    client = Client()
    user = make_user()
    client.post("/accounts/login/", {"username": user.email, "password": PASSWORD})
    client.get("/accounts/profile/")
    client.post("/accounts/email/", {"email": "new@example.org", "password": PASSWORD})
    User.find("new@example.org")

    reads = [seen.body for seen in proxy.seen if seen.operation in {"GetItem", "Query", "Scan"}]
    assert len(reads) > 5
    assert all(read["ConsistentRead"] is True for read in reads)


# Clear errors -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_a_missing_table_is_said_with_what_makes_it() -> None:
    with pytest.raises(TableMissing, match=r"run manage\.py createtables"):
        send("GetItem", {"TableName": "no-such-table", "Key": KEY})


@pytest.mark.parametrize(
    "code",
    ["ExpiredTokenException", "UnrecognizedClientException", "AccessDeniedException"],
)
def test_rights_that_are_missing_are_said_at_once(proxy: FaultProxy, code: str) -> None:
    proxy.plan("PutItem", Answer(400, code, "say why"))

    with pytest.raises(Rejected, match=f"DynamoDB refused PutItem: {code}: say why"):
        put()

    assert proxy.count("PutItem") == 1


@pytest.mark.usefixtures("engine", "_own_client")
def test_missing_credentials_are_said_at_once(
    monkeypatch: pytest.MonkeyPatch, requests_sent: Requests
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "https://dynamodb.invalid")

    with pytest.raises(Rejected, match="Unable to locate credentials"):
        put()

    assert requests_sent.operations == ["PutItem"]


@pytest.mark.usefixtures("engine", "_own_client")
def test_an_endpoint_that_is_none_is_said_and_nothing_is_taken_for_absent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As `endpoint_url` in AWS's own file may have it; of the environment the settings would tell.
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://exa mple:8000")

    with pytest.raises(Rejected, match="Invalid endpoint: http://exa mple:8000"):
        User.find("ann")


@pytest.mark.usefixtures("engine", "_own_client")
def test_an_engine_on_this_machine_needs_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)

    assert "TableNames" in send("ListTables", {})


@pytest.mark.usefixtures("engine")
@pytest.mark.fault_of("moto", "takes keys of any length here")
def test_a_key_that_is_too_long_is_refused() -> None:
    with pytest.raises(Rejected) as rejected:
        send("GetItem", {"TableName": User.table(), "Key": {"pk": {"S": "x" * 2049}}})

    assert rejected.value.code == "ValidationException"


# Deadlines ----------------------------------------------------------------------------------------


def test_a_deadline_holds_across_several_operations(proxy: FaultProxy) -> None:
    proxy.plan("*", NOT_DONE["throttled"], times=1_000)
    began = time.monotonic()

    with within(0.4):
        for _ in range(5):
            with pytest.raises(Unavailable):
                put()

    assert time.monotonic() - began < PATIENCE_SECONDS


def test_after_the_deadline_an_operation_is_tried_once_more(proxy: FaultProxy) -> None:
    with within(0):
        put()
        proxy.plan("GetItem", NOT_DONE["throttled"])
        with pytest.raises(Unavailable):
            stored()

    assert [seen.operation for seen in proxy.seen] == ["PutItem", "GetItem"]


def test_a_deadline_inside_another_does_not_lengthen_it(proxy: FaultProxy) -> None:
    proxy.plan("PutItem", NOT_DONE["throttled"], times=1_000)
    began = time.monotonic()

    with within(0.2), within(60), pytest.raises(Unavailable):
        put()

    assert time.monotonic() - began < PATIENCE_SECONDS


def test_a_deadline_ends_with_its_block(proxy: FaultProxy) -> None:
    with within(0):
        pass
    proxy.plan("PutItem", NOT_DONE["throttled"], times=2)

    put()

    assert proxy.count("PutItem") == 3


@given(attempt=st.integers(0, 100_000))
def test_pauses_are_within_bounds_that_double_up_to_one_second(attempt: int) -> None:
    ceiling = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(attempt, 64))

    assert 0 <= pause_seconds(attempt) <= ceiling


@given(attempt=st.integers(0, 20))
def test_pauses_are_spread_over_the_whole_of_their_bounds(attempt: int) -> None:
    ceiling = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**attempt)

    quarters = {int(4 * pause_seconds(attempt) / ceiling) for _ in range(200)}

    assert quarters >= {0, 1, 2, 3}


def test_the_tests_talk_to_no_table_of_anybodys() -> None:
    assert os.environ["AWS_ENDPOINT_URL_DYNAMODB"].startswith("http://127.0.0.1:")
