from django.core.management.base import CommandParser

from dynamo.management.base import DynamoCommand
from members.models import Member


class Command(DynamoCommand):
    def add_arguments(self, parser: CommandParser) -> None:
        for name in ("email", "card", "name"):
            parser.add_argument(name)

    def handle(self, email: str, card: str, name: str, **options: object) -> None:
        member = Member.create(email=email, card=card, name=name)
        self.stdout.write(f"{member.name} is a member.")
