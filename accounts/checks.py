"""System checks of the settings of accounts, run by `check --deploy`.

accounts.E001   no site origin is configured: no mail can be sent
accounts.W001   behind a proxy, all visitors count as one client
accounts.W002   mail is not configured: users cannot confirm an address or reset a password
accounts.W003   a sign-up tells whether an email address is known
accounts.W004   a new email address counts before its owner has confirmed it
accounts.W005   a limit refuses every attempt
"""

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

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


@register(Tags.security, deploy=True)
def check_settings(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    sends_nothing = settings.EMAIL_BACKEND.startswith(_FOR_DEVELOPMENT)
    unset = {
        "EMAIL_URL": sends_nothing or not settings.EMAIL_IS_CONFIGURED,
        "DJANGO_FROM_EMAIL": settings.DEFAULT_FROM_EMAIL.endswith("@localhost"),
    }
    missing = " and ".join(name for name, is_unset in unset.items() if is_unset)
    allowed = settings.ACCOUNTS_LIMITS.items()
    limits = ", ".join(name for name, limit in allowed if limit and not limit[0])
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
