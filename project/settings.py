"""Settings. The environment (and `.env` next to manage.py) is read here and nowhere else."""

from importlib.util import find_spec
from os.path import isabs
from pathlib import Path
from wsgiref.headers import Headers

from botocore.exceptions import BotoCoreError
from botocore.session import Session

from accounts.conf import LIMITS, RESERVED_USERNAMES, parsed_limit
from project import environment
from project.environment import Environment, flag, is_origin, list_of, one_of, text, whole_number

BASE_DIR = Path(__file__).resolve().parent.parent

env = Environment(BASE_DIR / ".env")

DEBUG = env.read("DJANGO_DEBUG", flag)
PRODUCTION = not DEBUG

SECRET_KEY = env.read("DJANGO_SECRET_KEY", str)
# Alternatively, the SSM parameter from which `project.parameters` reads this key and older ones.
SECRET_KEY_PARAMETER = env.read("DJANGO_SECRET_KEY_PARAMETER", environment.parameter_name)
_is_known = bool(SECRET_KEY or SECRET_KEY_PARAMETER)
env.check(
    _is_known or env.is_wrong("DJANGO_SECRET_KEY_PARAMETER"), "DJANGO_SECRET_KEY", "is not set"
)
env.check(
    not (SECRET_KEY and SECRET_KEY_PARAMETER),
    "DJANGO_SECRET_KEY_PARAMETER",
    "is set, and DJANGO_SECRET_KEY as well: remove one",
)
ALLOWED_HOSTS = env.read("DJANGO_ALLOWED_HOSTS", environment.hosts)
env.check(DEBUG or bool(ALLOWED_HOSTS), "DJANGO_ALLOWED_HOSTS", "is not set")
CSRF_TRUSTED_ORIGINS = env.read("DJANGO_CSRF_TRUSTED_ORIGINS", environment.origins)

# DynamoDB --------------------------------------------------------------------------------------

DYNAMODB_TABLE_PREFIX = env.read("DYNAMODB_TABLE_PREFIX", environment.table_prefix)
# The connections that the process keeps open, at least as many as pages that it serves at once.
DYNAMODB_MAX_CONNECTIONS: int = env.read("DYNAMODB_MAX_CONNECTIONS", whole_number(), "64")
# Requests for items take a shorter path than botocore's (`client/lean.py` in `dynamo`). With off,
# botocore sends all of them.
DYNAMODB_LEAN = env.read("DYNAMODB_LEAN", flag, "on")
# The last attempt of a page starts before this time, and can last until its time-out. The time for
# mails does not count.
DYNAMODB_PAGE_SECONDS = 5.5
# The most pages that a process makes at once. The server has more threads.
PAGES_AT_ONCE = env.read("DJANGO_PAGES_AT_ONCE", whole_number(), "8")


def _region_of_profile() -> str:
    """The region in the files of AWS's own tools (`~/.aws/config`, `AWS_PROFILE`)."""
    try:
        # This session only reads the files, because one for requests takes longer to set up.
        session = Session(include_builtin_handlers=False)
        return environment.region(str(session.get_scoped_config().get("region", "")))
    except BotoCoreError as error:
        env.check(False, "AWS_PROFILE", f"cannot be used: {error}".rstrip("."))
    except ValueError as error:
        env.check(False, "AWS_PROFILE", f"names a wrong region: it {error}")
    return ""


# The profile is always read, because requests need its credentials as well.
_default_region = "us-east-1" if DEBUG else _region_of_profile()
AWS_REGION = (
    env.read("AWS_REGION", environment.region)
    or env.read("AWS_DEFAULT_REGION", environment.region)
    or _default_region
)
_has_wrong_region = env.is_wrong("AWS_DEFAULT_REGION", "AWS_PROFILE")
env.check(DEBUG or bool(AWS_REGION) or _has_wrong_region, "AWS_REGION", "is not set")
_endpoint_of_dynamodb = env.read("AWS_ENDPOINT_URL_DYNAMODB", environment.endpoint)
_endpoint_of_all = env.read("AWS_ENDPOINT_URL", environment.endpoint)
# These are used elsewhere. They are also read here, so that malformed ones are reported with the
# others.
for _service in ("S3", "SSM"):
    env.read(f"AWS_ENDPOINT_URL_{_service}", environment.endpoint)
# In development, the embedded engine is used unless an endpoint is set.
DYNAMODB_LOCAL = DEBUG and not (_endpoint_of_dynamodb or _endpoint_of_all)
DYNAMODB_LOCAL_DIR = BASE_DIR / "var"

# The bucket for exports on AWS Lambda, whose responses have at most 6 MB. Tasks make the exports.
# Without a bucket, they are made while they are sent.
EXPORTS_BUCKET = env.read("EXPORTS_BUCKET", environment.bucket)

