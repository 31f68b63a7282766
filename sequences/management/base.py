"""What the commands of this app share: how they end when a counter or an invoice is refused."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from dynamo.management.base import DynamoCommand
from sequences.counters import checked_name
from sequences.exceptions import ReservedName, SequenceError


class SequenceCommand(DynamoCommand):
    """Says in one line on stderr what was refused, and exits 1."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command.

        Raises:
            CommandError: what a counter or an invoice refused.
        """
        try:
            return super().execute(*args, **options)
        except SequenceError as error:
            raise CommandError(" ".join(str(error).split())) from error


def counter_name(text: str) -> str:
    """The name of a counter. One that none can have is a usage error.

    A series' name passes here: it is refused when the command runs, which is no wrong usage.
    """
    try:
        return checked_name(text)
    except ReservedName:
        return text
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
