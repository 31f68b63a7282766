"""`dynamo.admin`, end to end over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import Client, override_settings

from dynamo.admin.models import LogEntry, journal_of, list_entries
from tests.dynamo.adminpages import PROJECT, content, opened
from tests.dynamo.desk.models import Customer
from tests.factories import make_user

pytestmark = pytest.mark.usefixtures("engine")

CUSTOMERS = "/admin/desk/customer/"


@pytest.fixture
def editor() -> Any:
    user = make_user()
    user.change(is_staff=True, is_superuser=True)
    return user


@pytest.fixture
def client(editor: Any) -> Iterator[Client]:
    with override_settings(**PROJECT):
        browser = Client()
        browser.force_login(editor, "accounts.backends.AccountBackend")
        yield browser


def entries(item: Any) -> list[LogEntry]:
    return list_entries(journal_of(item)).actions


def test_a_registered_model_is_added_listed_changed_and_deleted(
    client: Client, editor: Any
) -> None:
    assert run_checks(tags=["admin"]) == []
    added = client.post(
        f"{CUSTOMERS}add/",
        opened(client, f"{CUSTOMERS}add/") | {"email": "ann@example.org", "club": "chess"},
    )
    [ann] = Customer.scan()
    page = f"{CUSTOMERS}{ann.pk}/"
    assert (added.status_code, added.url) == (302, CUSTOMERS)
    listed = client.get(CUSTOMERS)
    assert "was added successfully" in listed.text
    assert "ANN@EXAMPLE.ORG" in content(listed.text)
    assert f'href="{page}change/"' in listed.text

    form = opened(client, f"{page}change/") | {"club": "go", "_reason": "She asked."}
    assert client.post(f"{page}change/", form).status_code == 302
    assert Customer.get(ann.pk).club == "go"
    history = content(client.get(f"{page}history/").text)
    assert "Changed club. She asked. 127.0.0.1" in history

    deleted = client.post(f"{page}delete/", opened(client, f"{page}delete/"))
    assert (deleted.status_code, deleted.url) == (302, CUSTOMERS)
    assert list(Customer.scan()) == []
    assert not Customer.is_taken(email="ann@example.org")
    assert [each.action for each in entries(ann)] == ["delete", "change", "add"]
    assert {each.by for each in entries(ann)} == {editor.pk}
    assert "My actions Deleted:" in content(client.get("/admin/").text)
