"""The rules of single values, each of which is declared once."""

import itertools
import sys
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from hypothesis import given, strategies as st

from accounts.attributes import Email, check_reserved, mailbox_of, readable_phone_number
from accounts.forms import AccountForm, ProfileForm
from accounts.models import User
from accounts.personal_data import shown_attributes
from accounts.services import change_email, change_username, register
from dynamo.auth.addresses import comparable_email
from dynamo.auth.usernames import (
    _scripts as scripts,
    _table as table,
    as_uuid,
    check_new_username,
    clean_username,
    comparable_username,
)
from dynamo.model.unique import casefolded
from tests.commands import run
from tests.factories import PASSWORD, assert_guards_match_users, make_user, stored_items
from tests.pages import ANN, Page, sign_in, sign_up, signed_in_as

VALUES: Any = User.typed_attributes()

WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=150)


@given(WORDS)
def test_case_and_width_do_not_make_another_username(name: str) -> None:
    comparable = comparable_username(name)

    for same in (comparable, unicodedata.normalize("NFKC", name), name.casefold()):
        assert comparable_username(same) == comparable


@given(WORDS | st.text())
def test_a_username_fits_into_a_key_and_is_neither_an_email_address_nor_a_primary_key(
    text: str,
) -> None:
    try:
        name = VALUES["username"].variant(rule=clean_username).clean(text)
    except ValidationError:
        return

    comparable = comparable_username(name)
    assert len(f"userName#{comparable}".encode()) <= 2048
    assert not {"@", "#"} & set(comparable)
    assert as_uuid(name) is None


@given(st.emails())
def test_an_accepted_email_address_stays_the_same_in_capitals(address: str) -> None:
    with suppress(ValidationError):
        Email().clean(address)
        local, _at, domain = address.rpartition("@")
        # Not the domain: ß in capitals is SS, and that is another domain.
        assert comparable_email(f"{local.upper()}@{domain}") == comparable_email(address)


@given(st.text())
def test_any_text_is_accepted_or_refused_without_another_error(text: str) -> None:
    for name in VALUES:
        with suppress(ValidationError):
            cleaned = User.cleaned(**{name: text})
            assert cleaned[name] is None or str(cleaned[name]).encode()
            assert User.cleaned(**cleaned) == cleaned


#: Addresses that no account may get.
QUOTED = ['"ann"@example.org', r'"a\nn"@example.org', '""@example.org', '"a@b"@example.org']

VALID = {
    "username": ["ＢＯＢ", "𠮷" * 150, "ΐ" * 150, "ﬃ" * 50],
    "email": [
        *("ann@example.org", "Ann+tag@sub.Example.co.uk", "ann@bücher.example"),
        *("ann@r3---sn.example.com", "ann@[127.0.0.1]", "o'neil@example.org"),
        "a" * 64 + "@" + ".".join(["b" * 59] * 3) + ".example",
    ],
    "full_name": ["Ünal Şahin 🦆 \u200fعلي"],
}
INVALID = {
    "username": [
        *("a#b", "a@b", "a b", "a\x00b", "a\u200fb", "🦆", "", "x" * 151, "ﬃ" * 51, "ﷺ"),
        "8ec436a8-97e6-4e72-aec2-b47668e96a94",
        *("8ec436a897e64e72aec2b47668e96a94", "{8ec436a8-97e6-4e72-aec2-b47668e96a94}"),
    ],
    "email": [
        *("no address", "@example.org", "a@" + "b" * 250 + ".org", *QUOTED),
        *(f"an{control}n@example.org" for control in "\x00\t\x7f"),
    ],
    "full_name": ["a\x07b", "\u202egnorw", "\ud800"],
    "phone_number": ["12345", "+1", "+1 202-555-0124 ext. 55"],
}


def test_a_value_is_stored_as_it_was_typed_or_refused() -> None:
    for name, texts in VALID.items():
        assert [VALUES[name].clean(f"  {text} ") for text in texts] == texts
    for name, texts in INVALID.items():
        for text in texts:
            with pytest.raises(ValidationError):
                VALUES[name].clean(text)


def folds_into_ascii(char: str) -> bool:
    forms = (char.casefold(), unicodedata.normalize("NFC", char), casefolded(char))
    return any(map(str.isascii, "".join(forms)))


def test_a_new_address_has_no_letter_that_folds_into_ascii() -> None:
    # Of all characters beyond ASCII; some of them fold into more than one letter.
    folding = [char for char in map(chr, range(0x80, sys.maxunicode + 1)) if folds_into_ascii(char)]
    assert {*"ſ\u212aİßﬁ"} <= {*folding}
    codes = {}
    for char in folding:
        with pytest.raises(ValidationError) as refused:
            VALUES["email"].clean(f"s{char}m@example.org")
        codes[char] = refused.value.code
    # Django's validator refuses the others, and allows one that does not fold.
    assert {char for char, code in codes.items() if code == "character"} == {*"ſ\u212aİ"}
    assert VALUES["email"].clean("sım@example.org") == "sım@example.org"
    # Accounts that have one keep it, and no other account can have what it is compared as.
    assert Email().clean("ſam@example.org") == "ſam@example.org"
    assert comparable_email("ſÉ@example.org") == comparable_email("sé@example.org")


