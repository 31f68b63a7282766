"""`nextvalue`: draw the next numbers of a counter."""

from typing import get_args

from django.core.management.base import CommandError, CommandParser

from dynamo.management.base import DynamoCommand, argument, up_to
from sequences.counters import Strategy, checked_name, next_values

#: To get more, draw a range with `counters.next_values`.
MAX_COUNT = 1_000_000


class Command(DynamoCommand):
    """Draws all numbers in one request and prints them, one per line."""

    help = "Draw the next number of a counter, or several."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the counter and how to draw."""
        parser.add_argument("name", metavar="NAME", type=argument(checked_name), help="the counter")
        parser.add_argument(
            "--count",
            metavar="N",
            type=up_to(MAX_COUNT),
            default=1,
            help=f"how many, at most {MAX_COUNT:,}; default 1",
        )
        parser.add_argument(
            "--strategy", choices=get_args(Strategy), default="atomic", help="default atomic"
        )

    def handle(
        self, *args: object, name: str, count: int, strategy: Strategy, **options: object
    ) -> None:
        """Draw and print."""
        try:
            numbers = next_values(count, name, strategy=strategy)
        except (OverflowError, ValueError) as error:
            raise CommandError(str(error)) from error
        for number in numbers:
            self.stdout.write(str(number))
