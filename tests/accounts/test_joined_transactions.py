"""Operations that join the caller's transaction: all is written by its commit, or nothing."""

from __future__ import annotations

import pytest

from accounts import services
from accounts.exceptions import BadLink
from accounts.models import User
from accounts.signup import pending
from dynamo.exceptions import AlreadyDone
from dynamo.transactions import Transaction
from tests.factories import (
    PASSWORD,
    make_user,
    stored_items,
    stored_user,
)

pytestmark = pytest.mark.usefixtures("engine")


def test_a_pending_sign_up_joins_a_transaction() -> None:
    other, values = make_user(), {"username": "ann", "email": "ann@example.org"}
    token = pending.hold(values, password=PASSWORD, request_id="form")
    assert token

    with Transaction() as write:
        user = pending.release(token, write=write)
        services.edit_profile(other, write=write, full_name="Other")

    assert user.stored == stored_user(user.pk)
    assert user.is_confirmed
    assert User.get(other.pk).full_name == "Other"
    services.delete(User.get(user.pk))
    with pytest.raises(BadLink):
        pending.release(token)


def test_an_operation_that_another_caller_did_meanwhile_rejects_the_transaction() -> None:
    user, other = make_user(), make_user()
    services.deactivate(User.get(user.pk))
    before = stored_items()

    write = Transaction()
    services.deactivate(user, write=write)
    services.edit_profile(other, write=write, full_name="Other")
    with pytest.raises(AlreadyDone):
        write.commit()

    assert stored_items() == before
