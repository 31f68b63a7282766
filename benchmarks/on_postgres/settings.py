"""The site's settings, with Django's own users, sessions and middlewares on PostgreSQL.

Middlewares of the site and of other packages are left out, except WhiteNoise: no rate limits, no
access log, no header policies.
"""

from __future__ import annotations

from typing import Any

from benchmarks.worker import postgres_settings
from project.settings import *  # noqa: F403 - all others are the same
from project.settings import TEMPLATES

INSTALLED_APPS = [
    "benchmarks.on_postgres",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "benchmarks.on_postgres.urls"
CSRF_FAILURE_VIEW = "django.views.csrf.csrf_failure"
TEMPLATES[0]["OPTIONS"]["libraries"] = {"invoices": "invoices.templatetags.invoices"}

# A connection for each thread of the server would be more than PostgreSQL's default.
DATABASES = postgres_settings(OPTIONS={"pool": {"min_size": 8, "max_size": 16}})
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
SESSION_ENGINE = "django.contrib.sessions.backends.db"
AUTH_USER_MODEL = "on_postgres.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DEFAULT_EXCEPTION_REPORTER = "django.views.debug.ExceptionReporter"
DEFAULT_EXCEPTION_REPORTER_FILTER = "django.views.debug.SafeExceptionReporterFilter"
LOGGING: dict[str, Any] = {}
# `migrate --run-syncdb` makes all tables from the models.
MIGRATION_MODULES = dict.fromkeys(["auth", "contenttypes", "sessions"])
