from django.core.management.base import CommandParser

from dynamo import Transaction
from dynamo.management.base import DynamoCommand
from members.models import Member
from members.tasks import send_welcome


class Command(DynamoCommand):
    def add_arguments(self, parser: CommandParser) -> None:
        for name in ("email", "card", "name"):
            parser.add_argument(name)

    def handle(self, email: str, card: str, name: str, **options: object) -> None:
        with Transaction() as write:
            member = Member.create(email=email, card=card, name=name, write=write)
            send_welcome.using(write=write).enqueue(member.pk)
        self.stdout.write(f"{member.name} is a member.")
