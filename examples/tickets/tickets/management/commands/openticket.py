from django.core.management.base import CommandParser

from dynamo.management.base import DynamoCommand
from sequences import issue
from tickets.models import Ticket


class Command(DynamoCommand):
    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subject")
        parser.add_argument("--request-id")
        parser.add_argument("--count", type=int, default=1)

    def handle(self, subject: str, request_id: str, count: int, **options: object) -> None:
        for _ in range(count):
            ticket = issue(Ticket(subject=subject), series="2026", request_id=request_id)
            self.stdout.write(f"Ticket {ticket.number}: {ticket.subject}")
