"""The rules of single values, each of which is declared once and cleaned once."""

import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import phonenumbers
import pytest
from django.core.exceptions import ValidationError
from django.test import Client, override_settings
from hypothesis import given, settings as hypothesis_settings, strategies as st

from accounts.attributes import (
    EMAIL,
    PHONE_NUMBER,
    USERNAME,
    Clean,
    mailbox_of,
    readable_phone_number,
)
from accounts.forms import AccountForm, ProfileForm
from accounts.models import VALUES, User
from accounts.personal_data import SHOWN
from accounts.services import register
from dynamo.auth.addresses import comparable_email
from dynamo.auth.usernames import as_uuid, comparable_username
from tests.commands import run
from tests.factories import make_user
from tests.pages import ANN, sign_up

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
        name = USERNAME.clean(text)
    except ValidationError:
        return

    comparable = comparable_username(name)
    assert len(f"userName#{comparable}".encode()) <= 2048
    assert not {"@", "#"} & set(comparable)
    assert as_uuid(name) is None


@hypothesis_settings(max_examples=30)
@given(st.emails())
def test_an_accepted_email_address_stays_the_same_in_capitals(address: str) -> None:
    with suppress(ValidationError):
        EMAIL.clean(address)
        local, _at, domain = address.rpartition("@")
        # Not the domain: ß in capitals is SS, and that is another domain.
        assert comparable_email(f"{local.upper()}@{domain}") == comparable_email(address)


@given(st.text())
def test_any_text_is_accepted_or_refused_without_another_error(text: str) -> None:
    for each in VALUES.values():
        with suppress(ValidationError):
            cleaned = each.clean(text)
            assert cleaned is None or str(cleaned).encode()
            assert each.clean(cleaned) == cleaned


#: Addresses that version 0.1 allowed.
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


def test_a_quoted_address_of_an_older_version_stays_valid() -> None:
    assert [EMAIL.clean(address) for address in QUOTED] == QUOTED


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
    stored = PHONE_NUMBER.clean("+44 (0)20 7946-0000")

    assert stored == "+442079460000"
    assert readable_phone_number(stored) == "+44 20 7946 0000"
    settings.ACCOUNTS_PHONE_REGION = "GB"
    assert PHONE_NUMBER.clean("020 7946 0000") == stored


# Cleaned once -------------------------------------------------------------------------------------


PHONE = ANN["phone_number"]


@pytest.fixture
def parsed(engine: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The phone numbers that were parsed."""
    parsed: list[str] = []
    parse = phonenumbers.parse

    def counted(number: str, *arguments: Any) -> Any:
        parsed.append(number)
        return parse(number, *arguments)

    monkeypatch.setattr(phonenumbers, "parse", counted)
    return parsed


def by_form(client: Client, _file: Path) -> None:
    assert sign_up(client).status_code == 302


def by_link(client: Client, _file: Path) -> None:
    with override_settings(ACCOUNTS_PREVENT_ENUMERATION=True):
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


@pytest.mark.parametrize("enter", [by_form, by_link, by_profile, by_import, by_command])
def test_what_was_typed_is_cleaned_once(
    client: Client, parsed: list[str], tmp_path: Path, enter: Callable[[Client, Path], None]
) -> None:
    enter(client, tmp_path / "users.csv")

    assert parsed == [PHONE]
    if enter is not by_link:
        assert User.named("ann").phone_number == "+12025550124"


def test_a_clean_text_is_stored_as_any_text_and_another_attribute_cleans_it(engine: str) -> None:
    name = VALUES["full_name"].clean(" not an address ")
    assert isinstance(name, Clean)

    with pytest.raises(ValidationError):
        register(username="ann", email=name)
    made = register(username="ann", email="ann@example.org", full_name=name)
    stored = User.get(made.pk).full_name
    assert (type(stored), stored) == (str, "not an address")


def test_every_value_is_on_a_form_and_in_the_export() -> None:
    fields = AccountForm.base_fields.keys() | ProfileForm.base_fields.keys()

    assert fields == VALUES.keys() <= set(SHOWN)
    assert all(
        field.label == VALUES[name].label
        for form in (AccountForm, ProfileForm)
        for name, field in form.base_fields.items()
    )
