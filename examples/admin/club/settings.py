from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
DEBUG = True
SECRET_KEY = "only for development"
ROOT_URLCONF = "club.urls"
INSTALLED_APPS = [
    "dynamo",
    "dynamo.admin",  # instead of django.contrib.admin
    "dynamo.auth",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "members",
]
MIDDLEWARE = [
    "dynamo.middleware.AvailabilityMiddleware",
    "dynamo.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
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
CACHES = {"default": {"BACKEND": "dynamo.cache.DynamoCache"}}
SESSION_ENGINE = "dynamo.sessions"
TEST_RUNNER = "dynamo.test.Runner"
STATIC_URL = "static/"

AUTH_USER_MODEL = "members.Editor"
AUTHENTICATION_BACKENDS = ["dynamo.auth.backends.UserBackend"]
