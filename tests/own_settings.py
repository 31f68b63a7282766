"""The settings of examples/ownuser, with those that tests of accounts expect (`tests.own_user`)."""

import django
from club.settings import *  # noqa: F403 - as settings that derive from others
from django.conf import global_settings

ACCOUNTS_PREFIX_SEARCH = True
ACCOUNTS_SITE_NAME = "Dynamo Ledger"
ACCOUNTS_SITE_ORIGIN = "http://testserver"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}Validator"}
    for name in ("UserAttributeSimilarity", "MinimumLength", "CommonPassword", "NumericPassword")
]
AWS_REGION = "us-east-1"
PASSWORD_HASHERS = ["dynamo.auth.passwords.Argon2idHasher", *global_settings.PASSWORD_HASHERS]
# For tests whose mails are stored as tasks, and operations that tests of all apps share.
INSTALLED_APPS = [*INSTALLED_APPS, "outbox", "locks", "sequences"]  # noqa: F405 - of the example
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("ja", "日本語")]
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "home"
ROOT_URLCONF = "tests.own_urls"
TIME_ZONE = "UTC"

if django.VERSION >= (6, 1):
    # The setting of the example still works there, with a warning.
    del EMAIL_BACKEND  # noqa: F821 - of the example
    MAILERS = {"default": {"BACKEND": "django.core.mail.backends.smtp.EmailBackend"}}
