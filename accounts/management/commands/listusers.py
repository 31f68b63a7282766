from itertools import islice

from django.core.management.base import CommandParser

from accounts.management.base import as_json, as_row
from accounts.models import account_model
from dynamo.management.base import DynamoCommand, positive, unreadable


class Command(DynamoCommand):
    help = "List accounts. Reads the whole table: 1 read unit per 4 KB of all items in it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--limit", type=positive, help="stop after this many accounts")
        parser.add_argument("--json", action="store_true", help="one JSON object per line")

    def handle(self, *args: object, limit: int | None, **options: object) -> None:
        shape = as_json if options["json"] else as_row
        damaged: list[str] = []
        users = account_model().scan(
            account_model().email.exists(),
            page_size=limit,
            damaged=lambda _stored, error: damaged.append(error.key),
        )
        for user in islice(users, limit):
            self.stdout.write(shape(user))
        if damaged:
            raise unreadable("account", damaged)
