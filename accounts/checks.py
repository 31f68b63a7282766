"""System checks of the settings of accounts.

Those with a W, except W005, and E001 need `check --deploy`.

accounts.E001   no site origin is configured: no mail can be sent
accounts.E002   there is no such setting
accounts.E003   a setting has a wrong value
accounts.E004   a middleware is missing, in the wrong order, or replaced by another one
accounts.E005   AUTH_USER_MODEL is not an account
accounts.E006   the fields of sign-up or profile are wrong
accounts.W001   behind a proxy, all visitors count as one client
accounts.W002   mail is not configured: users cannot confirm an address or reset a password
accounts.W003   a sign-up tells whether an email address is known
accounts.W004   a new email address counts before its owner has confirmed it
accounts.W005   a template has no effect, because its app comes after `accounts`
"""

from collections.abc import Iterator
from inspect import isclass
from pathlib import Path
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.core import mail
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db.models import NOT_PROVIDED
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, Resolver404, resolve
from django.utils.functional import Promise
from django.utils.module_loading import import_string

from accounts.conf import DEFAULTS, LIMITS, parsed_limit
from dynamo.wire.attributes import nearest

_DEFAULT_BACKEND = "django.core.mail.backends.smtp.EmailBackend"

#: These backends send no mails to people.
_FOR_DEVELOPMENT = tuple(
    f"django.core.mail.backends.{name}." for name in ("console", "dummy", "filebased", "locmem")
)

#: The middlewares that pages need, in their order.
_MIDDLEWARE = (
    "accounts.languages.LanguageMiddleware",
    "dynamo.middleware.AvailabilityMiddleware",
    "accounts.limits.middleware.TooManyAttemptsMiddleware",
    "dynamo.middleware.SessionMiddleware",
    "accounts.sessions.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
)

#: With these middlewares of Django, a session that was ended could be used again.
_REPLACED = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
)


