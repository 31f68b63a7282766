"""Shared by the commands: their destination argument, and errors of S3."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from dynamo.management.base import DynamoCommand
from uploads.exceptions import BadDestination, UploadError
from uploads.sources import Destination
from web.s3 import StorageFailed


class UploadCommand(DynamoCommand):
    """Reports an error of S3 in one line on stderr, and exits 1."""

    # The checks concern pages and templates, and take a quarter of the start time.
    requires_system_checks = ()

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except (UploadError, StorageFailed) as error:
            raise CommandError(" ".join(str(error).split())) from error


def destination(text: str) -> Destination:
    """The type of an argument `s3://BUCKET/PREFIX`; anything else is a usage error."""
    try:
        return Destination.parse(text)
    except BadDestination as error:
        raise argparse.ArgumentTypeError(str(error)) from error
