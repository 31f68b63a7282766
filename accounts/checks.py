"""System checks of the settings of accounts, run by `check --deploy`.

accounts.E001   no site origin is configured: no mail can be sent
accounts.W001   behind a proxy, all visitors count as one client
accounts.W002   mail is not configured: users cannot confirm an address or reset a password
accounts.W003   a sign-up tells whether an email address is known
accounts.W004   a new email address counts before its owner has confirmed it
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

#: Backends that send nothing.
_FOR_DEVELOPMENT = tuple(
    f"django.core.mail.backends.{name}." for name in ("console", "dummy", "filebased", "locmem")
)


@register(Tags.security, deploy=True)
def check_trusted_hops(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    is_behind_proxy = settings.SECURE_PROXY_SSL_HEADER is not None
    if not is_behind_proxy or settings.ACCOUNTS_TRUSTED_HOPS:
        return []
    return [
        Warning(
            "The site is behind a proxy and ACCOUNTS_TRUSTED_HOPS is 0: all visitors have the "
            "proxy's address, and share the limits of one client.",
            hint="Set ACCOUNTS_TRUSTED_HOPS to the number of proxies that write X-Forwarded-For.",
            id="accounts.W001",
        )
    ]


@register(Tags.security, deploy=True)
def check_mail(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if not settings.ACCOUNTS_SITE_ORIGIN:
        found.append(
            Error(
                "No mail can be sent: the origin of mailed links is not configured, and "
                "DJANGO_ALLOWED_HOSTS does not name a single host.",
                hint="Set ACCOUNTS_SITE_ORIGIN, such as https://www.example.com.",
                id="accounts.E001",
            )
        )
    missing = []
    if not settings.EMAIL_IS_CONFIGURED or settings.EMAIL_BACKEND.startswith(_FOR_DEVELOPMENT):
        missing.append("EMAIL_URL")
    if settings.DEFAULT_FROM_EMAIL.endswith("@localhost"):
        missing.append("DJANGO_FROM_EMAIL")
    if missing:
        found.append(
            Warning(
                "Mail is not configured, so the links that confirm an email address, finish a "
                "sign-up and reset a password do not arrive.",
                hint=f"Set {' and '.join(missing)}.",
                id="accounts.W002",
            )
        )
    return found


@register(Tags.security, deploy=True)
def check_privacy(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if not settings.ACCOUNTS_PREVENT_ENUMERATION:
        found.append(
            Warning(
                "The sign-up form reveals whether an email address has an account.",
                hint="Set ACCOUNTS_PREVENT_ENUMERATION=on.",
                id="accounts.W003",
            )
        )
    if settings.ACCOUNTS_EMAIL_CHANGE != "confirm":
        found.append(
            Warning(
                "A new email address takes effect before it is confirmed.",
                hint="Set ACCOUNTS_EMAIL_CHANGE=confirm.",
                id="accounts.W004",
            )
        )
    return found
