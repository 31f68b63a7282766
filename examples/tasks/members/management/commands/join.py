from typing import Any

from django.core.management.base import CommandParser

from dynamo import Transaction
from dynamo.management.base import DynamoCommand
from members.models import Member
from members.tasks import send_welcome


class Command(DynamoCommand):
    help = "Let somebody join. A worker sends the welcome."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("name")

    def handle(self, *args: Any, email: str, name: str, **options: Any) -> None:
        with Transaction() as write:
            member = Member.create(email=email, name=name, write=write)
            send_welcome.using(write=write).enqueue(member.pk)
        self.stdout.write(f"{member.name} is a member.")
