"""Which requests are repeated, for how long, and with which errors they end."""

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from botocore.exceptions import SSLError
from hypothesis import given, strategies as st

from dynamo import ConditionFailed, Rejected, TableMissing, Unavailable
from dynamo.client.retries import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Fault,
    fault_of,
    is_repeatable,
    pause_seconds,
)
from dynamo.client.sending import send
from dynamo.runtime import deadline
from dynamo.runtime.deadline import page_deadline, within
from project import settings as site_settings
from tests.clocks import SleeplessClock, use_clock
from tests.conftest import CONNECT_SECONDS, PATIENCE_SECONDS, READ_SECONDS
from tests.dynamo.bands import Band, delete_guard
from tests.faults.kinds import Answer, CloseBefore, DropReply, Garble, TimeOut
from tests.faults.proxy import FaultProxy
from tests.requests import told

KEY = {"pk": {"S": "thing"}}

# After these faults nothing was written …
NOT_DONE = {
    "throttled": Answer(400, "ThrottlingException"),
    "over the table's limit": Answer(400, "ProvisionedThroughputExceededException"),
    "over the account's limit": Answer(400, "RequestLimitExceeded"),
    "another transaction": Answer(400, "TransactionConflictException"),
    "a write in another region": Answer(400, "ReplicatedWriteConflictException"),
}
# … and after these it may have been.
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


STALLED = MAYBE_DONE["transaction in progress"]


def put(value: str = "one", **more: Any) -> dict[str, Any]:
    item = {**KEY, "value": {"S": value}}
    return send("PutItem", {"TableName": Band.table(), "Item": item, **more})


def stored() -> dict[str, Any] | None:
    return send("GetItem", {"TableName": Band.table(), "Key": KEY}).get("Item")


def create() -> Band:
    """A new band with a random name."""
    name = uuid.uuid4().hex
    return Band.create(pk=name, name=name, site=f"{name}.example")


def count_up() -> None:
    send(
        "UpdateItem",
        {
            "TableName": Band.table(),
            "Key": KEY,
            "UpdateExpression": "ADD #n :one",
            "ExpressionAttributeNames": {"#n": "number"},
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        },
    )


# Repeated requests --------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", MAYBE_DONE.values(), ids=MAYBE_DONE)
def test_a_put_is_repeated_until_a_temporary_failure_is_over(proxy: FaultProxy, fault: Any) -> None:
    proxy.plan("PutItem", fault, times=2)

    put()

    assert proxy.count("PutItem") >= 3
    assert stored() == {**KEY, "value": {"S": "one"}}


@pytest.mark.parametrize("fault", NOT_DONE.values(), ids=NOT_DONE)
def test_even_a_count_is_repeated_after_a_failure_that_wrote_nothing(
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


@pytest.mark.parametrize("fault", (NOT_DONE | MAYBE_DONE).values(), ids=NOT_DONE | MAYBE_DONE)
def test_a_lasting_failure_is_unavailable_soon_after_the_deadline(
    proxy: FaultProxy, impatient: float, fault: Any
) -> None:
    proxy.plan("PutItem", fault, times=1_000)
    began = time.monotonic()

    with pytest.raises(Unavailable, match=r"no answer to PutItem in time \(") as unavailable:
        put()

    assert time.monotonic() - began < PATIENCE_SECONDS
    assert proxy.count("PutItem") > 1
    assert unavailable.value.operation == "PutItem"
    may_be = fault in MAYBE_DONE.values()
    assert unavailable.value.maybe_written == may_be
    assert ("The write may have been carried out anyway" in str(unavailable.value)) == may_be


def test_a_reply_with_a_wrong_checksum_is_requested_again(proxy: FaultProxy) -> None:
    put("one")
    proxy.plan("GetItem", Garble(b'"one"', b'"two"'))

    assert stored() == {**KEY, "value": {"S": "one"}}
    assert proxy.count("GetItem") == 2


def test_an_update_and_a_transaction_without_a_token_are_not_repeatable() -> None:
    reads_and_writes = ("GetItem", "Query", "TransactGetItems", "PutItem", "DeleteItem")
    assert all(is_repeatable(operation, {}) for operation in reads_and_writes)
    assert is_repeatable("TransactWriteItems", {"ClientRequestToken": "token"})
    assert not is_repeatable("TransactWriteItems", {})
    assert not is_repeatable("UpdateItem", {"UpdateExpression": "SET #0 = :0"})


def test_a_write_may_have_been_made_if_its_reply_cannot_be_decrypted() -> None:
    error = SSLError(endpoint_url="https://dynamodb", error="bad record MAC")
    assert fault_of(error) is Fault.MAYBE_DONE


# Conditions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("faults", "may_be_ours"),
    [
        ([], False),
        *(([fault] * 2, False) for fault in NOT_DONE.values()),
        ([DropReply()], True),
        ([TimeOut()], True),
        ([Answer(500, "X", carried_out=True)], True),
        ([DropReply(), NOT_DONE["throttled"]], True),
    ],
)
def test_only_after_a_lost_reply_may_a_false_condition_come_from_our_own_write(
    proxy: FaultProxy, faults: list[Any], may_be_ours: bool
) -> None:
    if not may_be_ours:
        put("theirs")
    proxy.forget()
    for fault in faults:
        proxy.plan("PutItem", fault)

    with pytest.raises(ConditionFailed) as failed:
        put("mine", ConditionExpression="attribute_not_exists(pk)")

    assert failed.value.repeated is may_be_ours
    assert proxy.count("PutItem") >= 1 + len(faults)
    assert stored() == {**KEY, "value": {"S": "mine" if may_be_ours else "theirs"}}


