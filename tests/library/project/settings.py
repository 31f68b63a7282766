"""A project with the library alone, in which its tests run under other versions."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
DEBUG = True
SECRET_KEY = "of-the-tests-and-of-nothing-else-in-the-world-0123456789"
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    "outbox",
    "dynamo",
    "sequences",
    "locks",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
]
DATABASES: dict[str, dict[str, str]] = {}
CACHES = {"default": {"BACKEND": "dynamo.cache.DynamoCache"}}
SESSION_ENGINE = "dynamo.sessions"
MIDDLEWARE = [
    "dynamo.health.HealthMiddleware",
    "dynamo.middleware.AvailabilityMiddleware",
    "dynamo.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
]
ROOT_URLCONF = "project.urls"
TIME_ZONE = "UTC"
AWS_REGION = os.environ.get("AWS_REGION")
DYNAMODB_PAGE_SECONDS = 3.0
