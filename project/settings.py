"""Settings. The environment (and `.env` beside manage.py) is read here and nowhere else."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

import botocore.session
import phonenumbers
from botocore.exceptions import BotoCoreError

from accounts.limits.windows import DEFAULTS as LIMITS
from project import headers
from project.environment import (
    Environment,
    is_address,
    is_host,
    is_origin,
    is_region,
    is_time_zone,
    is_url,
    read_file,
)

BASE_DIR = Path(__file__).resolve().parent.parent

read_file(BASE_DIR / ".env")
env = Environment()


def _is_prefix(value: str) -> str:
    return "" if re.fullmatch(r"[a-zA-Z0-9_.-]{0,200}", value) else "has characters no table has"


def _is_phone_region(value: str) -> str:
    known = value in phonenumbers.SUPPORTED_REGIONS
    return "" if known else f"is no region such as GB or JP: {value!r}"


def _is_email_change(value: str) -> str:
    known = value in {"immediate", "confirm"}
    return "" if known else f"is neither immediate nor confirm: {value!r}"


def _is_site_origin(value: str) -> str:
    if not value.startswith("https://") and not DEBUG:
        return f"must begin with https:// and name one host: {value!r}"
    return is_origin(value) if "*" not in value else f"names no single host: {value!r}"


def _usual_origin() -> str:
    """The address of `make run`; in production the first host name that is allowed, if any."""
    if DEBUG:
        port = env.text("PORT") or "8000"
        return f"http://127.0.0.1:{port}"
    names = [host for host in ALLOWED_HOSTS if not host.startswith(("*", "."))]
    return f"https://{names[0]}" if names else ""


def _is_log_format(value: str) -> str:
    return "" if value in {"json", "plain"} else f"is neither json nor plain: {value!r}"


def _is_bearer_token(value: str) -> str:
    # The signs of RFC 6750, section 2.1.
    fits = re.fullmatch(r"[A-Za-z0-9._~+/-]{32,}=*", value)
    return "" if fits else "is no token of 32 or more letters, digits and - . _ ~ + /"


def _is_folder(value: str) -> str:
    there = Path(value).is_dir() and os.access(value, os.W_OK)
    return "" if there else f"is no folder that can be written to: {value!r}"


DEBUG = env.flag("DJANGO_DEBUG")
PRODUCTION = not DEBUG

SECRET_KEY = env.required("DJANGO_SECRET_KEY", needed=True)
ALLOWED_HOSTS = env.names("DJANGO_ALLOWED_HOSTS", check=is_host)
if PRODUCTION and not ALLOWED_HOSTS:
    env.complain("DJANGO_ALLOWED_HOSTS", "is not set")
CSRF_TRUSTED_ORIGINS = env.names("DJANGO_CSRF_TRUSTED_ORIGINS", check=is_origin)

# DynamoDB --------------------------------------------------------------------------------------

DYNAMODB_TABLE_PREFIX = env.text("DYNAMODB_TABLE_PREFIX", check=_is_prefix)
# Connections that the process keeps open: at least as many as it has pages at once.
DYNAMODB_MAX_CONNECTIONS = env.number("DYNAMODB_MAX_CONNECTIONS", default=64)
# A shorter way for operations on items than botocore's (`dynamo.client.lean`); off: all by
# botocore.
DYNAMODB_LEAN = env.flag("DYNAMODB_LEAN", default=True)
# A page gives up this long after it began; the last attempt then has its time-out on top. The time
# that its mails take does not count.
DYNAMODB_PAGE_SECONDS = 5.5
# How many pages of a process are under way at once; the server has more threads.
PAGES_AT_ONCE = env.number("DJANGO_PAGES_AT_ONCE", default=8)


def _region_of_profile() -> str:
    """What the files of AWS's own tools say (`~/.aws/config`, `AWS_PROFILE`)."""
    try:
        region = botocore.session.get_session().get_scoped_config().get("region", "")
    except BotoCoreError as error:
        env.complain("AWS_PROFILE", f"cannot be used: {error}".rstrip("."))
        return ""
    if region and (wrong := is_region(region)):
        env.complain("AWS_PROFILE", f"names a region that {wrong}")
    return str(region)


