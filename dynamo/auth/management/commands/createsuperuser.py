from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.core.management.base import CommandError

from dynamo.management.base import DynamoCommand


class Command(DynamoCommand, createsuperuser.Command):
    """Asks on a terminal, or takes options and the variables DJANGO_SUPERUSER_…."""

    def handle(self, *args: Any, **options: Any) -> Any:
        try:
            return super().handle(*args, **options)
        except UnicodeEncodeError as error:
            raise CommandError(
                "The username, email address or password is not valid text."
            ) from error
