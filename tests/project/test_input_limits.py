"""Values, addresses and headers that are too long get a clear answer."""

import importlib
import inspect
import re
from collections.abc import Iterator
from datetime import date
from typing import Any
from urllib.parse import urlencode

import pytest
from django import forms
from django.conf import settings
from django.test import Client, RequestFactory

from accounts.models import User
from dynamo.forms import ModelForm
from invoices.document.invoice import Seller
from invoices.models import CustomerItem, SellerProfile
from invoices.output import helper
from invoices.pages.customers import CustomerForm
from invoices.pages.forms import InvoiceForm
from invoices.pages.lineforms import SHOWN_LINES
from locks.lock import LEASE_SECONDS
from project.middleware import MOST_WAITING
from tests.commands import ROOT
from tests.factories import make_user
from uploads.contents import PART_BYTES

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
        for item in form.__mro__
        for name in inspect.signature(item.__init__).parameters  # type: ignore[misc]  # of a class
    }
    more: dict[str, Any] = {}
    if "user" in asked:
        more["user"] = User(pk="x", username="x")
    if "request" in asked:
        more["request"] = RequestFactory().get("/")
        more["request"].user = User(pk="x", username="x")
    if "profile" in asked:
        more["profile"] = SellerProfile("x")
    if "today" in asked:
        more["today"] = date(2026, 3, 14)
    if "seller" in asked:
        more |= {"seller": Seller("Ann"), "issued_on": date(2026, 3, 14)}
    if form is CustomerForm:
        stored = {name: {"S": "x"} for name in ("account", "id", "number", "name")}
        more["instance"] = CustomerItem.from_raw_data(stored)
    return form(data=values, **more)


@pytest.mark.parametrize("form", sorted(set(our_forms()), key=str), ids=lambda form: form.__name__)
def test_every_text_field_has_a_maximum_length(form: type[forms.BaseForm]) -> None:
    texts = {
        name
        for name, field in filled(form, {}).fields.items()
        if isinstance(field, (forms.CharField, forms.ChoiceField, forms.IntegerField))
    }
    if issubclass(form, ModelForm):
        # Its errors are those of the whole form.
        texts -= {"request_id", "version"}

    assert texts <= set(filled(form, dict.fromkeys(texts, LONG)).errors)
    assert texts <= set(filled(form, dict.fromkeys(texts, "1" * 100_000)).errors)


def longest(form: forms.BaseForm) -> dict[str, str]:
    """As much as a browser sends: texts of characters with the most bytes, and long numbers."""
    letter = "\N{CJK UNIFIED IDEOGRAPH-20000}"
    values = {
        form.add_prefix(name): letter * int(field.widget.attrs.get("maxlength", 0)) or "1" * 50
        for name, field in form.fields.items()
    }
    for line in getattr(getattr(form, "lines", None), "forms", []):
        values |= longest(line)
    return values


@pytest.mark.parametrize("form", sorted(set(our_forms()), key=str), ids=lambda form: form.__name__)
def test_what_the_fields_of_a_form_allow_is_read(form: type[forms.BaseForm]) -> None:
    lines = {f"lines-{SHOWN_LINES - 1}-unit": ""} if form is InvoiceForm else {}

    values = longest(filled(form, lines))

    assert len(values) < settings.DATA_UPLOAD_MAX_NUMBER_FIELDS - 20
    assert len(urlencode(values)) < settings.DATA_UPLOAD_MAX_MEMORY_SIZE - 100_000


#: What pages and files say of limits that the code has.
STATED = {
    "docs/configuration.md": (
        f"at most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE / 2**20} MB "
        f"and {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,} fields",
    ),
    "docs/deployment.md": (
        f"refuse bodies over {settings.DATA_UPLOAD_MAX_MEMORY_SIZE / 2**20} MB",
        f"up to {MOST_WAITING} hold pages that wait for their turn",
        f"`DJANGO_PAGES_AT_ONCE` ({settings.PAGES_AT_ONCE})",
        f"grow to {helper.MOST_BYTES // 2**20} MB",
    ),
    "docs/uploads.md": (
        f"Files over {PART_BYTES // 2**20} MB",
        f"wait, for {LEASE_SECONDS:.0f} seconds",
    ),
}


@pytest.mark.parametrize("page", STATED)
def test_pages_state_the_limits_of_the_code(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())

    assert [item for item in STATED[page] if item not in text] == []


def test_the_server_and_the_proxy_have_room_for_what_the_site_allows() -> None:
    nginx, unit = (
        (ROOT / "deploy" / name).read_text(encoding="utf-8")
        for name in ("nginx.conf", "site.service")
    )
    body = int(re.findall(r"client_max_body_size (\d+)k;", nginx)[0]) * 1024
    threads = int(re.findall(r"--blocking-threads (\d+)", unit)[0])

    # The site answers what is a little too large, with a page.
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert limit < body < limit * 1.1
    assert threads > settings.PAGES_AT_ONCE + MOST_WAITING
    assert settings.PAGES_AT_ONCE < settings.DYNAMODB_MAX_CONNECTIONS


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
