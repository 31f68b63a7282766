"""A value is declared once, and what was typed is cleaned once, whoever typed it where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import phonenumbers
import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.attributes import Clean
from accounts.forms import AccountForm, ProfileForm
from accounts.models import VALUES, User
from accounts.personal_data import SHOWN
from accounts.services import edit_profile, register
from tests.commands import run
from tests.factories import PASSWORD, make_user
from tests.pages import form_values, sign_in

URL = "/accounts/signup/"
PHONE = "+1 202-555-0124"
ANN = {
    "username": "ann",
    "email": "ann@example.org",
    "phone_number": PHONE,
    "password1": PASSWORD,
    "password2": PASSWORD,
}


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


@pytest.mark.parametrize("held", [False, True], ids=["at once", "held"])
def test_a_sign_up_is_cleaned_once(
    client: Client, settings: Any, parsed: list[str], held: bool
) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = held

    assert client.post(URL, form_values(client, URL, **ANN)).status_code == 302

    assert parsed == [PHONE]


def test_a_profile_is_cleaned_once(client: Client, parsed: list[str]) -> None:
    sign_in(client, ann := make_user(username="ann"))

    assert client.post("/accounts/profile/", {"phone_number": PHONE}).status_code == 302

    assert parsed == [PHONE]
    assert User.get(ann.pk).phone_number == "+12025550124"


def test_an_imported_row_is_cleaned_once(parsed: list[str], tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_text(f"username,email,phone_number\nann,ann@example.org,{PHONE}\n")

    assert run("importusers", str(file))[1:] == ("", 0)

    assert parsed == [PHONE]
    assert User.named("ann").phone_number == "+12025550124"


def test_createuser_cleans_once(parsed: list[str]) -> None:
    options = ["--email=ann@example.org", f"--phone-number={PHONE}", "--unusable-password"]

    assert run("createuser", "--username=ann", *options)[1:] == ("", 0)

    assert parsed == [PHONE]


def test_a_text_that_another_attribute_has_cleaned_is_cleaned(engine: str) -> None:
    name = VALUES["full_name"].clean("not an address")
    assert isinstance(name, Clean)

    with pytest.raises(ValidationError):
        register(username="ann", email=name)
    assert register(username="ann", email="ann@example.org", full_name=name).full_name == name


def test_a_clean_text_is_stored_as_any_text(engine: str) -> None:
    ann = make_user(username="ann")
    edit_profile(ann, business_name=VALUES["business_name"].clean(" Ann Ltd "))

    assert type(User.get(ann.pk).business_name) is str


def test_every_value_is_on_a_form_and_in_the_export() -> None:
    fields = AccountForm.base_fields.keys() | ProfileForm.base_fields.keys()

    assert fields == VALUES.keys() <= set(SHOWN.values())
    assert all(
        field.label == VALUES[name].label
        for form in (AccountForm, ProfileForm)
        for name, field in form.base_fields.items()
    )
