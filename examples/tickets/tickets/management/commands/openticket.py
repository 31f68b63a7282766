from typing import Any

from django.core.management.base import CommandParser

from dynamo.management.base import DynamoCommand
from sequences import issue
from tickets.models import Ticket


class Command(DynamoCommand):
    help = "Open a ticket, or several, and print what each is numbered."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subject")
        how = parser.add_mutually_exclusive_group()
        how.add_argument("--request-id")
        how.add_argument("--count", type=int, default=1)

    def handle(
        self, *args: Any, subject: str, request_id: str | None, count: int, **options: Any
    ) -> None:
        for _ in range(count):
            ticket = issue(Ticket(subject=subject), series="2026", request_id=request_id)
            self.stdout.write(f"Ticket {ticket.number}: {ticket.subject}")
