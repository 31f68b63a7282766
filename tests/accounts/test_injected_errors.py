"""What no local engine does, DynamoDB will: success in the end, or one clear error."""

from __future__ import annotations

import time
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from django.test import Client

from accounts.exceptions import StaleUser
from dynamo.client import deadline, sending
from dynamo.exceptions import Unavailable
from tests.conftest import PATIENCE_SECONDS
from tests.factories import PASSWORD, assert_guards_match_users, make_user, stored_items
from tests.faults.kinds import Answer, CloseBefore, DropReply, TimeOut
from tests.faults.proxy import NOWHERE, FaultProxy, through
from tests.operations import ANN, OPERATIONS, Operation, each_operation
from tests.pages import form_values

CONFLICT_REASON = "a reason TransactionConflict"
FAULTS = {
    "TransactionConflict": Answer(400, "TransactionConflictException"),
    "TransactionInProgress": Answer(400, "TransactionInProgressException"),
    "throttling": Answer(400, "ThrottlingException"),
    "throughput": Answer(400, "ProvisionedThroughputExceededException"),
    "500": Answer(500, "InternalServerError"),
    "500 after the write": Answer(500, "InternalServerError", carried_out=True),
    "time-out": TimeOut(),
    "broken connection": CloseBefore(),
    "broken reply": DropReply(),
}

each_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)

transactions = pytest.mark.parametrize(
    "operation",
    [each for each in OPERATIONS if each.api == "TransactWriteItems"],
    ids=lambda each: each.name,
)


def conflict(beside: str) -> Answer:
    reasons = [beside, "TransactionConflict", "None"]
    return Answer(400, "TransactionCanceledException", reasons=reasons)


@each_operation
@each_fault
def test_an_operation_outlasts_what_passes(
    proxy: FaultProxy, operation: Operation, fault: Any
) -> None:
    user = operation.given()
    proxy.forget()
    proxy.plan(operation.api, fault, times=2)

    operation.act(user)

    assert proxy.count(operation.api) >= 3
    operation.assert_done_once()


@transactions
@pytest.mark.parametrize("beside", ["None", "ConditionalCheckFailed", "ThrottlingError"])
def test_an_operation_outlasts_the_conflicts_of_a_transaction(
    proxy: FaultProxy, operation: Operation, beside: str
) -> None:
    user = operation.given()
    proxy.forget()
    proxy.plan(operation.api, conflict(beside), times=3)

    operation.act(user)

    assert proxy.count(operation.api) >= 4
    operation.assert_done_once()


@each_operation
@each_fault
def test_what_does_not_pass_is_one_error_and_the_same_again_is_done_once(
    proxy: FaultProxy, operation: Operation, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = operation.given()
    before = stored_items()
    proxy.forget()
    proxy.plan("*", fault, times=1_000)
    began = time.monotonic()

    with monkeypatch.context() as patch:
        patch.setattr(deadline, "OPERATION_SECONDS", 0.1)
        with pytest.raises(Unavailable) as unavailable:
            operation.act(user)

    assert time.monotonic() - began < PATIENCE_SECONDS
    assert unavailable.value.operation == operation.api
    proxy.forget()
    assert_guards_match_users()
    if not unavailable.value.maybe_written:
        assert stored_items() == before
    # A password hashed anew has another hash, so a change that came through is not recognised.
    with suppress(StaleUser) if operation.name == "change_password" else nullcontext():
        operation.act(user)
    operation.assert_done_once()


@transactions
def test_a_conflict_without_end_is_no_refusal(
    proxy: FaultProxy, operation: Operation, impatient: float
) -> None:
    user = operation.given()
    before = stored_items()
    proxy.plan(operation.api, conflict("ConditionalCheckFailed"), times=1_000)

    with pytest.raises(Unavailable) as unavailable:
        operation.act(user)

    assert not unavailable.value.maybe_written
    assert stored_items() == before


@each_operation
def test_nothing_is_written_where_nobody_listens(
    proxy: FaultProxy, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = operation.given()
    before = stored_items()

    with through(NOWHERE):
        sending.client()
        monkeypatch.setattr(deadline, "OPERATION_SECONDS", 0.1)
        with pytest.raises(Unavailable, match="EndpointConnectionError") as unavailable:
            operation.act(user)

    assert not unavailable.value.maybe_written
    assert stored_items() == before


# Over HTTP ----------------------------------------------------------------------------------------


@each_fault
def test_a_sign_up_in_vain_is_a_503_and_the_same_form_again_makes_one_account(
    proxy: FaultProxy, client: Client, fault: Any, settings: Any
) -> None:
    values = {name: ANN[name] for name in ("username", "email")}
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    typed = form_values(client, "/accounts/signup/", **values, **passwords)
    proxy.plan("*", fault, times=1_000)
    patience_seconds, settings.DYNAMODB_PAGE_SECONDS = settings.DYNAMODB_PAGE_SECONDS, 0.2

    response = client.post("/accounts/signup/", typed)

    assert response.status_code == 503
    proxy.forget()
    settings.DYNAMODB_PAGE_SECONDS = patience_seconds
    assert_guards_match_users()
    assert client.post("/accounts/signup/", typed).status_code == 302
    assert len(stored_items()) == 3
    assert_guards_match_users()


@pytest.mark.parametrize(
    ("url", "typed"),
    [
        ("/accounts/email/", {"email": "new@example.org", "password": PASSWORD}),
        ("/accounts/username/", {"username": "New", "password": PASSWORD}),
        ("/accounts/profile/", {"full_name": "New"}),
        ("/accounts/delete/", {"password": PASSWORD}),
    ],
)
def test_a_change_in_vain_is_a_503_and_stores_nothing(
    proxy: FaultProxy, client: Client, url: str, typed: dict[str, str], settings: Any
) -> None:
    client.force_login(make_user())
    before = stored_items()
    settings.DYNAMODB_PAGE_SECONDS = 0.2
    for operation in ("TransactWriteItems", "UpdateItem"):
        proxy.plan(operation, FAULTS["throttling"], times=1_000)

    response = client.post(url, typed)

    assert response.status_code == 503
    proxy.forget()
    assert stored_items() == before