# Django ----------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "project",
    "staff",
    "staff.apps.StaffAdminConfig",
    "invoices",
    "accounts",
    "uploads",
    "outbox",
    "sequences",
    "locks",
    "dynamo",
    "dynamo.auth",
    # Each `{% static %}` searches the apps for this one, so it is the first of Django's. It comes
    # after dynamo, whose runserver replaces its own.
    "django.contrib.staticfiles",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.forms",
]

MIDDLEWARE = [
    # It comes first, so that the 500 page of an error in another middleware has these headers as
    # well.
    "project.middleware.AnswerMiddleware",
    "project.access.AccessMiddleware",
    # LanguageMiddleware loads all pages, which no probe needs.
    "dynamo.health.HealthMiddleware",
    "accounts.languages.LanguageMiddleware",
    "project.middleware.MetricsMiddleware",
    "project.middleware.HostMiddleware",
    "dynamo.middleware.AvailabilityMiddleware",
    "accounts.limits.middleware.TooManyAttemptsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "project.middleware.PagesAtOnceMiddleware",
    "project.middleware.SecretKeysMiddleware",
    "project.middleware.FormMiddleware",
    "dynamo.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "accounts.sessions.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"

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
            ]
        },
    }
]
FORM_RENDERER = "project.forms.FormRenderer"

# No relational database: everything is in DynamoDB.
DATABASES: dict[str, dict[str, str]] = {}

# This applies unless "remember me" is chosen. In that case, the session lasts SESSION_COOKIE_AGE,
# the maximum.
SESSION_EXPIRE_AT_BROWSER_CLOSE = True

# `accounts.conf` sets the defaults that belong to it: sessions, cache, backend and hashers.
AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ["username", "email", "full_name"]},
    },
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"

# The region whose phone numbers may be written without their country code; empty for none.
ACCOUNTS_PHONE_REGION = env.read(
    "ACCOUNTS_PHONE_REGION", text("a region such as GB or JP", environment.has_phone_numbers)
)
# Usernames that only an operator's `createuser` and `changeusername` may assign.
ACCOUNTS_RESERVED_USERNAMES = env.read(
    "ACCOUNTS_RESERVED_USERNAMES", list_of(), ",".join(RESERVED_USERNAMES)
)
# Whether staff can find accounts by the first letters of their username or email address.
ACCOUNTS_PREFIX_SEARCH = env.read("ACCOUNTS_PREFIX_SEARCH", flag, "on")
# Accounts whose email address is not confirmed cannot issue invoices.
INVOICES_REQUIRE_CONFIRMED_EMAIL = env.read("ACCOUNTS_REQUIRE_CONFIRMED_EMAIL", flag)
# The most customers in the address book of an account.
INVOICES_MAX_CUSTOMERS = env.read("INVOICES_MAX_CUSTOMERS", whole_number(), "2000")
# Whether invoices can be voided. Otherwise, they can only be credited.
INVOICES_ALLOW_VOID = env.read("INVOICES_ALLOW_VOID", flag, "on")
# The folder of the files of Debian's Noto font packages.
INVOICES_FONT_FOLDER = (
    env.read("INVOICES_FONT_FOLDER", text("an absolute path", isabs))
    or "/usr/share/fonts/truetype/noto"
)
# The sign-up page does not reveal whether an email address has an account.
ACCOUNTS_PREVENT_ENUMERATION = env.read("ACCOUNTS_PREVENT_ENUMERATION", flag)
# An email address changes when the link mailed to the new one is followed, or at once.
ACCOUNTS_EMAIL_CHANGE = (
    env.read("ACCOUNTS_EMAIL_CHANGE", one_of("immediate", "confirm")) or "confirm"
)
# Limits of attempts: `ACCOUNTS_LIMIT_SIGN_IN=10/15m` and so on, see accounts.conf.
ACCOUNTS_LIMITS = {
    name: env.read(f"ACCOUNTS_LIMIT_{name.upper()}", parsed_limit, default)
    for name, default in LIMITS.items()
}


def _usual_origin() -> str:
    """The address of `make run`; in production the first host name that is allowed, if any."""
    if DEBUG:
        port = env.read("PORT", str) or "8000"
        return f"http://127.0.0.1:{port}"
    names = [host for host in ALLOWED_HOSTS if not host.startswith(("*", "."))]
    return f"https://{names[0]}" if names else ""


def _is_site_origin(value: str) -> bool:
    return is_origin(value) and "*" not in value and (DEBUG or value.startswith("https://"))


