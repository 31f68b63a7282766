"""Which usernames are allowed, and that accounts with older ones can keep them."""

import itertools
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.attributes import check_reserved
from accounts.models import User
from accounts.services import change_username, register
from dynamo.auth.usernames import _scripts as scripts, _table as table, check_new_username
from tests.commands import run
from tests.factories import PASSWORD, assert_guards_match_users, make_user, stored_items
from tests.pages import Page, sign_in, sign_up, signed_in_as

FINE = ["ann", "Ann_B.c+1-2", "ＡＮＮ", "josé", "Œuvre", "ırmak", "иван", "Іван2", "Άννα", "אבי"]
FINE += [
    "علي",
    "अजय",
    "田中",
    "たなかタロー",
    "田中Tanaka",
    "𠮷田",
    "김철수",
    "kim김",
    "ㄅㄆ漢字abc",
    "ﬁnn",
]

#: By the code of the error; among others fillers, a rune and letters of phonetic transcription,
#: mixed scripts, and names that are Cyrillic throughout.
REFUSED = {
    "character": [
        *(f"ann{filler}" for filler in "\u115f\u1160\u3164\uffa0"),
        *("\u3164", "annᚠ", "ᚠᚢᚦ", "ꟻann", "ᴀdmin", "ɑdmin"),
    ],
    "scripts": ["аdmin", "adminа", "αlpha", "αдам", "たな김", "田中Иван", "abcअ"],
    "lookalike": ["сосо", "РОСА-1", "ανα", "օոս", "๐", "b〇b"],
}


def code_of(name: str) -> str | None:
    try:
        check_new_username(name)
    except ValidationError as error:
        return error.code
    return None


def test_a_username_in_one_script_or_a_usual_mixture_is_allowed() -> None:
    assert {name: code_of(name) for name in FINE} == dict.fromkeys(FINE)


def test_a_username_that_can_be_confused_with_another_is_refused() -> None:
    for code, names in REFUSED.items():
        assert {name: code_of(name) for name in names} == dict.fromkeys(names, code)


def test_the_ranges_of_the_script_table_are_sorted_and_disjoint() -> None:
    ranges, lookalikes = table()

    assert all(first <= last for first, last, _scripts in ranges)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(ranges))
    assert all(scripts(char) for char in lookalikes)


# Where they hold ----------------------------------------------------------------------------------


def test_the_pages_refuse_such_a_username_at_its_field(engine: str, client: Client) -> None:
    ann = Client()
    sign_in(ann, make_user(username="ann"))
    before = stored_items()

    for name, error in (
        ("ann\u3164", "is not allowed in usernames."),
        ("аnn", "Use letters of one script only"),
        ("сосо", "This username looks like “coco”"),
        ("ＲＯＯＴ", "This username is reserved."),
    ):
        typed = {"username": name, "password": PASSWORD}
        for response in (sign_up(client, username=name), ann.post("/accounts/username/", typed)):
            page = Page(response)
            assert page.errors.keys() == {"username"}
            assert error in page.errors["username"][0]
    assert stored_items() == before


def test_the_operation_refuses_a_lookalike_and_an_operator_may_use_a_reserved_username(
    engine: str,
) -> None:
    with pytest.raises(ValidationError):
        register(username="сосо", email="coco@example.org")

    email = "--email=admin@example.org"
    assert run("createuser", "--username=admin", email, "--unusable-password")[1:] == ("", 0)
    assert run("changeusername", "admin", "support")[1:] == ("", 0)
    assert User.named("support").email == "admin@example.org"


LIKE_RESERVED = ["admın", "ADMİN", "admiṅ", "ádmin", "ađmin", "aðmin", "adm\u0131\u0307n"]
LIKE_RESERVED += ["røøt", "ro\u0338ot", "rooŧ", "rọọŧ", "ｒooｔ", "sŭpport", "support\u0301"]


def test_a_username_that_looks_like_a_reserved_one_is_reserved() -> None:
    for name in LIKE_RESERVED:
        with pytest.raises(ValidationError, match="is reserved"):
            check_reserved(name)
    for name in ("jørgen", "łukasz", "ırmak", "rooted", "иван", "admins"):
        check_new_username(name)
        check_reserved(name)


def test_the_reserved_names_are_a_setting_and_compared_in_the_same_way(settings: Any) -> None:
    settings.ACCOUNTS_RESERVED_USERNAMES = ["Büro", "шеф"]

    check_reserved("admin")
    for name in ("buro", "BÜRO", "bürø", "ШЕФ"):
        with pytest.raises(ValidationError):
            check_reserved(name)


# Accounts with older names ------------------------------------------------------------------------


def older_user(name: str) -> User:
    """An account with a username that an older version allowed."""
    user = make_user(username="before", email="older@example.org")
    user.change(username=name)
    return User.get(user.pk)


@pytest.mark.parametrize(
    ("name", "other_case"),
    [("сосо", "Сосо"), ("ann\u3164", "ANN\u3164"), ("admın", "ADMıN")],
    ids=ascii,
)
def test_an_account_with_an_older_username_can_still_be_used(
    engine: str, client: Client, name: str, other_case: str
) -> None:
    user = older_user(name)

    sign_in(client, user)
    assert signed_in_as(client) == name
    assert User.named(name).pk == user.pk
    edited = client.post("/accounts/profile/", {"full_name": "Somebody Else"})
    assert edited.status_code == 302
    typed = {"username": other_case, "password": PASSWORD}
    assert client.post("/accounts/username/", typed).status_code == 302

    stored = User.get(user.pk)
    assert (stored.username, stored.full_name) == (other_case, "Somebody Else")
    assert_guards_match_users()


def test_a_change_of_case_must_keep_the_rules(engine: str) -> None:
    user = make_user(username="кот")

    with pytest.raises(ValidationError, match="looks like “KOT”"):
        change_username(user, "КОТ")

    assert User.get(user.pk).username == "кот"
