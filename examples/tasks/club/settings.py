from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
DEBUG = True
SECRET_KEY = "only for development"
INSTALLED_APPS = ["dynamo", "locks", "outbox", "members"]
TASKS = {"default": {"BACKEND": "outbox.TaskBackend"}}
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
TEST_RUNNER = "dynamo.test.Runner"
