"""Every operation under faults: it happens once, or ends with one error and can be repeated."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
from django.test import Client

from accounts.emails.change import confirm_change
from accounts.exceptions import AccountRequestReused, StaleUser
from accounts.models import User
from accounts.services import (
    change_email,
    change_password,
    change_username,
    delete,
    edit_profile,
)
from accounts.sessions import services as sessions
from dynamo._internal.client import deadline, sending
from dynamo._internal.client.sending import send
from dynamo.exceptions import ConditionFailed, TransactionCancelled, Unavailable
from dynamo.test import Tables
from tests import engines
from tests.accounts.operations import OPERATIONS, TRANSACTION, Operation, ann, each_operation
from tests.conftest import PATIENCE_SECONDS
from tests.emailchanges import NEW, again, token_of, waiting_user
from tests.factories import (
    PASSWORD,
    as_stored_by_0_1,
    assert_guards_match_users,
    changes_of,
    make_user,
    stored_items,
    stored_user,
)
from tests.faults.kinds import Answer, CloseBefore, DropReply, Meanwhile
from tests.faults.proxy import NOWHERE, FaultProxy, through
from tests.pages import form_values, sign_in, signed_in_as
from tests.session_maps import begun, read_for, stored_ids

# One for each way in which a request can fail: carried out or not, with an answer or without.
# How the client sorts the codes of errors: tests/dynamo/test_client.py.
FAULTS = {
    "reply lost": DropReply(),
    "request lost": CloseBefore(),
    "throttled": Answer(400, "ThrottlingException"),
    "500 after the write": Answer(500, "InternalServerError", carried_out=True),
}
each_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
each_loss = pytest.mark.parametrize("lost", [DropReply(), CloseBefore()], ids=["reply", "request"])
each_transaction = pytest.mark.parametrize(
    "operation",
    [each for each in OPERATIONS if each.api == TRANSACTION],
    ids=lambda each: each.name,
)


def conflict(beside: str) -> Answer:
    reasons = [beside, "TransactionConflict", "None"]
    return Answer(400, "TransactionCanceledException", reasons=reasons)


# Each operation under each fault ------------------------------------------------------------------


@each_operation
@each_fault
@pytest.mark.fault_of("moto", "ignores request tokens")
def test_an_operation_happens_once_under_faults_that_pass(
    proxy: FaultProxy, operation: Operation, fault: Any
) -> None:
    user = operation.given()
    proxy.forget()
    proxy.plan(operation.api, fault, times=2)

    result = operation.act(user)

    assert proxy.count(operation.api) >= 3
    assert operation.is_done_once()
    if operation.changes is not None:
        in_hand = operation.in_hand(user, result)
        assert in_hand.to_dynamodb_dict() == stored_user(in_hand.pk)


@each_transaction
@pytest.mark.parametrize("beside", ["None", "ConditionalCheckFailed", "ThrottlingError"])
def test_an_operation_is_repeated_after_transaction_conflicts(
    proxy: FaultProxy, operation: Operation, beside: str
) -> None:
    user = operation.given()
    proxy.forget()
    proxy.plan(operation.api, conflict(beside), times=3)

    operation.act(user)

    assert proxy.count(operation.api) >= 4
    assert operation.is_done_once()


@each_operation
@each_fault
def test_an_operation_whose_fault_stays_is_one_error_and_can_be_asked_for_again(
    proxy: FaultProxy, operation: Operation, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = operation.given()
    before = stored_items()
    proxy.forget()
    proxy.plan(operation.api, fault, times=1_000)
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
    elif not operation.is_recognized:
        return
    operation.act(user)
    assert operation.is_done_once()


@each_transaction
def test_a_transaction_conflict_that_stays_is_not_a_refusal(
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
def test_an_operation_writes_nothing_if_the_engine_cannot_be_reached(
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


@each_transaction
def test_an_operation_recognizes_its_own_write_after_the_engine_forgot_the_token(
    own_engine: tuple[engines.Durable, FaultProxy, Tables], operation: Operation
) -> None:
    # DynamoDB forgets a token after 10 minutes.
    engine, proxy, tables = own_engine
    tables.empty([User.table()])
    with through(proxy):
        user = operation.given()
        proxy.forget()
        proxy.plan(operation.api, DropReply())
        proxy.plan(operation.api, Meanwhile(engine.restart))

        operation.act(user)

        assert proxy.count(operation.api) >= 2
        assert operation.is_done_once()


def test_a_sign_up_is_answered_with_the_account_as_others_have_changed_it_since(
    own_engine: tuple[engines.Durable, FaultProxy, Tables],
) -> None:
    engine, proxy, tables = own_engine
    tables.empty([User.table()])

    def change_and_forget() -> None:
        [pk] = [pk for pk in stored_items() if "#" not in pk]
        user = User.get(pk)
        change_username(user, "bea")
        edit_profile(user, full_name="Bea")
        engine.restart()

    with through(proxy):
        proxy.forget()
        proxy.plan(TRANSACTION, DropReply())
        proxy.plan(TRANSACTION, Meanwhile(change_and_forget))

        user = ann()

        assert proxy.count(TRANSACTION) >= 3
        assert (user.username, user.full_name) == ("bea", "Bea")
        assert user.stored == stored_user(user.pk)
        # A later call does not know whether the account was made with these values.
        with pytest.raises(AccountRequestReused):
            ann()
        assert_guards_match_users()


@each_operation
def test_a_late_duplicate_of_a_write_changes_nothing(
    proxy: FaultProxy, operation: Operation
) -> None:
    user = operation.given()
    proxy.forget()
    result = operation.act(user)
    (late,) = [seen.body for seen in proxy.seen if seen.operation == operation.api]
    if operation.changes is not None:
        in_hand = operation.in_hand(user, result)
        edit_profile(User.get(in_hand.pk), business_name="Since")
    before = stored_items()

    if "ClientRequestToken" in late:
        late["ClientRequestToken"] = "forgotten"
    with pytest.raises((ConditionFailed, TransactionCancelled)):
        send(operation.api, late)

    assert stored_items() == before


# Another change between a lost reply and the second attempt ---------------------------------------


def test_a_change_that_another_change_followed_succeeds(proxy: FaultProxy) -> None:
    user = make_user()
    proxy.plan("UpdateItem", DropReply())
    proxy.plan("UpdateItem", Meanwhile(lambda: edit_profile(again(user), vat_id="GB1")))

    edit_profile(user, full_name="Ann")

    stored = again(user)
    assert (stored.full_name, stored.vat_id, changes_of(user)) == ("Ann", "GB1", 2)
    assert user.version == stored.version


@pytest.mark.parametrize(
    ("lost", "error", "changes"),
    [
        pytest.param(DropReply(), Unavailable, 2, id="reply"),
        pytest.param(CloseBefore(), StaleUser, 1, id="request"),
    ],
)
def test_only_a_change_that_was_certainly_not_made_is_refused_as_stale(
    proxy: FaultProxy, lost: Any, error: type[Exception], changes: int
) -> None:
    user = make_user()
    proxy.plan("UpdateItem", lost)
    proxy.plan("UpdateItem", Meanwhile(lambda: edit_profile(again(user), full_name="Bea")))

    with pytest.raises(error) as refused:
        edit_profile(user, full_name="Ann")

    assert getattr(refused.value, "maybe_written", True)
    assert (again(user).full_name, changes_of(user)) == ("Bea", changes)


@pytest.mark.parametrize(
    ("lost", "error"),
    [
        pytest.param(DropReply(), Unavailable, id="reply"),
        pytest.param(CloseBefore(), StaleUser, id="request"),
    ],
)
def test_the_same_holds_for_an_account_stored_by_version_0_1(
    proxy: FaultProxy, lost: Any, error: type[Exception]
) -> None:
    # Its first write gives it a random version, so only the version tells whose write that was.
    user = as_stored_by_0_1(make_user())
    proxy.plan("UpdateItem", lost)

    def change_twice() -> None:
        for name in ("Bea", "Cid"):
            edit_profile(again(user), full_name=name)

    proxy.plan("UpdateItem", Meanwhile(change_twice))

    with pytest.raises(error):
        edit_profile(user, full_name="Ann")

    assert again(user).full_name == "Cid"


@pytest.mark.fault_of("moto", "ignores request tokens")
def test_a_change_that_a_deletion_followed_does_not_restore_the_account(proxy: FaultProxy) -> None:
    user = make_user()
    proxy.plan("TransactWriteItems", DropReply())
    proxy.plan("TransactWriteItems", Meanwhile(lambda: delete(again(user))))

    change_email(user, "new@example.org")

    assert stored_items() == {}


def test_a_session_ended_between_the_attempts_of_a_password_change_stays_ended(
    proxy: FaultProxy,
) -> None:
    user = make_user()
    mine = begun(user)
    proxy.plan("UpdateItem", DropReply())
    proxy.plan("UpdateItem", Meanwhile(lambda: sessions.end(again(user), mine)))

    change_password(read_for(user, mine), "another good password")

    assert stored_ids(user) == set()


# A link to a new email address --------------------------------------------------------------------


def test_the_second_of_two_who_follow_a_link_at_once_learns_the_former_address_too(
    proxy: FaultProxy,
) -> None:
    # The first one may have died before it sent the mail to the former address.
    user = waiting_user(email="old@example.org")
    proxy.plan("TransactWriteItems", Meanwhile(lambda: confirm_change(token_of(user))))

    confirmed = confirm_change(token_of(user))

    assert (confirmed.user.email, confirmed.former) == (NEW, "old@example.org")
    assert changes_of(user) == 2


def test_a_link_is_followed_although_the_account_changes_meanwhile(proxy: FaultProxy) -> None:
    user = waiting_user()
    proxy.plan("TransactWriteItems", Meanwhile(lambda: edit_profile(again(user), full_name="Ann")))

    confirmed = confirm_change(token_of(user))

    assert (confirmed.user.email, confirmed.user.full_name) == (NEW, "Ann")
    assert_guards_match_users()


def test_following_a_link_fails_if_every_attempt_meets_another_change(proxy: FaultProxy) -> None:
    user = waiting_user()
    for number in range(9):
        edit = partial(edit_profile, full_name=f"Ann {number}")
        proxy.plan("TransactWriteItems", Meanwhile(lambda edit=edit: edit(again(user))))

    with pytest.raises(StaleUser):
        confirm_change(token_of(user))

    proxy.forget()
    assert again(user).awaited_email == NEW
    assert_guards_match_users()


# Over HTTP ----------------------------------------------------------------------------------------


@each_loss
def test_a_sign_up_makes_one_account_and_signs_in(
    proxy: FaultProxy, client: Client, lost: Any
) -> None:
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    typed = form_values(
        client, "/accounts/signup/", username="Ann", email="ann@example.org", **passwords
    )
    proxy.forget()
    for operation in ("TransactWriteItems", "PutItem"):
        proxy.plan(operation, lost)

    response = client.post("/accounts/signup/", typed)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert all(proxy.count(each) >= 2 for each in ("TransactWriteItems", "PutItem"))
    assert signed_in_as(client) == "Ann"
    assert len(stored_items()) == 3
    assert_guards_match_users()


def test_two_sign_ins_at_once_that_upgrade_the_hash_both_succeed(
    proxy: FaultProxy, client: Client
) -> None:
    user = ann()
    other = Client()
    proxy.plan("UpdateItem", Meanwhile(lambda: sign_in(other, user)))

    sign_in(client, user)

    assert signed_in_as(client) == signed_in_as(other) == "Ann"
