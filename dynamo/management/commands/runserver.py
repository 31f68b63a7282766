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

    In the process that serves, not in the one that starts and watches it.
    """

    def run(self, **options: Any) -> None:
        """Create the tables, then serve."""
        serves = not options["use_reloader"] or os.environ.get(DJANGO_AUTORELOAD_ENV) == "true"
        if settings.DYNAMODB_LOCAL and serves:
            for table in all_tables():
                for done in create(table):
                    self.stdout.write(done)
        super().run(**options)
