"""Registering: an account and its guards in one transaction, once per request id."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.exceptions import AccountRequestReused, EmailTaken, UsernameTaken
from accounts.models import User
from tests.emailchanges import refusal_of
from tests.factories import assert_guards_match_users, guard_owner, make_user, stored_items

pytestmark = pytest.mark.usefixtures("engine")


def test_an_account_is_two_guards_and_a_user_item_with_the_attributes_of_the_contract() -> None:
    user = make_user(
        username="Ann", email="Ann@Example.org", full_name="Ann O.", phone_number="+1-202-555-0124"
    )

    items = stored_items()
    assert items.keys() == {user.pk, "userName#ann", "email#ann@example.org"}
    assert guard_owner("userName#ann") == guard_owner("email#ann@example.org") == user.pk
    item = items[user.pk]
    assert item["userName"] == {"S": "Ann"}
    assert item["fullName"] == {"S": "Ann O."}
    assert item["phoneNumber"] == {"S": "+12025550124"}
    assert item["isActive"] == {"BOOL": True}
    assert item["isStaff"] == {"BOOL": False}
    assert int(item["version"]["N"]).bit_length() == 53
    assert item["isSuperuser"] == {"BOOL": False}
    assert item["joinedAt"]["S"].startswith("20")


def test_a_value_is_taken_in_every_spelling_and_nothing_is_stored() -> None:
    make_user(username="bOb", email="A.B@bücher.example")

    for name in ("Bob", "ＢＯＢ", "BOB"):
        assert refusal_of(lambda name=name: make_user(username=name)) is UsernameTaken
    for address in ("a.b@xn--bcher-kva.example", "A.B@BÜCHER.Example"):
        assert refusal_of(lambda address=address: make_user(email=address)) is EmailTaken


def test_the_same_request_id_with_other_contents_is_refused() -> None:
    same = {"username": "ann", "email": "ann@example.org", "request_id": "same"}
    make_user(**same)

    others: list[dict[str, Any]] = [{"email": "bob@example.org"}, {"password": "another good one"}]
    for other in (*others, {"password": None}, {"is_staff": True}, {"is_superuser": True}):
        asked = same | other
        assert refusal_of(lambda asked=asked: make_user(**asked)) is AccountRequestReused


INVALID = {
    "username": [
        *("a#b", "a@b", "a b", "a\x00b", "a\u200fb", "🦆", "", "x" * 151, "ﬃ" * 51, "ﷺ"),
        "8ec436a8-97e6-4e72-aec2-b47668e96a94",
    ],
    "email": ["no address", "a@" + "b" * 250 + ".org", "a\x00@example.org", '"\x01"@example.org'],
    "full_name": ["a\x07b", "\u202egnorw", "\ud800"],
    "phone_number": ["12345", "+1"],
}


def test_an_invalid_value_is_refused() -> None:
    for name, values in INVALID.items():
        for value in values:
            with pytest.raises(ValidationError):
                make_user(**{name: value})

    assert stored_items() == {}


def test_long_and_unusual_values_are_stored_as_typed() -> None:
    for values in (
        {"username": "ＢＯＢ", "email": "Bob@Example.ORG"},
        {"username": "𠮷" * 150},
        {"username": "ΐ" * 150},
        {"username": "ﬃ" * 50},
        {"email": "a" * 64 + "@" + ".".join(["b" * 59] * 3) + ".example"},
        {"full_name": "Ünal Şahin 🦆 \u200fعلي"},
    ):
        read = User.get(make_user(**values).pk)
        assert {name: getattr(read, name) for name in values} == values
    assert_guards_match_users()


def test_a_phone_number_needs_no_country_code_if_a_region_is_set(settings: Any) -> None:
    settings.ACCOUNTS_PHONE_REGION = "GB"

    user = make_user(phone_number="020 7946 0000")

    assert user.phone_number == "+442079460000"
