from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
DEBUG = True
SECRET_KEY = "only for development"
ROOT_URLCONF = "club.urls"
INSTALLED_APPS = [
    "dynamo",
    "dynamo.auth",  # before django.contrib.auth
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "members",
]
MIDDLEWARE = [
    "dynamo.middleware.AvailabilityMiddleware",
    "dynamo.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.contrib.auth.context_processors.auth"]},
    }
]
CACHES = {"default": {"BACKEND": "dynamo.cache.DynamoCache"}}
SESSION_ENGINE = "dynamo.sessions"
TEST_RUNNER = "dynamo.test.Runner"

AUTH_USER_MODEL = "members.Member"
AUTHENTICATION_BACKENDS = ["dynamo.auth.backends.UserBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "home"
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