# Transactions -------------------------------------------------------------------------------------


def test_a_transaction_is_repeated_with_the_same_bytes_and_token(proxy: FaultProxy) -> None:
    for fault in (NOT_DONE["throttled"], DropReply(), TimeOut(), STALLED):
        proxy.plan("TransactWriteItems", fault)

    create()

    bodies = [json.dumps(seen.body) for seen in proxy.seen if "Write" in seen.operation]
    assert len(bodies) > 4
    assert len(set(bodies)) == 1
    assert 1 <= len(json.loads(bodies[0])["ClientRequestToken"]) <= 36


def test_a_transaction_that_is_repeated_without_a_deletion_has_another_token(
    proxy: FaultProxy,
) -> None:
    band = create()
    delete_guard(Band, f"name#{band.name}")
    proxy.forget()

    band.delete()

    tokens = {seen.body["ClientRequestToken"] for seen in proxy.seen}
    assert proxy.count("TransactWriteItems") == len(tokens) == 2


# Stalled transactions -----------------------------------------------------------------------------


@pytest.fixture
def attempts_at(proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The times at which the test sends requests, on a clock that moves only in pauses."""
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 5.0)
    clock = SleeplessClock()
    use_clock(clock, monkeypatch)
    times: list[float] = []

    def note(**_request: Any) -> None:
        times.append(clock.monotonic())

    with told(note):
        yield times


def transact() -> None:
    put = {"TableName": Band.table(), "Item": KEY}
    send("TransactWriteItems", {"TransactItems": [{"Put": put}], "ClientRequestToken": "token"})


@pytest.mark.parametrize(
    ("fault", "waited", "earliest", "latest"),
    [
        pytest.param(STALLED, None, 5.2, 5.2, id="a stalled transaction"),
        pytest.param(NOT_DONE["throttled"], None, 4.0, 5.0, id="a throttled one"),
        pytest.param(MAYBE_DONE["server fault"], None, 4.0, 5.0, id="a failed one"),
        pytest.param(STALLED, 0.5, 5.7, 5.7, id="a stalled one early on a page"),
        # So that the page answers within 10 seconds.
        pytest.param(STALLED, 2.0, 4.5, 5.5, id="a stalled one late on a page"),
    ],
)
def test_a_stalled_transaction_has_a_last_attempt_5_2_seconds_after_its_first(
    proxy: FaultProxy,
    attempts_at: list[float],
    fault: Any,
    waited: float | None,
    earliest: float,
    latest: float,
) -> None:
    proxy.plan("TransactWriteItems", fault, times=1_000)

    with nullcontext() if waited is None else page_deadline(5.5):
        deadline.time.sleep(waited or 0.0)
        with pytest.raises(Unavailable) as unavailable:
            transact()

    *others, last = attempts_at
    assert unavailable.value.maybe_written is (fault in MAYBE_DONE.values())
    assert others[-1] <= 5.0 + (waited or 0.0)
    assert earliest - 0.001 <= last <= latest + 0.001


def test_a_page_ends_within_10_seconds_of_its_start() -> None:
    begins = site_settings.DYNAMODB_PAGE_SECONDS + deadline.RECOVERY_GRACE_SECONDS
    assert begins + CONNECT_SECONDS + READ_SECONDS < 10


READS: dict[str, Any] = {
    "GetItem": {"Key": KEY},
    "Scan": {},
    "Query": {
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": KEY["pk"]},
    },
}


@pytest.mark.parametrize("operation", READS)
def test_a_read_is_strongly_consistent_unless_the_request_says_otherwise(
    proxy: FaultProxy, operation: str
) -> None:
    request = {"TableName": Band.table(), **READS[operation]}

    send(operation, request)
    send(operation, request | {"ConsistentRead": False})

    assert [seen.body["ConsistentRead"] for seen in proxy.seen] == [True, False]
    assert "ConsistentRead" not in request


def test_a_batch_is_read_consistently_from_each_table(proxy: FaultProxy) -> None:
    tables = {
        Band.table(): {"Keys": [KEY], "ConsistentRead": False},
        "cache": {"Keys": [{"key": KEY["pk"]}]},
    }

    send("BatchGetItem", {"RequestItems": tables})

    sent = proxy.seen[-1].body["RequestItems"]
    assert [wanted["ConsistentRead"] for wanted in sent.values()] == [True, True]


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_the_error_of_a_missing_table_names_the_command_that_creates_it() -> None:
    with pytest.raises(TableMissing, match=r"Run manage\.py createtables"):
        send("GetItem", {"TableName": "no-such-table", "Key": KEY})


@pytest.mark.parametrize(
    "code", ["ExpiredTokenException", "UnrecognizedClientException", "AccessDeniedException"]
)
def test_missing_rights_are_reported_without_a_retry(proxy: FaultProxy, code: str) -> None:
    proxy.plan("PutItem", Answer(400, code, "say why"))

    with pytest.raises(Rejected, match=f"DynamoDB refused PutItem: {code}: say why"):
        put()

    assert proxy.count("PutItem") == 1


@pytest.mark.usefixtures("engine", "own_client")
def test_an_invalid_endpoint_is_an_error_and_not_a_missing_item(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # In AWS's own file, `endpoint_url` may be like this. The settings check the environment.
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://exa mple:8000")

    with pytest.raises(Rejected, match="Invalid endpoint: http://exa mple:8000"):
        Band.get("who")


@pytest.mark.usefixtures("engine", "own_client")
def test_an_engine_on_this_machine_needs_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)

    assert "TableNames" in send("ListTables", {})


# Deadlines ----------------------------------------------------------------------------------------


def test_an_operation_after_the_deadline_is_tried_once(proxy: FaultProxy) -> None:
    with within(0):
        put()
        proxy.plan("GetItem", NOT_DONE["throttled"])
        with pytest.raises(Unavailable):
            stored()

    assert [seen.operation for seen in proxy.seen] == ["PutItem", "GetItem"]


def test_of_two_deadlines_the_earlier_one_counts_until_its_block_ends() -> None:
    with within(60):
        with within(0), within(60):
            assert deadline.operation_ends_at() <= time.monotonic()
        assert deadline.operation_ends_at() > time.monotonic()


@given(attempt=st.integers(0, 20) | st.just(100_000))
def test_pauses_are_spread_over_bounds_that_double_up_to_one_second(attempt: int) -> None:
    ceiling = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(attempt, 64))

    pauses = [pause_seconds(attempt) for _ in range(200)]

    assert all(0 <= pause <= ceiling for pause in pauses)
    assert {int(4 * pause / ceiling) for pause in pauses} >= {0, 1, 2, 3}
