"""Finding an account by username, email address or primary key."""

from __future__ import annotations

import pytest

from accounts.exceptions import UnknownUser
from accounts.models import User
from accounts.services import find_user
from dynamo._internal.client.sending import send
from tests.factories import make_user
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("who", ["Ann", "ANN", "ａｎｎ", "ann@example.org", "ANN@Example.org"])
def test_an_account_is_found_in_any_spelling(who: str) -> None:
    user = make_user(username="ann", email="ann@example.org")

    assert find_user(who) == user


def test_an_account_is_found_by_its_key() -> None:
    user = make_user()

    assert find_user(user.pk) == find_user(user.pk.upper()) == user


@pytest.mark.parametrize(
    "who", ["nobody", "nobody@example.org", "@", "a@[", "", "x" * 3000, "userName#ann", "\x00"]
)
def test_an_unknown_name_finds_no_account(who: str) -> None:
    make_user(username="ann")

    with pytest.raises(UnknownUser):
        find_user(who)


@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
def test_finding_an_account_costs_two_requests_and_two_units(requests_sent: Requests) -> None:
    make_user(username="ann")
    requests_sent.clear()

    find_user("ann")

    assert requests_sent.operations == ["GetItem", "GetItem"]
    assert requests_sent.units == 2


def test_a_guard_whose_owner_has_another_value_finds_no_account() -> None:
    user = make_user(username="ann")
    guard = {"pk": {"S": "userName#stolen"}, "owner": {"S": user.pk}}
    send("PutItem", {"TableName": User.table(), "Item": guard})

    with pytest.raises(UnknownUser):
        find_user("stolen")