@register(Tags.security)
def check_project(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    """Finds mistakes that make the pages of accounts fail or act in an unexpected way."""
    if not apps.is_installed("accounts"):
        # Tests override INSTALLED_APPS, and a check remains registered.
        return []
    return [
        *_unknown_settings(),
        *(Error(text, hint=hint, id="accounts.E003") for text, hint in _wrong_values()),
        *_missing_middleware(),
        *_wrong_model(),
        *_hidden_templates(),
    ]


def _hidden_templates() -> Iterator[Warning]:
    configs = [*apps.get_app_configs()]
    own = apps.get_app_config("accounts")
    home = Path(own.path) / "templates"
    for config in configs[configs.index(own) + 1 :]:
        folder = Path(config.path) / "templates"
        for path in folder.rglob("*.*"):
            if (home / path.relative_to(folder)).is_file():
                hint = f"Put {config.name} before accounts in INSTALLED_APPS."
                yield Warning(f"{path} has no effect.", hint=hint, id="accounts.W005")


def _unknown_settings() -> Iterator[Error]:
    for name in dir(settings):
        if name.startswith("ACCOUNTS_") and name not in DEFAULTS:
            near = nearest(name, DEFAULTS)
            hint = f"Did you mean {near}?" if near else "See accounts.conf."
            yield Error(f"There is no setting {name}.", hint=hint, id="accounts.E002")


#: The types that a setting may have, by the type of its default. If that is not listed, the setting
#: must have the same type as its default.
_KINDS: dict[type, tuple[type, ...]] = {list: (list, tuple, set, frozenset), str: (str, Promise)}


def _wrong_values() -> Iterator[tuple[str, str]]:
    kinds = {name: _KINDS.get(type(value), type(value)) for name, value in DEFAULTS.items()}
    wrong = [name for name, kind in kinds.items() if not isinstance(getattr(settings, name), kind)]
    for name in wrong:
        yield f"{name} has a value of a wrong type.", "See accounts.conf."
    if wrong:
        return
    if settings.ACCOUNTS_EMAIL_CHANGE not in {"confirm", "immediate"}:
        yield "ACCOUNTS_EMAIL_CHANGE has a wrong value.", 'Set "confirm" or "immediate".'
    if settings.ACCOUNTS_TRUSTED_HOPS < 0:
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
    if settings.SESSION_ENGINE != "dynamo.sessions":
        yield "SESSION_ENGINE has a wrong value.", 'Set "dynamo.sessions".'
    # A project without the pages of accounts may not need these.
    names = ("LOGIN_URL", "LOGIN_REDIRECT_URL", "LOGOUT_REDIRECT_URL")
    for name in names if _leads_somewhere("signup") else ():
        if (url := getattr(settings, name)) and not _leads_somewhere(str(url)):
            yield f"{name} is {url!r}, but there is no such page.", "Set a URL of this project."


def _leads_somewhere(url: str) -> bool:
    """Whether a URL, or the name of one, is a page of the project or of another site."""
    try:
        path = resolve_url(url)
        if path.startswith("/") and not path.startswith("//"):
            resolve(urlsplit(path).path)
    except (NoReverseMatch, Resolver404):
        return False
    return "/" in path


def _missing_middleware() -> Iterator[Error]:
    installed = [name for name in settings.MIDDLEWARE if name in _MIDDLEWARE]
    if len(installed) < len(_MIDDLEWARE):
        # The project may derive its own from ours.
        kinds = {name: import_string(name) for name in _MIDDLEWARE}
        entries = [entry for entry in map(import_string, settings.MIDDLEWARE) if isclass(entry)]
        installed = [
            name for entry in entries for name, kind in kinds.items() if issubclass(entry, kind)
        ]
    missing = [name for name in _MIDDLEWARE if name not in installed]
    if replaced := [name for name in _REPLACED if name in settings.MIDDLEWARE]:
        text = f"MIDDLEWARE has what accounts replaces. Remove {', '.join(replaced)}."
    elif missing:
        text = f"MIDDLEWARE lacks what the pages of accounts need: {', '.join(missing)}."
    elif installed != list(_MIDDLEWARE):
        text = "MIDDLEWARE has what the pages of accounts need in another order."
    else:
        return
    yield Error(text, hint=f"The order is {', '.join(_MIDDLEWARE)}.", id="accounts.E004")


def _wrong_model() -> Iterator[Error]:
    from accounts.models import account_model

    try:
        model = account_model()
    except ImproperlyConfigured as error:
        yield Error(str(error), id="accounts.E005")
        return
    known = model.get_attributes().keys()
    names = [name for name in ("username", "email") if name in known]
    own = model.own_fields().items()
    required = [name for name, one in own if not one.null and one.default is NOT_PROVIDED]
    problems = {
        "sign_up_fields lacks": [name for name in names if name not in model.sign_up_fields],
        "sign_up_fields lacks what has neither a default nor null=True": [
            name for name in required if name not in model.sign_up_fields
        ],
        "sign_up_fields has no attribute": [n for n in model.sign_up_fields if n not in known],
        "profile_fields has no attribute": [n for n in model.profile_fields if n not in known],
        "profile_fields has what pages of their own change": [
            name for name in model.profile_fields if name in names
        ],
    }
    for what, wrong in problems.items():
        if wrong:
            text = f"{model.__name__}: {what}: {', '.join(wrong)}."
            yield Error(text, id="accounts.E006")


def _mail_backend() -> tuple[str, str]:
    """The setting that chooses the mail backend, and its value; empty without a backend."""
    if not hasattr(mail, "mailers"):
        return "EMAIL_BACKEND", settings.EMAIL_BACKEND
    # Django 6.1 has MAILERS, and uses the older setting if it is not set.
    mailers = getattr(settings, "MAILERS", None)
    if mailers is None:
        return "MAILERS", settings.EMAIL_BACKEND
    default = mailers.get("default")
    return "MAILERS", "" if default is None else default.get("BACKEND", _DEFAULT_BACKEND)


@register(Tags.security, deploy=True)
def check_settings(app_configs: object, **kwargs: object) -> Iterator[CheckMessage]:
    """Finds settings that are missing in production."""
    if not settings.ACCOUNTS_SITE_ORIGIN:
        text = "No mail can be sent: the origin of mailed links is not configured."
        hint = "Set ACCOUNTS_SITE_ORIGIN, such as https://www.example.com."
        yield Error(text, hint=hint, id="accounts.E001")
    if bool(settings.SECURE_PROXY_SSL_HEADER) and not settings.ACCOUNTS_TRUSTED_HOPS:
        text = (
            "The site is behind a proxy and ACCOUNTS_TRUSTED_HOPS is 0: all visitors have the "
            "proxy's address, and share the limits of one client."
        )
        hint = "Set ACCOUNTS_TRUSTED_HOPS to the number of proxies that write X-Forwarded-For."
        yield Warning(text, hint=hint, id="accounts.W001")
    setting, backend = _mail_backend()
    unset = {
        setting: backend.startswith(_FOR_DEVELOPMENT) or not backend,
        "DEFAULT_FROM_EMAIL": settings.DEFAULT_FROM_EMAIL.endswith("@localhost"),
    }
    if missing := " and ".join(name for name, is_unset in unset.items() if is_unset):
        text = (
            "Mail is not configured, so the links that confirm an email address, finish a sign-up "
            "and reset a password do not arrive."
        )
        yield Warning(text, hint=f"Set {missing}.", id="accounts.W002")
    if not settings.ACCOUNTS_PREVENT_ENUMERATION:
        text = "The sign-up form reveals whether an email address has an account."
        hint = "Set ACCOUNTS_PREVENT_ENUMERATION to True."
        yield Warning(text, hint=hint, id="accounts.W003")
    if settings.ACCOUNTS_EMAIL_CHANGE != "confirm":
        text = "A new email address takes effect before it is confirmed."
        hint = 'Set ACCOUNTS_EMAIL_CHANGE to "confirm".'
        yield Warning(text, hint=hint, id="accounts.W004")