# Mailed links begin with it. The host and the port of a request do not matter.
ACCOUNTS_SITE_ORIGIN = (
    env.read("ACCOUNTS_SITE_ORIGIN", text("https:// and a single host", _is_site_origin))
    or _usual_origin()
)
ACCOUNTS_SITE_NAME = "Dynamo Ledger"
# The number of our proxies in front of the site that write X-Forwarded-For; 0 if the header is
# ignored.
ACCOUNTS_TRUSTED_HOPS = env.read("ACCOUNTS_TRUSTED_HOPS", whole_number(least=0), "0")

LANGUAGE_CODE = "en"
# Each name is in its own language, as in the language switch.
LANGUAGES = [("en", "English"), ("ja", "日本語")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["project.formats"]
LANGUAGE_COOKIE_AGE = 365 * 24 * 60 * 60
# It decides the day of issue of an invoice, and therefore the year of its series.
TIME_ZONE = env.read("DJANGO_TIME_ZONE", environment.time_zone) or "UTC"

# A content delivery network with this site as its origin. If it is empty, browsers get the files
# from here.
STATIC_HOST = env.read("DJANGO_STATIC_HOST", text("https:// and a single host", _is_site_origin))
STATIC_URL = f"{STATIC_HOST}/static/" if STATIC_HOST else "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
# In development, files are served from the apps, and changes are visible at once.
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_ALLOW_ALL_ORIGINS = False


def _add_headers(headers: Headers, path: str, url: str) -> None:
    # Pages load files from other hosts only with this header (COEP). It is also sent without
    # STATIC_HOST, because a network could have stored a file before that is set, for ten years. The
    # files are not secret.
    headers["Cross-Origin-Resource-Policy"] = "cross-origin"


WHITENOISE_ADD_HEADERS_FUNCTION = _add_headers

_mail = env.read(
    "EMAIL_URL",
    environment.email_settings,
    "smtp://localhost:25" if PRODUCTION else "consolemail://",
)
# The SSM parameter from which `project.mail` reads the password.
EMAIL_PASSWORD_PARAMETER = env.read("EMAIL_PASSWORD_PARAMETER", environment.parameter_name)
if EMAIL_PASSWORD_PARAMETER:
    env.check(
        _mail["EMAIL_BACKEND"].endswith(".smtp.EmailBackend") and not _mail["EMAIL_HOST_PASSWORD"],
        "EMAIL_PASSWORD_PARAMETER",
        "is set, so EMAIL_URL must be smtp+tls://user@host:587, without a password",
    )
    _mail["EMAIL_BACKEND"] = "project.mail.EmailBackend"
vars().update(_mail)
# The default does not count: a mail server on this machine must be named explicitly.
EMAIL_IS_CONFIGURED = bool(env.read("EMAIL_URL", str))
EMAIL_TIMEOUT = 10

# Mails, and other work for which no page waits. `manage.py runtasks` runs it; in development,
# `runserver` does, and on AWS Lambda, a separate function.
TASKS = {
    "default": {
        "BACKEND": "outbox.TaskBackend",
        "OPTIONS": {
            "SCHEDULE": {
                kind: {"task": "staff.tasks.report", "cron": cron, "args": [kind]}
                for kind, cron in {
                    "statistics": "17 3 * * *",
                    "guards": "27 3 * * *",
                    "invoices": "37 3 * * *",
                }.items()
            }
        },
    }
}
DEFAULT_FROM_EMAIL = env.read("DJANGO_FROM_EMAIL", environment.sender) or "webmaster@localhost"

# A larger body is answered with 400, and the form is lost. The fields of a form allow less than
# these limits, which a test checks. Therefore, the page of the form says what is too long, and
# shows it again.
DATA_UPLOAD_MAX_MEMORY_SIZE = 7 * 1024 * 1024 // 2
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_550
DATA_UPLOAD_MAX_NUMBER_FILES = 0

# Scripts cannot read cookies. With "Strict", a link in a mail would open the site without session.
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = LANGUAGE_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = LANGUAGE_COOKIE_SAMESITE = "Lax"

if PRODUCTION:
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = env.read("DJANGO_HSTS_INCLUDE_SUBDOMAINS", flag)
    SECURE_HSTS_PRELOAD = env.read("DJANGO_HSTS_PRELOAD", flag)
    env.check(
        SECURE_HSTS_INCLUDE_SUBDOMAINS or not SECURE_HSTS_PRELOAD,
        "DJANGO_HSTS_PRELOAD",
        "is on without DJANGO_HSTS_INCLUDE_SUBDOMAINS",
    )
    # Both affect other hosts of the domain for a year, so the operator decides.
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = True
    # Browsers accept these names only over TLS, for all paths, and from this host.
    SESSION_COOKIE_NAME = "__Host-sessionid"
    ACCOUNTS_COOKIE_NAME = "__Host-account"
    ACCOUNTS_BROWSER_COOKIE_NAME = "__Host-known"
    CSRF_COOKIE_NAME = "__Host-csrftoken"
    # Only a proxy that always sets or strips the header makes it trustworthy.
    if env.read("DJANGO_BEHIND_TLS_PROXY", flag):
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# Logs and metrics ------------------------------------------------------------------------------

LOG_FORMAT = env.read("DJANGO_LOG_FORMAT", one_of("json", "plain")) or (
    "plain" if DEBUG else "json"
)
# The cost of each command is logged, as for pages.
LOG_COMMANDS = env.read("DJANGO_LOG_COMMANDS", flag)
# A request that sends it as a bearer token gets the metrics. If it is empty, nothing is measured.
METRICS_TOKEN = env.read("DJANGO_METRICS_TOKEN", environment.bearer_token)
# prometheus-client reads it itself: the folder in which a server's processes add up their metrics.
METRICS_DIR = env.read("PROMETHEUS_MULTIPROC_DIR", environment.folder)

# The toolbar is on pages in development, for visitors on this machine, if it is installed.
DEBUG_TOOLBAR = env.read("DJANGO_DEBUG_TOOLBAR", flag, "on" if DEBUG else "off")
env.check(DEBUG or not DEBUG_TOOLBAR, "DJANGO_DEBUG_TOOLBAR", "is on without DJANGO_DEBUG")
DEBUG_TOOLBAR = DEBUG_TOOLBAR and find_spec("debug_toolbar") is not None
if DEBUG_TOOLBAR:
    INTERNAL_IPS = ["127.0.0.1", "::1"]
    INSTALLED_APPS.append("debug_toolbar")
    # This middleware surrounds all code that may send requests to DynamoDB.
    _below = MIDDLEWARE.index("project.access.AccessMiddleware") + 1
    MIDDLEWARE.insert(_below, "debug_toolbar.middleware.DebugToolbarMiddleware")
    # TemplatesPanel is left out, because it evaluates the template contexts of requests in other
    # threads. Their forms then have tokens that do not match their cookies. RequestPanel is left
    # out as well, because it reads a session that the page did not read, after the page's deadline.
    DEBUG_TOOLBAR_PANELS = [
        "project.toolbar.DynamoPanel",
        "debug_toolbar.panels.timer.TimerPanel",
        "debug_toolbar.panels.headers.HeadersPanel",
        "debug_toolbar.panels.staticfiles.StaticFilesPanel",
        "debug_toolbar.panels.signals.SignalsPanel",
    ]
    DEBUG_TOOLBAR_CONFIG = {
        "SHOW_COLLAPSED": True,
        # Django's tests switch DEBUG off, and with it the toolbar, which would refuse to run.
        "IS_RUNNING_TESTS": False,
    }

# Headers of every answer -----------------------------------------------------------------------

# Everything comes from the site itself, static files from their host if they have one. Pages
# contain no inline scripts, styles or handlers.
_files = STATIC_HOST or "'self'"
_POLICY = (
    f"default-src 'none'; script-src {_files}; style-src {_files}; img-src {_files}; "
    "font-src 'none'; connect-src {}; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
# The Content-Security-Policy of pages whose script sends requests.
REQUESTING_POLICY = _POLICY.format("'self'")
# These are only features that browsers know. For an unknown one, they print a warning on their
# console.
_FORBIDDEN_FEATURES = """
    accelerometer autoplay browsing-topics camera clipboard-read clipboard-write display-capture
    encrypted-media fullscreen gamepad geolocation gyroscope hid identity-credentials-get
    idle-detection keyboard-map local-fonts magnetometer microphone midi otp-credentials payment
    picture-in-picture publickey-credentials-create publickey-credentials-get screen-wake-lock
    serial storage-access sync-xhr usb window-management xr-spatial-tracking
"""
# Set by `project.middleware.AnswerMiddleware`.
ANSWER_HEADERS = {
    # The toolbar's script requests its panels.
    "Content-Security-Policy": REQUESTING_POLICY if DEBUG_TOOLBAR else _POLICY.format("'none'"),
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in _FORBIDDEN_FEATURES.split()),
    # With "no-referrer", browsers would hide the origin of a form, and Django would refuse it.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

DEFAULT_EXCEPTION_REPORTER = "project.logs.CrashReporter"
DEFAULT_EXCEPTION_REPORTER_FILTER = "project.logs.ReporterFilter"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    # No line of this handler contains a secret, at any level: see project.logs.
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
    # These loggers lose the handlers of Django, so that all lines go to the handler above.
    "loggers": {
        "django": {"level": "INFO"},
        # `project.access` logs the same and more.
        "django.server": {"level": "WARNING", "propagate": True},
        # Workers print the tasks that they ran. This logger adds the failures.
        "django_tasks": {"level": "WARNING"},
    },
}

env.stop_if_wrong()