def test_each_way_to_a_new_address_says_at_its_field_why_it_is_refused(
    engine: str, client: Client, tmp_path: Path, settings: Any
) -> None:
    user = make_user(username="ann")
    sign_in(client, user)
    before, ways = stored_items(), {}
    address, said = "ſam@example.org", "The character “ſ” is not allowed in email addresses."

    for mode in ("immediate", "confirm"):
        settings.ACCOUNTS_EMAIL_CHANGE = mode
        typed = {"email": address, "password": PASSWORD}
        ways[f"change, {mode}"] = Page(client.post("/accounts/email/", typed)).errors["email"]
    ways["sign-up"] = Page(sign_up(Client(), username="sam", email=address)).errors["email"]
    for create in (register, User.objects.create_user, partial(change_email, user)):
        names = {} if isinstance(create, partial) else {"username": "sam"}
        with pytest.raises(ValidationError) as error:
            create(email=address, **names)
        ways[str(create)] = error.value.messages
    for name in ("createuser", "createsuperuser"):
        options = ("--username=sam", f"--email={address}", "--password-stdin")
        ways[name] = [run(name, *options, stdin=f"{PASSWORD}\n")[1]]
    ways["changeemail"] = [run("changeemail", "ann", address)[1]]
    file = tmp_path / "users.csv"
    file.write_text(f"username,email\nsam,{address}\n", encoding="utf-8")
    run("importusers", str(file))
    ways["importusers"] = [(tmp_path / "users.rejected.csv").read_text(encoding="utf-8")]

    assert [way for way, texts in ways.items() if said not in " ".join(texts)] == []
    assert stored_items() == before


def test_an_account_can_keep_a_quoted_address() -> None:
    assert [Email().clean(address) for address in QUOTED] == QUOTED


def test_the_mailbox_of_an_address_has_no_quotes_and_no_tag() -> None:
    mailboxes = {
        "Ann@Example.org": "ann@example.org",
        '"ann"@example.org': "ann@example.org",
        r'"a\nn"@example.org': "ann@example.org",
        r'"A\N\N"@EXAMPLE.org': "ann@example.org",
        "ann+shop@example.org": "ann@example.org",
        '"ann+shop"@example.org': "ann@example.org",
        "+shop@example.org": "+shop@example.org",
        "ann@bücher.example": "ann@xn--bcher-kva.example",
        "a.nn@example.org": "a.nn@example.org",
        '"ann b"@example.org': "ann b@example.org",
        r'"a\\n"@example.org': r"a\n@example.org",
    }
    assert {address: mailbox_of(address) for address in mailboxes} == mailboxes


def test_a_phone_number_is_stored_in_one_form_and_needs_its_country_code_unless_a_region_is_set(
    settings: Any,
) -> None:
    attribute = VALUES["phone_number"]
    stored = attribute.clean("+44 (0)20 7946-0000")

    assert stored == "+442079460000"
    assert readable_phone_number(stored) == "+44 20 7946 0000"
    settings.ACCOUNTS_PHONE_REGION = "GB"
    assert attribute.clean("020 7946 0000") == stored


# Each way in --------------------------------------------------------------------------------------


PHONE = ANN["phone_number"]


def by_form(client: Client, _file: Path) -> None:
    assert sign_up(client).status_code == 302


def by_profile(client: Client, _file: Path) -> None:
    client.force_login(make_user(username="ann"))
    assert client.post("/accounts/profile/", {"phone_number": PHONE}).status_code == 302


def by_import(_client: Client, file: Path) -> None:
    file.write_text(f"username,email,phone_number\nann,ann@example.org,{PHONE}\n")
    assert run("importusers", str(file))[1:] == ("", 0)


def by_command(_client: Client, _file: Path) -> None:
    options = ["--email=ann@example.org", f"--phone-number={PHONE}", "--unusable-password"]
    assert run("createuser", "--username=ann", *options)[1:] == ("", 0)


@pytest.mark.parametrize("enter", [by_form, by_profile, by_import, by_command])
def test_what_was_typed_is_cleaned(
    engine: str, client: Client, tmp_path: Path, enter: Callable[[Client, Path], None]
) -> None:
    enter(client, tmp_path / "users.csv")

    assert User.named("ann").phone_number == "+12025550124"


def test_every_value_is_on_a_form_and_in_the_export() -> None:
    sign_up = AccountForm().fields
    fields = sign_up.keys() | ProfileForm.base_fields.keys()

    assert fields == VALUES.keys() <= set(shown_attributes())
    assert all(
        field.label == VALUES[name].label
        for of_form in (sign_up, ProfileForm.base_fields)
        for name, field in of_form.items()
    )


# Usernames ----------------------------------------------------------------------------------------


FINE = ["ann", "Ann_B.c+1-2", "ＡＮＮ", "josé", "Œuvre", "ırmak", "иван", "Іван2", "Άννα", "אבי"]
FINE += ["علي", "अजय", "ﬁnn", "田中", "たなかタロー", "田中Tanaka", "𠮷田", "김철수", "kim김"]
FINE += ["ㄅㄆ漢字abc"]

#: By the code of the error: names with fillers, runes or phonetic letters, names in several
#: scripts, and names of which every letter looks like a Latin one.
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


def test_pages_show_at_the_field_why_a_username_is_refused(engine: str, client: Client) -> None:
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


def older_user(name: str) -> User:
    """An account with a username that earlier rules allowed."""
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
