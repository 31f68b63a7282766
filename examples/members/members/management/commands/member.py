from django.core.management.base import CommandError

from dynamo import DoesNotExist, Stale, Taken
from dynamo.management.base import DynamoCommand
from members.models import Member


class Command(DynamoCommand):
    help = "join EMAIL CARD NAME | change EMAIL ATTRIBUTE VALUE | leave EMAIL | show EMAIL"

    def add_arguments(self, parser):
        parser.add_argument("action", choices=["join", "change", "leave", "show"])
        parser.add_argument("email")
        parser.add_argument("values", nargs="*")

    def handle(self, *args, action, email, values, **options):
        try:
            if action == "join":
                card, name = values
                member = Member.create(email=email, card=card, name=name)
            else:
                member = Member.find(email=email)
            if action == "change":
                member.change(**dict([values]))
            elif action == "leave":
                member.delete()
        except (DoesNotExist, Stale, Taken) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{member.name}, {member.email}, card {member.card}")
