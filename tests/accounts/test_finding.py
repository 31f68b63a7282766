"""Finding an account by username, email address or primary key."""

import pytest

from accounts.exceptions import UnknownUser
from accounts.models import User
from accounts.services import find_user
from dynamo._internal.client.sending import send
from tests.factories import make_user
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


def test_an_account_is_found_by_its_key_and_in_any_spelling_of_its_names() -> None:
    user = make_user(username="ann", email="ann@example.org")
    names = ("Ann", "ANN", "ａｎｎ", "ann@example.org", "ANN@Example.org")

    assert {find_user(who) for who in (user.pk, user.pk.upper(), *names)} == {user}
    unknown = ["nobody", "nobody@example.org", "@", "a@[", "", "x" * 3000, "userName#ann", "\x00"]
    for who in unknown:
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
