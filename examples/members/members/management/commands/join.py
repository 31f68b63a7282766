from dynamo.management.base import DynamoCommand
from members.models import Member


class Command(DynamoCommand):
    def add_arguments(self, parser):
        for name in ("email", "card", "name"):
            parser.add_argument(name)

    def handle(self, email, card, name, **options):
        member = Member.create(email=email, card=card, name=name)
        self.stdout.write(f"{member.name} is a member.")
