"""Registering: an account and its guards, all or nothing, once."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.exceptions import EmailTaken, RequestIdUsed, UsernameTaken
from accounts.models import User
from accounts.services import REQUEST_IDS, change_email, delete, register
from dynamo.exceptions import Refused
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    guard_owner,
    make_user,
    stored_items,
    stored_user,
)
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


def test_an_account_is_one_user_item_and_two_guards() -> None:
    user = make_user(username="Ann", email="Ann@Example.org")

    assert stored_items().keys() == {user.pk, "userName#ann", "email#ann@example.org"}
    assert guard_owner("userName#ann") == guard_owner("email#ann@example.org") == user.pk


def test_the_item_has_the_attributes_of_the_contract() -> None:
    user = make_user(
        username="Ann", email="ann@example.org", full_name="Ann O.", phone_number="+1-202-555-0124"
    )

    item = stored_user(user.pk)
    assert item is not None
    assert item["userName"] == {"S": "Ann"}
    assert item["fullName"] == {"S": "Ann O."}
    assert item["phoneNumber"] == {"S": "+12025550124"}
    assert item["isActive"] == {"BOOL": True}
    assert item["isStaff"] == {"BOOL": False}
    assert int(item["version"]["N"]).bit_length() > 60
    assert item["isSuperuser"] == {"BOOL": False}
    assert item["joinedAt"]["S"].startswith("20")


def test_what_was_typed_is_what_is_kept() -> None:
    user = make_user(username="ＢＯＢ", email="Bob@Example.ORG")

    read = User.get(user.pk)
    assert (read.username, read.email) == ("ＢＯＢ", "Bob@Example.ORG")


@pytest.mark.parametrize("name", ["Bob", "bob", "ＢＯＢ", "BOB"])
def test_spellings_of_one_user_name_are_one_name(name: str) -> None:
    make_user(username="bOb")

    with pytest.raises(UsernameTaken):
        make_user(username=name)


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ("A.B@Example.ORG", "a.b@example.org"),
        ("ann@bücher.example", "ann@xn--bcher-kva.example"),
        ("ann@xn--bcher-kva.example", "ANN@BÜCHER.example"),
    ],
)
def test_spellings_of_one_address_are_one_address(held: str, asked: str) -> None:
    make_user(email=held)

    with pytest.raises(EmailTaken):
        make_user(email=asked)


def test_a_refusal_writes_nothing() -> None:
    make_user(username="ann")
    before = stored_items()

    with pytest.raises(UsernameTaken):
        make_user(username="ann", email="other@example.org")

    assert stored_items() == before


def test_both_values_taken_are_both_reported_after_one_request(requests_sent: Requests) -> None:
    make_user(username="ann")
    make_user(email="bob@example.org")
    requests_sent.clear()

    with pytest.raises(Refused) as refused:
        register(username="Ann", email="BOB@example.org", password=PASSWORD)

    assert {type(error) for error in refused.value.exceptions} == {UsernameTaken, EmailTaken}
    assert requests_sent.operations == ["TransactWriteItems"]


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
def test_registering_costs_one_request_and_six_units(requests_sent: Requests) -> None:
    make_user()

    assert requests_sent.operations == ["TransactWriteItems"]
    assert requests_sent.units == 6


def test_the_key_follows_from_the_request_id() -> None:
    user = make_user(request_id="order-7")

    assert user.pk == str(uuid.uuid5(REQUEST_IDS, "order-7"))


def test_the_same_request_makes_one_account_and_gets_one_answer() -> None:
    values = {"username": "ann", "email": "ann@example.org", "request_id": "same"}
    first = make_user(**values)

    second = make_user(**values)

    assert second.pk == first.pk
    assert second.date_joined == first.date_joined
    assert len(stored_items()) == 3


@pytest.mark.parametrize(
    "other",
    [
        {"username": "bob"},
        {"email": "bob@example.org"},
        {"password": "another good password"},
        {"password": None},
        {"is_staff": True},
        {"is_superuser": True},
    ],
)
def test_the_same_request_id_with_other_contents_is_refused(other: dict[str, Any]) -> None:
    values = {"username": "ann", "email": "ann@example.org", "request_id": "same"}
    make_user(**values)
    before = stored_items()

    with pytest.raises(RequestIdUsed):
        make_user(**(values | other))

    assert stored_items() == before


def test_the_same_request_after_the_address_changed_is_refused() -> None:
    values = {"username": "ann", "email": "ann@example.org", "request_id": "same"}
    change_email(make_user(**values), "new@example.org")

    with pytest.raises(RequestIdUsed):
        make_user(**values)

    assert_guards_match_users()


def test_a_deleted_accounts_values_are_free_again() -> None:
    delete(make_user(username="ann", email="ann@example.org"))

    again = make_user(username="ann", email="ann@example.org")

    assert guard_owner("userName#ann") == again.pk


@pytest.mark.parametrize(
    "values",
    [
        {"username": "a#b"},
        {"username": "a@b"},
        {"username": "a b"},
        {"username": "a\x00b"},
        {"username": "a\u200fb"},
        {"username": "🦆"},
        {"username": ""},
        {"username": "x" * 151},
        {"username": "ﬃ" * 51},
        {"username": "ﷺ"},
        {"username": "8ec436a8-97e6-4e72-aec2-b47668e96a94"},
        {"email": "no address"},
        {"email": "a@" + "b" * 250 + ".org"},
        {"email": "a\x00@example.org"},
        {"email": '"\x01"@example.org'},
        {"full_name": "a\x07b"},
        {"full_name": "\u202egnorw"},
        {"full_name": "\ud800"},
        {"phone_number": "12345"},
        {"phone_number": "+1"},
    ],
)
def test_a_value_that_breaks_its_rule_is_refused(values: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        make_user(**values)

    assert stored_items() == {}


@pytest.mark.parametrize(
    "values",
    [
        {"username": "𠮷" * 150},
        {"username": "ΐ" * 150},
        {"username": "ﬃ" * 50},
        {"email": "a" * 64 + "@" + ".".join(["b" * 59] * 3) + ".example"},
        {"full_name": "Ünal Şahin 🦆 \u200fعلي"},
    ],
)
def test_long_and_strange_values_are_kept_as_they_are(values: dict[str, str]) -> None:
    user = make_user(**values)

    read = User.get(user.pk)
    assert {name: getattr(read, name) for name in values} == values
    assert_guards_match_users()


def test_a_phone_number_needs_no_country_code_where_a_region_is_set(settings) -> None:
    settings.ACCOUNTS_PHONE_REGION = "GB"

    user = make_user(phone_number="020 7946 0000")

    assert user.phone_number == "+442079460000"


@pytest.mark.fault_of("moto", "does not isolate transactions")
def test_one_address_has_one_winner_among_eight_rivals() -> None:
    def attempt(n: int) -> str:
        try:
            register(username=f"rival{n}", email="prize@example.com", password=PASSWORD)
        except EmailTaken:
            return "refused"
        return "registered"

    with ThreadPoolExecutor(8) as pool:
        outcomes = sorted(pool.map(attempt, range(8)))

    assert outcomes == ["refused"] * 7 + ["registered"]
    assert_guards_match_users()


@pytest.mark.fault_of("moto", "does not isolate transactions")
def test_one_request_sent_by_eight_threads_makes_one_account() -> None:
    def attempt(n: int) -> str:
        return str(make_user(username="ann", email="a@example.org", request_id="same").pk)

    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(attempt, range(8)))

    assert len(keys) == 1
    assert_guards_match_users()
