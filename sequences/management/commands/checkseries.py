"""`checkseries`: check that the numbers of each series of a model are 1, 2, 3 … without a gap."""

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser

from dynamo.management.base import model_type
from sequences.check import SeriesReport, check_series
from sequences.management.base import SeriesCheckCommand
from sequences.series import NumberedItem


class Command(SeriesCheckCommand):
    """It may run while items are issued. For its costs see `check.check_series`."""

    help = (
        "Check that the numbers of each series of a model go from 1, or where it began, to its "
        "counter, each on one item, and that no two items have the same request id. Reads two "
        "whole tables. Exits 1 if a series is damaged."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the model and `--json`."""
        parser.add_argument(
            "model",
            metavar="APP.MODEL",
            type=model_type(NumberedItem, "numbered"),
            help="such as tickets.Ticket",
        )
        super().add_arguments(parser)

    def reports(self, options: dict[str, Any]) -> Iterator[SeriesReport]:
        """The report of each series of the model."""
        return check_series(options["model"])
