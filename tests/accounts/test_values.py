"""The rules of single values."""

import unicodedata

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given, settings, strategies as st

from accounts.attributes import EMAIL, PHONE_NUMBER, USERNAME, mailbox_of, readable_phone_number
from accounts.models import VALUES
from dynamo.auth.addresses import comparable_email
from dynamo.auth.usernames import as_uuid, comparable_username

WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=150)


@given(WORDS)
def test_the_form_in_which_usernames_are_compared_is_stable(name: str) -> None:
    once = comparable_username(name)

    assert comparable_username(once) == once


@given(WORDS)
def test_case_and_width_do_not_make_another_username(name: str) -> None:
    comparable = comparable_username(name)

    assert comparable_username(unicodedata.normalize("NFKC", name)) == comparable
    assert comparable_username(name.casefold()) == comparable


@given(WORDS)
def test_every_accepted_username_fits_into_a_key(name: str) -> None:
    try:
        USERNAME.clean(name)
    except ValidationError:
        return

    assert len(f"userName#{comparable_username(name)}".encode()) <= 2048


@given(st.text())
def test_no_username_can_be_an_email_address_or_a_primary_key(text: str) -> None:
    try:
        name = USERNAME.clean(text)
    except ValidationError:
        return

    comparable = comparable_username(name)
    assert "@" not in comparable
    assert "#" not in comparable
    assert as_uuid(name) is None


@settings(max_examples=30)
@given(st.emails())
def test_an_accepted_email_address_stays_the_same_in_capitals(address: str) -> None:
    try:
        EMAIL.clean(address)
    except ValidationError:
        return

    local, _at, domain = address.rpartition("@")
    # Not the domain: ß in capitals is SS, and that is another domain.
    assert comparable_email(f"{local.upper()}@{domain}") == comparable_email(address)


@given(st.text())
def test_any_text_is_accepted_or_refused_without_another_error(text: str) -> None:
    for each in VALUES.values():
        try:
            cleaned = each.clean(text)
        except ValidationError:
            continue
        assert cleaned is None or str(cleaned).encode()
        assert each.clean(cleaned) == cleaned


def test_a_uuid_in_any_spelling_is_not_a_username() -> None:
    for name in ("8ec436a897e64e72aec2b47668e96a94", "{8ec436a8-97e6-4e72-aec2-b47668e96a94}"):
        with pytest.raises(ValidationError):
            USERNAME.clean(name)


def test_usual_and_unusual_email_addresses_are_accepted() -> None:
    for address in (
        *("ann@example.org", "ann+tag@sub.example.co.uk", "ann@bücher.example"),
        *("ann@r3---sn.example.com", "ann@[127.0.0.1]", "o'neil@example.org"),
    ):
        assert EMAIL.clean(f"  {address} ") == address


QUOTED = ['"ann"@example.org', r'"a\nn"@example.org', '""@example.org', '"a@b"@example.org']


def test_a_new_address_is_not_quoted_or_empty_and_has_no_control_characters() -> None:
    unprintable = ["ann\x00@example.org", "an\tn@example.org", "ann\x7f@example.org"]
    for address in [*QUOTED, "@example.org", *unprintable]:
        with pytest.raises(ValidationError, match=r"Enter a valid email address\."):
            VALUES["email"].clean(address)


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


def test_phone_numbers_are_stored_in_one_form_and_shown_in_another() -> None:
    stored = PHONE_NUMBER.clean("+44 (0)20 7946-0000")

    assert stored == "+442079460000"
    assert readable_phone_number(stored) == "+44 20 7946 0000"


def test_a_sharp_s_in_a_domain_is_not_a_double_s() -> None:
    sharp = comparable_email("ann@straße.de")

    assert sharp == comparable_email("ann@xn--strae-oqa.de") == comparable_email("ann@STRAẞE.de")
    assert sharp != comparable_email("ann@strasse.de")


def test_a_phone_number_with_an_extension_is_refused() -> None:
    with pytest.raises(ValidationError):
        PHONE_NUMBER.clean("+1 202-555-0124 ext. 55")
