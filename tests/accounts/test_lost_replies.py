"""The reply is lost, or the request: each operation still ends in success, and happens once."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.exceptions import StaleUser
from accounts.models import User
from accounts.services import change_email, delete, edit_profile
from dynamo.client.sending import send
from dynamo.exceptions import ConditionFailed, TransactionCancelled, Unavailable
from tests import engines
from tests.emptying import empty
from tests.factories import (
    PASSWORD,
    as_stored_by_0_1,
    assert_guards_match_users,
    changes_of,
    guard_owner,
    make_user,
    stored_items,
    stored_user,
)
from tests.faults.kinds import CloseBefore, DropReply, Meanwhile, TimeOut
from tests.faults.proxy import FaultProxy, through
from tests.operations import ANN, Operation, each_operation
from tests.pages import form_values, sign_in, signed_in_as

LOST = {"reply": DropReply(), "request": CloseBefore(), "patience": TimeOut()}

each_loss = pytest.mark.parametrize("lost", LOST.values(), ids=LOST)


@each_operation
@each_loss
def test_an_operation_happens_once_whatever_was_lost(
    proxy: FaultProxy, operation: Operation, lost: Any
) -> None:
    user = operation.given()
    proxy.forget()
    proxy.plan(operation.api, lost)

    operation.act(user)

    assert proxy.count(operation.api) >= 2
    operation.assert_done_once()


@each_operation
def test_the_object_in_hand_is_as_stored_after_a_lost_reply(
    proxy: FaultProxy, operation: Operation
) -> None:
    user = operation.given()
    proxy.plan(operation.api, DropReply())

    result = operation.act(user)

    in_hand = result if isinstance(result, User) else user
    assert in_hand is not None
    if operation.changes is not None:
        assert in_hand.to_dynamodb_dict() == stored_user(in_hand.pk)


# The engine forgets its request tokens, as DynamoDB does after 10 minutes -------------------------


@each_operation
def test_an_operation_recognises_its_own_work_when_the_engine_restarted_meanwhile(
    own_engine: tuple[engines.Durable, FaultProxy], operation: Operation
) -> None:
    engine, proxy = own_engine
    with through(proxy):
        empty(User.table())
        user = operation.given()
        proxy.forget()
        proxy.plan(operation.api, DropReply())
        proxy.plan(operation.api, Meanwhile(engine.restart))

        operation.act(user)

        assert proxy.count(operation.api) >= 2
        operation.assert_done_once()


@each_operation
def test_an_operation_reaches_an_engine_that_restarts_before_it_got_the_request(
    own_engine: tuple[engines.Durable, FaultProxy], operation: Operation
) -> None:
    engine, proxy = own_engine
    with through(proxy):
        empty(User.table())
        user = operation.given()
        proxy.forget()
        proxy.plan(operation.api, CloseBefore())
        proxy.plan(operation.api, Meanwhile(engine.restart))

        operation.act(user)

        operation.assert_done_once()


# Another acts between the lost reply and the second try -------------------------------------------


def test_a_change_that_another_change_followed_is_a_success_all_the_same(
    proxy: FaultProxy,
) -> None:
    user = make_user()
    proxy.plan("UpdateItem", DropReply())
    proxy.plan("UpdateItem", Meanwhile(lambda: edit_profile(User.get(user.pk), vat_id="GB1")))

    edit_profile(user, full_name="Ann")

    stored = User.get(user.pk)
    assert (stored.full_name, stored.vat_id, changes_of(user)) == ("Ann", "GB1", 2)
    assert user.version == stored.version


def test_a_change_that_was_perhaps_overwritten_is_not_called_refused(proxy: FaultProxy) -> None:
    user = make_user()
    proxy.plan("UpdateItem", DropReply())
    proxy.plan("UpdateItem", Meanwhile(lambda: edit_profile(User.get(user.pk), full_name="Bea")))

    with pytest.raises(Unavailable) as unknown:
        edit_profile(user, full_name="Ann")

    assert unknown.value.maybe_written
    stored = User.get(user.pk)
    assert (stored.full_name, changes_of(user)) == ("Bea", 2)


def test_a_change_whose_request_was_lost_is_refused_when_another_came_first(
    proxy: FaultProxy,
) -> None:
    user = make_user()
    proxy.plan("UpdateItem", CloseBefore())
    proxy.plan("UpdateItem", Meanwhile(lambda: edit_profile(User.get(user.pk), full_name="Bea")))

    with pytest.raises(StaleUser):
        edit_profile(user, full_name="Ann")

    stored = User.get(user.pk)
    assert (stored.full_name, changes_of(user)) == ("Bea", 1)


@pytest.mark.parametrize(
    ("lost", "error"),
    [
        pytest.param(DropReply(), Unavailable, id="reply"),
        pytest.param(CloseBefore(), StaleUser, id="request"),
    ],
)
def test_an_account_of_version_0_1_is_told_apart_likewise(
    proxy: FaultProxy, lost: Any, error: type[Exception]
) -> None:
    # Its first write here gives it a random version, so the version alone tells whose that was.
    user = as_stored_by_0_1(make_user())
    proxy.plan("UpdateItem", lost)

    def change_twice() -> None:
        for name in ("Bea", "Cid"):
            edit_profile(User.get(user.pk), full_name=name)

    proxy.plan("UpdateItem", Meanwhile(change_twice))

    with pytest.raises(error):
        edit_profile(user, full_name="Ann")

    assert User.get(user.pk).full_name == "Cid"


@pytest.mark.fault_of("moto", "ignores request tokens")
def test_a_change_that_a_deletion_followed_brings_nothing_back(proxy: FaultProxy) -> None:
    user = make_user()
    proxy.plan("TransactWriteItems", DropReply())
    proxy.plan("TransactWriteItems", Meanwhile(lambda: delete(User.get(user.pk))))

    change_email(user, "new@example.org")  # it was made, and what came later came later

    assert stored_items() == {}


@each_operation
def test_a_late_double_of_a_write_changes_nothing_of_what_came_since(
    proxy: FaultProxy, operation: Operation
) -> None:
    user = operation.given()
    proxy.forget()
    result = operation.act(user)
    (late,) = [seen.body for seen in proxy.seen if seen.operation == operation.api]
    if operation.changes is not None:
        user = result if isinstance(result, User) else user
        assert user is not None
        edit_profile(User.get(user.pk), business_name="Since")
    before = stored_items()

    if "ClientRequestToken" in late:
        late["ClientRequestToken"] = "forgotten"
    with pytest.raises((ConditionFailed, TransactionCancelled)):
        send(operation.api, late)

    assert stored_items() == before


# Over HTTP ----------------------------------------------------------------------------------------

SIGN_UP = {
    "username": "Ann",
    "email": "ann@example.org",
    "password1": PASSWORD,
    "password2": PASSWORD,
}


@each_loss
def test_a_sign_up_makes_one_account_and_signs_in_whatever_was_lost(
    proxy: FaultProxy, client: Client, lost: Any
) -> None:
    typed = form_values(client, "/accounts/signup/", **SIGN_UP)
    proxy.forget()
    for operation in ("TransactWriteItems", "UpdateItem", "PutItem"):
        proxy.plan(operation, lost)

    response = client.post("/accounts/signup/", typed)

    assert (response.status_code, response["Location"]) == (302, "/accounts/profile/")
    # At least: a machine under load may be too slow for the patience of this test's client.
    assert all(proxy.count(each) >= 2 for each in ("TransactWriteItems", "UpdateItem", "PutItem"))
    assert signed_in_as(client) == "Ann"
    assert len(stored_items()) == 3
    assert_guards_match_users()


@each_loss
@pytest.mark.parametrize("operation", ["GetItem", "UpdateItem", "PutItem"])
def test_a_sign_in_succeeds_whatever_was_lost(
    proxy: FaultProxy, client: Client, operation: str, lost: Any
) -> None:
    user = make_user()
    proxy.plan(operation, lost)

    response = sign_in(client, user)

    assert response.status_code == 302
    assert signed_in_as(client) == user.username
    assert User.get(user.pk).last_login is not None


def outdated_user() -> User:
    user = Operation("", "", lambda _user: None, lambda _user: True).given()
    assert user is not None
    return user


def test_who_signs_in_stays_so_though_the_reply_to_the_hash_upgrade_was_lost(
    proxy: FaultProxy, client: Client
) -> None:
    user = outdated_user()
    proxy.plan("UpdateItem", DropReply())

    sign_in(client, user)

    assert "$short$" not in User.get(user.pk).password
    assert signed_in_as(client) == user.username


def test_of_two_who_sign_in_at_once_under_an_old_hash_both_stay_signed_in(
    proxy: FaultProxy, client: Client
) -> None:
    user = outdated_user()
    other = Client()
    proxy.plan("UpdateItem", Meanwhile(lambda: sign_in(other, user)))

    sign_in(client, user)

    assert signed_in_as(client) == signed_in_as(other) == ANN["username"]


@each_loss
def test_an_address_is_changed_over_http_whatever_was_lost(
    proxy: FaultProxy, client: Client, lost: Any
) -> None:
    user = make_user()
    sign_in(client, user)
    proxy.plan("TransactWriteItems", lost)

    response = client.post("/accounts/email/", {"email": "new@example.org", "password": PASSWORD})

    assert response.status_code == 302
    assert guard_owner("email#new@example.org") == user.pk
    assert_guards_match_users()


@each_loss
def test_an_account_is_deleted_over_http_whatever_was_lost(
    proxy: FaultProxy, client: Client, lost: Any
) -> None:
    sign_in(client, make_user())
    proxy.plan("TransactWriteItems", lost)

    response = client.post("/accounts/delete/", {"password": PASSWORD})

    assert (response.status_code, response["Location"]) == (302, "/")
    assert stored_items() == {}
    assert signed_in_as(client) is None