# Asked in any case: a profile that is not there also lacks the credentials of each request.
_elsewhere = "us-east-1" if DEBUG else _region_of_profile()
AWS_REGION = (
    env.text("AWS_REGION", check=is_region)
    or env.text("AWS_DEFAULT_REGION", check=is_region)
    or _elsewhere
)
if PRODUCTION and not AWS_REGION:
    env.complain("AWS_REGION", "is not set")
_endpoint_of_dynamodb = env.text("AWS_ENDPOINT_URL_DYNAMODB", check=is_url)
_endpoint_of_all = env.text("AWS_ENDPOINT_URL", check=is_url)
# Read by AWS's library; here so that a malformed one is said at the start, as the others are.
env.text("AWS_ENDPOINT_URL_S3", check=is_url)
# The embedded engine serves a checkout under development that names no other.
DYNAMODB_LOCAL = DEBUG and not (_endpoint_of_dynamodb or _endpoint_of_all)
DYNAMODB_LOCAL_DIR = BASE_DIR / "var"

# Django ----------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "project",
    "staff",
    "invoices",
    "accounts",
    "uploads",
    "sequences",
    "locks",
    "dynamo",
    "django_guid",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
]

MIDDLEWARE = [
    "project.middleware.RequestIdMiddleware",
    "django_guid.middleware.guid_middleware",
    "project.access.AccessMiddleware",
    "project.middleware.HeadersMiddleware",
    "accounts.languages.LanguageMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_permissions_policy.PermissionsPolicyMiddleware",
    "dynamo.health.HealthMiddleware",
    "project.exposition.MetricsMiddleware",
    "project.middleware.HostMiddleware",
    "dynamo.middleware.AvailabilityMiddleware",
    "accounts.limits.middleware.TooManyAttemptsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "project.middleware.PagesAtOnceMiddleware",
    "project.middleware.FormEncodingMiddleware",
    "dynamo.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "accounts.sessions.middleware.AuthenticationMiddleware",
    "accounts.languages.ProfileLanguageMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
ASGI_APPLICATION = "project.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

# No relational database: everything is in DynamoDB.
DATABASES: dict[str, dict[str, str]] = {}

CACHES = {"default": {"BACKEND": "dynamo.cache.DynamoCache"}}
SESSION_ENGINE = "dynamo.sessions"
# Unless one asks to be remembered: then it lasts SESSION_COOKIE_AGE, as every session at the most.
SESSION_EXPIRE_AT_BROWSER_CLOSE = True

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["accounts.backends.AccountBackend"]
PASSWORD_HASHERS = [
    "accounts.passwords.Argon2idHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2SHA1PasswordHasher",
    "django.contrib.auth.hashers.ScryptPasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ["username", "email", "full_name"]},
    },
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
CSRF_FAILURE_VIEW = "accounts.views.csrf_failure"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "profile"
LOGOUT_REDIRECT_URL = "home"

# The region whose numbers may be written without their country code; empty: none.
ACCOUNTS_PHONE_REGION = env.text("ACCOUNTS_PHONE_REGION", check=_is_phone_region)

# Usernames that only an operator's `createuser` and `changeusername` may give.
ACCOUNTS_RESERVED_USERNAMES = env.names(
    "ACCOUNTS_RESERVED_USERNAMES",
    default="abuse,admin,administrator,billing,help,helpdesk,hostmaster,moderator,noreply,no-reply,"
    "postmaster,root,security,staff,superuser,support,sysadmin,system,webmaster",
)
# Keeps accounts whose address is not confirmed from issuing invoices.
ACCOUNTS_REQUIRE_CONFIRMED_EMAIL = env.flag("ACCOUNTS_REQUIRE_CONFIRMED_EMAIL")
# Tells nobody who signs up whether an address is known: see accounts.signup.pending.
ACCOUNTS_PREVENT_ENUMERATION = env.flag("ACCOUNTS_PREVENT_ENUMERATION")
# When a change of address is made: `immediate`ly, or once a link to the new one is followed.
ACCOUNTS_EMAIL_CHANGE = env.text("ACCOUNTS_EMAIL_CHANGE", check=_is_email_change) or "immediate"
# How often people may try: `ACCOUNTS_LIMIT_SIGN_IN=10/15m` and so on, see accounts.limits.windows.
ACCOUNTS_LIMITS = {
    name: env.limit(f"ACCOUNTS_LIMIT_{name.upper()}", default=default)
    for name, default in LIMITS.items()
}
# Mailed links begin with it (`accounts.emails.mails`), whatever host and port a request names.
ACCOUNTS_SITE_ORIGIN = env.text("ACCOUNTS_SITE_ORIGIN", check=_is_site_origin) or _usual_origin()
# How many proxies of ours stand before the site and write X-Forwarded-For; 0: none is believed.
ACCOUNTS_TRUSTED_HOPS = env.number("ACCOUNTS_TRUSTED_HOPS", default=0, least=0)
# How long the links that Django itself signs are good, as are our own.
PASSWORD_RESET_TIMEOUT = 3 * 24 * 60 * 60

LANGUAGE_CODE = "en"
# Each by its own name, as in the switch: who looks for it may read no other.
LANGUAGES = [("en", "English"), ("ja", "日本語")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["project.formats"]
LANGUAGE_COOKIE_AGE = 365 * 24 * 60 * 60
# Says which day an invoice is issued on, and so which year's numbers it takes.
TIME_ZONE = env.text("DJANGO_TIME_ZONE", check=is_time_zone) or "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
# Under development files are found where they lie, and changes are seen.
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_ALLOW_ALL_ORIGINS = False

vars().update(
    env.email("EMAIL_URL", default="smtp://localhost:25" if PRODUCTION else "consolemail://")
)

# Not by the default: a mail server on this machine is to be named as well.
EMAIL_IS_CONFIGURED = bool(env.text("EMAIL_URL"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("DJANGO_FROM_EMAIL", check=is_address) or "webmaster@localhost"

# Bodies: forms here are small; a larger one is answered with 400 before it is read.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
# An invoice of `invoices.forms.SHOWN_LINES` has 970; files are taken nowhere.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_000
DATA_UPLOAD_MAX_NUMBER_FILES = 0

# No script reads a cookie. Not "Strict": who follows a link from a mail would have no session.
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = LANGUAGE_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = LANGUAGE_COOKIE_SAMESITE = "Lax"
CONTENT_SECURITY_POLICY = headers.CONTENT
PERMISSIONS_POLICY = headers.PERMISSIONS
ANSWER_HEADERS: dict[str, str] = headers.ANSWER
X_FRAME_OPTIONS = ANSWER_HEADERS["X-Frame-Options"]
SECURE_REFERRER_POLICY = ANSWER_HEADERS["Referrer-Policy"]
SECURE_CROSS_ORIGIN_OPENER_POLICY = ANSWER_HEADERS["Cross-Origin-Opener-Policy"]

if PRODUCTION:
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = env.flag("DJANGO_HSTS_INCLUDE_SUBDOMAINS")
    SECURE_HSTS_PRELOAD = env.flag("DJANGO_HSTS_PRELOAD")
    if SECURE_HSTS_PRELOAD and not SECURE_HSTS_INCLUDE_SUBDOMAINS:
        env.complain("DJANGO_HSTS_PRELOAD", "is on without DJANGO_HSTS_INCLUDE_SUBDOMAINS")
    # Both bind other hosts of the domain for a year, which is the operator's decision.
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = True
    # Browsers take these names only over TLS, for all paths, and from this very host.
    SESSION_COOKIE_NAME = "__Host-sessionid"
    CSRF_COOKIE_NAME = "__Host-csrftoken"
    # Only behind a proxy that always sets or strips the header may it be believed.
    if env.flag("DJANGO_BEHIND_TLS_PROXY"):
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# Seeing in -------------------------------------------------------------------------------------

# JSON for programs that collect lines, plain ones for people.
LOG_FORMAT = env.text("DJANGO_LOG_FORMAT", check=_is_log_format) or ("plain" if DEBUG else "json")
# A line on what each command cost, as each page has one.
LOG_COMMANDS = env.flag("DJANGO_LOG_COMMANDS")
# Metrics are shown to requests that send it. Without one they are not, and nothing is measured.
METRICS_TOKEN = env.text("DJANGO_METRICS_TOKEN", check=_is_bearer_token)
# prometheus-client reads it itself: where the processes of a server add up what they measured.
METRICS_DIR = env.text("PROMETHEUS_MULTIPROC_DIR", check=_is_folder)
# Drawn for each request, or a proxy's: see `project.middleware.RequestIdMiddleware`.
DJANGO_GUID = {"GUID_HEADER_NAME": "X-Request-ID", "EXPOSE_HEADER": False}

# Beside pages under DEBUG, for visitors on this machine, where it is installed.
DEBUG_TOOLBAR = env.flag("DJANGO_DEBUG_TOOLBAR", default=DEBUG)
if DEBUG_TOOLBAR and PRODUCTION:
    env.complain("DJANGO_DEBUG_TOOLBAR", "is on without DJANGO_DEBUG")
DEBUG_TOOLBAR = DEBUG_TOOLBAR and find_spec("debug_toolbar") is not None
if DEBUG_TOOLBAR:
    INSTALLED_APPS.append("debug_toolbar")
    # Around all that may ask DynamoDB.
    _below = MIDDLEWARE.index("project.access.AccessMiddleware") + 1
    MIDDLEWARE.insert(_below, "debug_toolbar.middleware.DebugToolbarMiddleware")
    # Not TemplatesPanel: it evaluates the template contexts of requests in other threads, whose
    # forms then carry tokens that do not match their cookies.
    DEBUG_TOOLBAR_PANELS = [
        "project.toolbar.DynamoPanel",
        "debug_toolbar.panels.timer.TimerPanel",
        "debug_toolbar.panels.headers.HeadersPanel",
        "project.toolbar.RequestPanel",
        "debug_toolbar.panels.staticfiles.StaticFilesPanel",
        "debug_toolbar.panels.signals.SignalsPanel",
    ]
    DEBUG_TOOLBAR_CONFIG = {
        "SHOW_TOOLBAR_CALLBACK": "project.toolbar.is_shown",
        "SHOW_COLLAPSED": True,
        # Django's tests switch DEBUG off, and with it the toolbar: no reason to refuse them.
        "IS_RUNNING_TESTS": False,
    }
    CONTENT_SECURITY_POLICY = headers.with_toolbar(CONTENT_SECURITY_POLICY)

DEFAULT_EXCEPTION_REPORTER = "project.reports.CrashReporter"
DEFAULT_EXCEPTION_REPORTER_FILTER = "project.reports.ReporterFilter"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    # No line of this handler holds a secret, at any level: see project.logs.
    "filters": {"talkative": {"()": "project.logs.TalkativeFilter"}},
    "formatters": {
        "plain": {
            "()": "project.logs.HidingFormatter",
            "fmt": "%(asctime)s %(levelname)s %(name)s %(message)s",
        },
        "json": {"()": "project.logs.HidingJsonFormatter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "filters": ["talkative"],
            "formatter": LOG_FORMAT,
        }
    },
    "root": {"handlers": ["console"], "level": "INFO"},
    # Named here, these lose the handlers that Django gave them: all lines go to the one above.
    "loggers": {
        "django": {"level": "INFO"},
        # The line of `project.access` says it all, and more.
        "django.server": {"level": "WARNING", "propagate": True},
        # It says of every request that it has an id.
        "django_guid": {"level": "WARNING"},
        # What the filter would drop is not even put together.
        **{name: {"level": "WARNING"} for name in ("boto3", "botocore", "pynamodb", "urllib3")},
    },
}

env.stop_if_wrong()
