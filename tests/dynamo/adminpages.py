"""The admin of the test app, as a browser sees it."""

import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

from django.test import Client

#: A project that has nothing of the site.
PROJECT: dict[str, Any] = {
    "INSTALLED_APPS": [
        "dynamo",
        "dynamo.auth",
        "dynamo.admin",
        "tests.dynamo.desk",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "django.contrib.staticfiles",
    ],
    "AUTHENTICATION_BACKENDS": ["dynamo.auth.backends.UserBackend"],
    "PASSWORD_HASHERS": ["django.contrib.auth.hashers.MD5PasswordHasher"],
    "LOGOUT_REDIRECT_URL": None,
    "STATIC_URL": "static/",
    "ROOT_URLCONF": "tests.dynamo.desk.urls",
    "MIDDLEWARE": [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.locale.LocaleMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    "FORM_RENDERER": "django.forms.renderers.DjangoTemplates",
    "SESSION_ENGINE": "django.contrib.sessions.backends.signed_cookies",
    "TEMPLATES": [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
}


class Form(HTMLParser):
    """The values of the last form of a page, as a browser would send them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._name = self._text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        name = of.get("name", "")
        kind = of.get("type", "")
        if tag == "form":
            self.values = {}
        elif tag == "input" and name and kind != "submit":
            if kind != "checkbox" or "checked" in of:
                self.values[name] = of.get("value", "on" if kind == "checkbox" else "")
        elif tag in {"select", "textarea"}:
            self._name, self._text = name, ""
            self.values[name] = ""
        elif tag == "option" and "selected" in of:
            self.values[self._name] = of["value"]

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            # Its first line break belongs to the markup; the others are sent as two characters.
            lines = self._text.removeprefix("\n").splitlines()
            self.values[self._name] = "\r\n".join(lines)


def opened(client: Client, path: str) -> dict[str, str]:
    """The values of the form of a page."""
    answer = client.get(path)
    assert answer.status_code == 200, answer
    return Form(answer.text).values


def submit(client: Client, path: str, follow: bool = False, **typed: Any) -> Any:
    """Open a page, type these values, and send its form."""
    return client.post(path, opened(client, path) | typed, follow=follow)


def content(page: str) -> str:
    """The text of a page below its navigation, in one line."""
    main = page.partition('id="content-start"')[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())
