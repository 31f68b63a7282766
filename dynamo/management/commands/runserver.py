"""`runserver` under development: the tables are there before the first page."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.management.commands import runserver
from django.utils.autoreload import DJANGO_AUTORELOAD_ENV

from dynamo.management.base import DynamoCommand
from dynamo.tables import all_tables, create


class Command(DynamoCommand, runserver.Command):
    """Django's, which on the local engine creates what is missing first.

    In the process that starts and watches, not again in the one that serves: that saves a whole
    start of Django.
    """

    def run(self, **options: Any) -> None:
        """Create the tables once, then serve."""
        if settings.DYNAMODB_LOCAL and os.environ.get(DJANGO_AUTORELOAD_ENV) != "true":
            for table in all_tables():
                for done in create(table):
                    self.stdout.write(done)
        super().run(**options)
