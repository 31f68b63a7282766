from typing import Any

from django.core.management.base import CommandError, CommandParser

from dynamo.management.base import DynamoCommand
from members.models import Member


class Command(DynamoCommand):
    help = "Let a member join or leave; change or show a member."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["join", "change", "leave", "show"])
        parser.add_argument("who", metavar="EMAIL")
        parser.add_argument("--email", help="another address")
        parser.add_argument("--card")
        parser.add_argument("--name")

    def handle(self, *args: Any, action: str, who: str, **options: Any) -> None:
        given = {name: options[name] for name in ("email", "card", "name")}
        values = {name: value for name, value in given.items() if value}
        try:
            if action == "join":
                member = Member.create(**{"email": who, **values})
            else:
                member = Member.find(email=who)
            if action == "change":
                member.change(**values)
            elif action == "leave":
                member.delete()
        except ValueError as error:
            raise CommandError(error) from error
        self.stdout.write(f"{member.name}, {member.email}, card {member.card}")
