from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "only for development"
DEBUG = True
ROOT_URLCONF = "club.urls"
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
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
STATIC_URL = "static/"
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
INSTALLED_APPS = ["dynamo", "sequences", "locks"]  # first, then yours
DATABASES = {}
AWS_REGION = "eu-central-1"
CACHES = {"default": {"BACKEND": "dynamo.cache.DynamoCache"}}
SESSION_ENGINE = "dynamo.sessions"
MIDDLEWARE = [
    "dynamo.middleware.AvailabilityMiddleware",  # 503 if DynamoDB does not answer
    "django.middleware.security.SecurityMiddleware",
    "dynamo.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
INSTALLED_APPS += [
    "dynamo.admin",  # instead of django.contrib.admin
    "dynamo.auth",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "members",
]
MIDDLEWARE += [
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
AUTH_USER_MODEL = "members.Editor"
AUTHENTICATION_BACKENDS = ["dynamo.auth.backends.UserBackend"]
