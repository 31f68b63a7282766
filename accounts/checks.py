"""System checks of the settings of accounts. Those with a W, and E001, need `check --deploy`.

accounts.E001   no site origin is configured: no mail can be sent
accounts.E002   there is no such setting
accounts.E003   a setting has a wrong value
accounts.E004   a middleware is missing, or in the wrong order
accounts.E005   AUTH_USER_MODEL is not an account
accounts.W001   behind a proxy, all visitors count as one client
accounts.W002   mail is not configured: users cannot confirm an address or reset a password
accounts.W003   a sign-up tells whether an email address is known
accounts.W004   a new email address counts before its owner has confirmed it
accounts.W005   a limit refuses every attempt
"""

from collections.abc import Iterator
from difflib import get_close_matches
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from accounts.conf import DEFAULTS, LIMITS, limit_of, parsed_limit

#: Backends that send nothing.
_FOR_DEVELOPMENT = tuple(
    f"django.core.mail.backends.{name}." for name in ("console", "dummy", "filebased", "locmem")
)

#: By id: what is wrong, and the hint.
_TEXTS = {
    "E001": (
        "No mail can be sent: the origin of mailed links is not configured, and "
        "DJANGO_ALLOWED_HOSTS does not name a single host.",
        "Set ACCOUNTS_SITE_ORIGIN, such as https://www.example.com.",
    ),
    "W001": (
        "The site is behind a proxy and ACCOUNTS_TRUSTED_HOPS is 0: all visitors have the "
        "proxy's address, and share the limits of one client.",
        "Set ACCOUNTS_TRUSTED_HOPS to the number of proxies that write X-Forwarded-For.",
    ),
    "W002": (
        "Mail is not configured, so the links that confirm an email address, finish a "
        "sign-up and reset a password do not arrive.",
        "Set {missing}.",
    ),
    "W003": (
        "The sign-up form reveals whether an email address has an account.",
        "Set ACCOUNTS_PREVENT_ENUMERATION=on.",
    ),
    "W004": (
        "A new email address takes effect before it is confirmed.",
        "Set ACCOUNTS_EMAIL_CHANGE=confirm.",
    ),
    "W005": (
        "Limits of 0 times refuse every attempt: {limits}.",
        "Give them a number of times in ACCOUNTS_LIMITS, or None for no limit.",
    ),
}


#: What pages need, in their order.
_MIDDLEWARE = (
    "accounts.languages.LanguageMiddleware",
    "dynamo.middleware.AvailabilityMiddleware",
    "accounts.limits.middleware.TooManyAttemptsMiddleware",
    "dynamo.middleware.SessionMiddleware",
    "accounts.sessions.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
)


@register(Tags.security)
def check_project(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    """What makes the pages of accounts fail, or act otherwise than meant."""
    if not apps.is_installed("accounts"):
        # Tests override INSTALLED_APPS, and a check stays registered.
        return []
    return [
        *_unknown_settings(),
        *(Error(text, hint=hint, id="accounts.E003") for text, hint in _wrong_values()),
        *_missing_middleware(),
        *_wrong_model(),
    ]


def _unknown_settings() -> Iterator[Error]:
    for name in dir(settings):
        if name.startswith("ACCOUNTS_") and name not in DEFAULTS:
            nearest = get_close_matches(name, DEFAULTS, n=1)
            hint = f"Did you mean {nearest[0]}?" if nearest else "See accounts.conf."
            yield Error(f"There is no setting {name}.", hint=hint, id="accounts.E002")


def _wrong_values() -> Iterator[tuple[str, str]]:
    if settings.ACCOUNTS_EMAIL_CHANGE not in {"confirm", "immediate"}:
        yield "ACCOUNTS_EMAIL_CHANGE has a wrong value.", 'Set "confirm" or "immediate".'
    hops: object = settings.ACCOUNTS_TRUSTED_HOPS
    if not isinstance(hops, int) or hops < 0:
        yield "ACCOUNTS_TRUSTED_HOPS has a wrong value.", "Set a number of proxies, at least 0."
    origin = urlsplit(settings.ACCOUNTS_SITE_ORIGIN)
    if settings.ACCOUNTS_SITE_ORIGIN and (not origin.netloc or origin.path):
        yield "ACCOUNTS_SITE_ORIGIN has a wrong value.", "Set one such as https://www.example.com."
    for name, value in settings.ACCOUNTS_LIMITS.items():
        if name not in LIMITS:
            yield f"ACCOUNTS_LIMITS: there is no limit {name}.", f"There are {', '.join(LIMITS)}."
        try:
            parsed_limit(value)
        except (TypeError, ValueError):
            yield f"ACCOUNTS_LIMITS: {name} is not a limit.", "Set one such as 10/15m, or None."


def _missing_middleware() -> Iterator[Error]:
    installed = [name for name in settings.MIDDLEWARE if name in _MIDDLEWARE]
    missing = [name for name in _MIDDLEWARE if name not in installed]
    if missing:
        text = f"MIDDLEWARE lacks what the pages of accounts need: {', '.join(missing)}."
    elif installed != list(_MIDDLEWARE):
        text = "MIDDLEWARE has what the pages of accounts need in another order."
    else:
        return
    yield Error(text, hint=f"The order is {', '.join(_MIDDLEWARE)}.", id="accounts.E004")


def _wrong_model() -> Iterator[Error]:
    from accounts.models import AbstractAccount

    if not issubclass(get_user_model(), AbstractAccount):
        yield Error(
            f"AUTH_USER_MODEL is {settings.AUTH_USER_MODEL}, which is not an account.",
            hint='Set "accounts.User", or derive the model from accounts.models.AbstractAccount.',
            id="accounts.E005",
        )


@register(Tags.security, deploy=True)
def check_settings(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    sends_nothing = settings.EMAIL_BACKEND.startswith(_FOR_DEVELOPMENT)
    unset = {
        "EMAIL_URL": sends_nothing or not getattr(settings, "EMAIL_IS_CONFIGURED", True),
        "DJANGO_FROM_EMAIL": settings.DEFAULT_FROM_EMAIL.endswith("@localhost"),
    }
    missing = " and ".join(name for name, is_unset in unset.items() if is_unset)
    allowed = {name: limit_of(name) for name in LIMITS}
    limits = ", ".join(name for name, limit in allowed.items() if limit and not limit[0])
    wrong = {
        "E001": not settings.ACCOUNTS_SITE_ORIGIN,
        "W001": bool(settings.SECURE_PROXY_SSL_HEADER) and not settings.ACCOUNTS_TRUSTED_HOPS,
        "W002": missing,
        "W003": not settings.ACCOUNTS_PREVENT_ENUMERATION,
        "W004": settings.ACCOUNTS_EMAIL_CHANGE != "confirm",
        "W005": limits,
    }
    return [
        (Error if key.startswith("E") else Warning)(
            text.format(limits=limits), hint=hint.format(missing=missing), id=f"accounts.{key}"
        )
        for key, (text, hint) in _TEXTS.items()
        if wrong[key]
    ]
