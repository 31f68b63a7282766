"""Django's tasks framework: `django.tasks`, and on Django 5.2 the package `django-tasks`."""

from typing import TYPE_CHECKING

from django import VERSION

if TYPE_CHECKING or VERSION < (6, 0):
    from django_tasks import base, checks, exceptions, signals, task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.backends.immediate import ImmediateBackend
    from django_tasks.utils import normalize_json
else:
    from django.tasks import base, checks, exceptions, signals, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.backends.immediate import ImmediateBackend
    from django.utils.json import normalize_json

TaskException = exceptions.TaskException
TaskResultDoesNotExist = exceptions.TaskResultDoesNotExist

__all__ = [
    "BaseTaskBackend",
    "ImmediateBackend",
    "TaskException",
    "TaskResultDoesNotExist",
    "base",
    # Importing it registers the system check, even if `django_tasks` is not in INSTALLED_APPS.
    "checks",
    "normalize_json",
    "signals",
    "task_backends",
]
