"""Accounts as models of the library's own admin, although their errors are those of the site."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.admin.sites import all_sites
from django.test import RequestFactory

from accounts.models import User
from dynamo import admin
from tests.factories import make_user
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy, through


@pytest.fixture
def users() -> Iterator[admin.ModelAdmin]:
    site = admin.AdminSite()
    yield admin.UserAdmin(User, site)
    all_sites.discard(site)


@pytest.mark.parametrize(
    ("typed", "meanwhile", "errors"),
    [
        ({"username": "BOB"}, None, {"username": "unique"}),
        ({"email": "bob@example.org"}, None, {"email": "unique"}),
        ({}, lambda ann: ann.change(business_name="B"), {"__all__": "stale"}),
        ({}, lambda ann: ann.delete(), {"__all__": "deleted"}),
    ],
)
def test_a_form_of_an_account_shows_why_its_change_was_refused(
    typed: dict[str, str],
    meanwhile: Callable[[User], None] | None,
    errors: dict[str, str],
    users: Any,
    engine: str,
) -> None:
    make_user(username="bob", email="bob@example.org")
    ann, boss = make_user(username="ann"), make_user(is_staff=True, is_superuser=True)
    request: Any = RequestFactory().get("/")
    request.user = boss
    shown = users.changeform_view(request, ann.pk).context_data["adminform"].form
    values = {each.html_name: each.value() or "" for each in shown if each.value() is not False}
    request = RequestFactory().post("/", values | {"full_name": "Ann B."} | typed)
    request.user = boss

    with FaultProxy(engine) as proxy, through(proxy):
        if meanwhile:
            proxy.plan("TransactWriteItems", Meanwhile(lambda: meanwhile(User.get(ann.pk))))
        refused = users.changeform_view(request, ann.pk)

    found = refused.context_data["adminform"].form.errors.as_data()
    assert {name: each.code for name, [each, *_] in found.items()}.items() >= errors.items()
    assert User.named("bob").pk != ann.pk
