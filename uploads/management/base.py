"""What the commands of this app share: their destination, and how they end when S3 refuses."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from dynamo.management.base import DynamoCommand
from uploads.destination import Destination
from uploads.exceptions import BadDestination, UploadError


class UploadCommand(DynamoCommand):
    """Says in one line on stderr what S3 refused, and exits 1."""

    # They look at pages and templates, and take a quarter of the time to start.
    requires_system_checks = ()

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command.

        Raises:
            CommandError: what S3, or the way to it, refused.
        """
        try:
            return super().execute(*args, **options)
        except UploadError as error:
            raise CommandError(" ".join(str(error).split())) from error


def destination(text: str) -> Destination:
    """The type of an argument `s3://BUCKET/PREFIX`; anything else is a usage error."""
    try:
        return Destination.parse(text)
    except BadDestination as error:
        raise argparse.ArgumentTypeError(str(error)) from error
