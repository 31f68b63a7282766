"""The settings of accounts: their names, defaults and reasons. `docs/registration.md` lists them.

A setting that a project does not have gets its default when the app is loaded, so the code reads
`django.conf.settings` as usual.
"""

import re
import sys
from typing import Any

from django.conf import settings
from django.conf.global_settings import PASSWORD_HASHERS

#: The limits by their names in `ACCOUNTS_LIMITS`, such as `10/15m`; None for no limit.
LIMITS = {
    # Failed sign-ins: to one account, and from one client's address.
    "sign_in": "10/15m",
    "sign_in_client": "100/15m",
    # Successful sign-ins from one client's address.
    "sign_in_success_client": "1000/15m",
    # Wrong passwords that a signed-in user enters, per session.
    "reauthentication": "10/15m",
    # Sign-ups from one client's address.
    "sign_up_client": "100/1h",
    # Mails of one kind to one address, and mails of all kinds requested from one client's address.
    "mail": "5/1h",
    "mail_client": "100/1h",
    # Mails that an account sends to others: in total, and to one address.
    "mail_account": "30/1h",
    "mail_account_day": "100/1d",
    "mail_account_recipient": "10/1d",
    # Such mails of all accounts to one address. This limit is much higher than those of one
    # account. Otherwise, one account could use it up.
    "mail_recipient": "500/1d",
}

RESERVED_USERNAMES = """
    abuse admin administrator billing help helpdesk hostmaster moderator no-reply noreply postmaster
    root security staff superuser support sysadmin system webmaster
""".split()

DEFAULTS: dict[str, object] = {
    # The beginning of the links in mails. It does not depend on a request. Without it no mail is
    # sent.
    "ACCOUNTS_SITE_ORIGIN": "",
    # The name of the site in mails; if empty, the host of its origin.
    "ACCOUNTS_SITE_NAME": "",
    # An email address changes when the link mailed to it is followed ("confirm"), or at once
    # ("immediate").
    "ACCOUNTS_EMAIL_CHANGE": "confirm",
    # Whether the sign-up page hides which email addresses have an account.
    "ACCOUNTS_PREVENT_ENUMERATION": False,
    # The limits that differ from the defaults, by name.
    "ACCOUNTS_LIMITS": {},
    # The number of the project's proxies that write X-Forwarded-For; 0 if the header is ignored.
    "ACCOUNTS_TRUSTED_HOPS": 0,
    # The region whose phone numbers may be written without their country code.
    "ACCOUNTS_PHONE_REGION": "",
    # Usernames that only an operator may assign.
    "ACCOUNTS_RESERVED_USERNAMES": RESERVED_USERNAMES,
    # Whether staff can find accounts by the first letters of their username or email address.
    "ACCOUNTS_PREFIX_SEARCH": False,
    # The cookie that lets a page read account and session in one request.
    "ACCOUNTS_COOKIE_NAME": "account",
    # The cookie that shows that an account was used in this browser.
    "ACCOUNTS_BROWSER_COOKIE_NAME": "known",
}

#: Defaults for Django's settings that accounts need.
OF_DJANGO: dict[str, object] = {
    "AUTHENTICATION_BACKENDS": ["accounts.backends.AccountBackend"],
    "CACHES": {"default": {"BACKEND": "dynamo.cache.DynamoCache"}},
    "CSRF_FAILURE_VIEW": "accounts.pages.account.csrf_failure",
    "PASSWORD_HASHERS": [
        "dynamo.auth.passwords.Argon2idHasher",
        *(name for name in PASSWORD_HASHERS if not name.endswith(".Argon2PasswordHasher")),
    ],
    "SESSION_ENGINE": "dynamo.sessions",
}

#: The languages of the pages and mails.
LANGUAGES = ("en", "ja")

_LIMIT = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,3})?([smhd])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}


def parsed_limit(value: object) -> tuple[int, int] | None:
    """The count and the seconds of a limit such as `10/15m` or `5/h` (s, m, h, d), or of a pair.

    None for no limit.

    Raises:
        ValueError
    """
    if isinstance(value, tuple):
        times, seconds = value
        if int(times) <= 0 or int(seconds) <= 0:
            raise ValueError("must have a number of times and of seconds")
        return int(times), int(seconds)
    text = "off" if value is None else str(value).lower()
    if text == "off":
        return None
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise ValueError("must be off or a limit such as 10/15m")
    times, count, unit = match.groups()
    return int(times), int(count or 1) * _UNIT_SECONDS[unit]


def limit_of(name: str) -> tuple[int, int] | None:
    """The limit with this name, as configured."""
    return parsed_limit(settings.ACCOUNTS_LIMITS.get(name, LIMITS[name]))


def set_defaults() -> None:
    """Set the default of each setting that the project does not have."""
    for name, value in DEFAULTS.items():
        if not hasattr(settings, name):
            setattr(settings, name, value)
    project: Any = settings
    for name, value in OF_DJANGO.items():
        if not project.is_overridden(name):
            setattr(settings, name, value)
    if not project.is_overridden("LANGUAGES"):
        # In other languages only Django's own texts are translated.
        code = settings.LANGUAGE_CODE
        own = {*LANGUAGES, code, code.partition("-")[0]}
        settings.LANGUAGES = [item for item in settings.LANGUAGES if item[0] in own]
    if settings.DEBUG and not settings.ACCOUNTS_SITE_ORIGIN:
        settings.ACCOUNTS_SITE_ORIGIN = _origin_of_runserver(sys.argv)


def _origin_of_runserver(arguments: list[str]) -> str:
    """The address that `runserver` is given, or its default."""
    typed = arguments[2:] if arguments[1:2] == ["runserver"] else []
    matches = (re.fullmatch(r"(?:(.+):)?(\d+)", text) for text in typed)
    host, port = next((match.groups() for match in matches if match), (None, "8000"))
    return f"http://{'127.0.0.1' if host in (None, '0', '0.0.0.0') else host}:{port}"  # noqa: S104 - compared
