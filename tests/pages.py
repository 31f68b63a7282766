"""What a visitor sees on a page: fields, labels, errors, messages and text."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.core import signing
from django.http import HttpResponse
from django.test import Client

from accounts.forms import SignUpForm
from accounts.models import User
from accounts.pages.keptforms import OWNER
from dynamo.cache.items import CacheItem
from dynamo.middleware import TOKEN
from tests.factories import PASSWORD
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy, through
from tests.items import scanned

_NOT_CHOSEN = re.compile(r"<option(?![^>]* selected)[^>]*>[^<]*</option>")


class Page(HTMLParser):
    """A page of the site, parsed, without the options that are not chosen."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__()
        #: By name: the attributes of each field. The text of a text area is its `value`.
        self.fields: dict[str, dict[str, str]] = {}
        #: The ids of the fields that have a label.
        self.labels: set[str] = set()
        #: The errors at each field; under `""` those of the whole form.
        self.errors: dict[str, list[str]] = {}
        self.messages: list[str] = []
        self.text = ""
        self.tags: set[str] = set()
        self._into: list[str] | None = None
        self._area: dict[str, str] | None = None
        self._errors_of: str | None = None
        # The footer of every page has a form of its own, which switches the language.
        self._at_foot = False
        # Parsing hundreds of countries and currencies would take most of the time.
        self.feed(_NOT_CHOSEN.sub("", response.content.decode()))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        classes = values.get("class", "").split()
        self.tags.add(tag)
        self._at_foot |= tag == "footer"
        if tag in {"input", "textarea"} and "name" in values and not self._at_foot:
            self.fields[values["name"]] = values
            self._area = values if tag == "textarea" else None
        elif tag == "label":
            self.labels.add(values.get("for", ""))
        elif tag == "ul" and "errorlist" in classes:
            self._errors_of = values.get("id", "").removeprefix("id_").removesuffix("_error")
        elif tag == "li" and self._errors_of is not None:
            self._into = self.errors.setdefault(self._errors_of, [])
            self._into.append("")
        elif tag == "li" and {"success", "info", "warning", "error"} & set(classes):
            # Of the admin.
            self._into = self.messages
            self._into.append("")
        elif tag == "p" and "message" in classes:
            self._into = self.messages
            self._into.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "ul":
            self._errors_of = None
        if tag in {"li", "p"}:
            self._into = None
        if tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._into is not None:
            self._into[-1] += data
        if self._area is not None:
            self._area["value"] = self._area.get("value", "") + data

    def value(self, name: str) -> str:
        """The value of a field, as a browser reads it."""
        value = self.fields[name].get("value", "").replace("\r\n", "\n")
        # A text area's first line break belongs to the markup.
        return value.removeprefix("\n") if "rows" in self.fields[name] else value

    def autofocused(self) -> list[str]:
        """The names of the fields with the attribute `autofocus`."""
        return [name for name, attrs in self.fields.items() if "autofocus" in attrs]


def form_values(client: Client, url: str, **values: Any) -> dict[str, Any]:
    """The form at `url` as a visitor sends it after typing `values`."""
    page = Page(client.get(url))
    shown = {name: page.value(name) for name in page.fields if name not in {TOKEN, OWNER}}
    return shown | values


SIGN_UP = "/accounts/signup/"
SIGN_IN = "/accounts/login/"
PROFILE = "/accounts/profile/"
RESET = "/accounts/password_reset/"
REMINDER = "/accounts/username_reminder/"


def new_account(username: str, password: str = PASSWORD) -> dict[str, str]:
    """The values of a sign-up form that must be typed."""
    return {
        "username": username,
        "email": f"{username}@example.org",
        "password1": password,
        "password2": password,
    }


#: What Ann types in the sign-up form.
ANN = new_account("Ann") | {
    "email": "ann@example.org",
    "full_name": "Ann Example",
    "phone_number": "+1 202-555-0124",
}


def sign_up(client: Client, **typed: Any) -> Any:
    """Open and send the sign-up form, as Ann unless something else is typed."""
    return client.post(SIGN_UP, form_values(client, SIGN_UP, **(ANN | typed)))


def sign_in(client: Client, user: User, password: str = PASSWORD) -> HttpResponse:
    """Send the sign-in form."""
    return client.post("/accounts/login/", {"username": user.username, "password": password})


def let_in(user: User) -> Client:
    """A browser that is signed in."""
    client = Client()
    client.force_login(user)  # type: ignore[arg-type]  # the stubs want a model
    return client


def arrive(client: Client, user: User) -> None:
    """Sign in without the form, and open a page, so that the browser has all cookies."""
    client.force_login(user)  # type: ignore[arg-type]  # the stubs want a model
    assert client.get("/accounts/username/").status_code == 200


def signed_in_as(client: Client) -> str | None:
    """The username that the pages show to this visitor; None for an anonymous one."""
    return shown_user(client.get("/"))


def shown_user(response: HttpResponse) -> str | None:
    """The username in the header of a page; None on one for anonymous visitors."""
    shown = re.search(r'class="who"[^>]*><bdi>(.*?)</bdi>', response.content.decode())
    return html.unescape(shown[1]) if shown else None


def stored_sessions() -> list[dict[str, Any]]:
    """The stored sessions: items of the cache that are neither counters of limits nor deleted."""
    return [item for item in _cached() if "N" not in item.get("value", {"N": ""})]


def stored_counts() -> list[dict[str, Any]]:
    """The items of the cache that are counters of limits."""
    return [item for item in _cached() if "N" in item.get("value", {})]


def _cached() -> list[dict[str, Any]]:
    return scanned(CacheItem.table())


def request_id_drawn(ago: timedelta) -> str:
    """The request id of a sign-up form that was opened so long ago."""
    drawn_at = signing.time.time() - ago.total_seconds()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signing.time, "time", lambda: drawn_at)
        return SignUpForm.new_request_id()


@contextmanager
def meanwhile(engine: str, operation: str, action: Any) -> Iterator[FaultProxy]:
    """Do `action` just before the next request of `operation` reaches the engine."""
    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan(operation, Meanwhile(action))
        yield proxy
        assert proxy.count(operation) > 0
