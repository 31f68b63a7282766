"""Values, addresses and headers that are too long get a clear answer."""

import importlib
import inspect
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from django import forms
from django.conf import settings
from django.test import Client, RequestFactory

from accounts.models import User
from dynamo.forms import ModelForm
from invoices.document.invoice import Seller
from tests.factories import make_user

TOO_MANY = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1
LONG = "x" * 100_000


def our_forms(base: type = forms.BaseForm) -> Iterator[type[forms.BaseForm]]:
    """Every form of the site that has fields."""
    importlib.import_module("project.urls")
    for form in base.__subclasses__():
        yield from our_forms(form)
        if form.__module__.startswith(("accounts.", "invoices.", "staff.")) and form.base_fields:
            yield form


def filled(form: type[forms.BaseForm], values: dict[str, str]) -> forms.BaseForm:
    """A form as it is sent, for some account."""
    asked = {
        name
        for each in form.__mro__
        for name in inspect.signature(each.__init__).parameters  # type: ignore[misc]  # of a class
    }
    more: dict[str, Any] = {}
    if "user" in asked:
        more["user"] = User(pk="x", username="x")
    if "request" in asked:
        more["request"] = RequestFactory().get("/")
        more["request"].user = User(pk="x", username="x")
    if "today" in asked:
        more["today"] = date(2026, 3, 14)
    if "seller" in asked:
        more |= {"seller": Seller("Ann"), "issued_on": date(2026, 3, 14)}
    return form(data=values, **more)


@pytest.mark.parametrize("form", sorted(set(our_forms()), key=str), ids=lambda form: form.__name__)
def test_every_text_field_has_a_maximum_length(form: type[forms.BaseForm]) -> None:
    texts = {
        name
        for name, each in filled(form, {}).fields.items()
        if isinstance(each, (forms.CharField, forms.ChoiceField, forms.IntegerField))
    }
    if issubclass(form, ModelForm):
        # Its errors are those of the whole form.
        texts -= {"request_id", "version"}

    assert texts <= set(filled(form, dict.fromkeys(texts, LONG)).errors)
    assert texts <= set(filled(form, dict.fromkeys(texts, "1" * 100_000)).errors)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("address", "status"),
    [
        (f"/{LONG}", 404),
        (f"/accounts/confirm/{LONG}/", 410),
        (f"/accounts/reset/{LONG}/{LONG}/", 200),
        (f"/?{LONG}", 200),
        (f"/accounts/login/?next=/{LONG}", 200),
        (f"/invoices/?customer={LONG}", 404),
        (f"/invoices/?before={'1' * 100_000}", 404),
        (f"/invoices/new/?from={LONG}", 404),
        (f"/invoices/?{'&'.join(map(str, range(TOO_MANY)))}", 400),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_long_address_is_answered(address: str, status: int) -> None:
    client = Client()
    client.force_login(make_user())

    assert client.get(address).status_code == status


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    "header",
    ["accept-language", "cookie", "referer", "user-agent", "x-forwarded-for", "x-csrftoken", "x-a"],
)
def test_a_long_header_changes_nothing(header: str) -> None:
    user = make_user()

    for value in (LONG, ",".join("1" for _ in range(10_000)), ";=" * 10_000):
        client = Client(headers={header: value})
        assert client.get("/accounts/login/").status_code == 200
        values = {"username": user.username, "password": LONG}
        assert client.post("/accounts/login/", values).status_code == 200
