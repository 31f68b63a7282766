"""`runserver`, which creates missing tables of the local engine first."""

import os

from django.apps import apps
from django.conf import settings
from django.core.management.commands import runserver
from django.utils.autoreload import DJANGO_AUTORELOAD_ENV

from dynamo.management.base import DynamoCommand
from dynamo.signals import serving
from dynamo.tables.definitions import all_tables, create

if apps.is_installed("django.contrib.staticfiles"):
    # Django's command for static files needs STATIC_URL.
    from django.contrib.staticfiles.management.commands import runserver  # type: ignore[no-redef]  # Django's, or its extension


class Command(DynamoCommand, runserver.Command):
    def run(self, **options: object) -> None:
        # This runs only in the process that serves, not in the one that watches files.
        serves = not options["use_reloader"] or os.environ.get(DJANGO_AUTORELOAD_ENV) == "true"
        if settings.DYNAMODB_LOCAL and serves:
            for table in all_tables():
                for done in create(table):
                    self.tell(done)
        if serves:
            serving.send(type(self))
        super().run(**options)
