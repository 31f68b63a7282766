"""A value is declared once, and what was typed is cleaned once, whoever typed it where."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import phonenumbers
import pytest
from django.core.exceptions import ValidationError
from django.test import Client, override_settings

from accounts.attributes import Clean
from accounts.forms import AccountForm, ProfileForm
from accounts.models import VALUES, User
from accounts.personal_data import SHOWN
from accounts.services import register
from tests.commands import run
from tests.factories import make_user
from tests.pages import ANN, sign_up

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
