from django.core.management.base import CommandError

from dynamo.management.base import DynamoCommand
from members.services import MemberError, change, find, join, leave


class Command(DynamoCommand):
    help = "join EMAIL CARD NAME | change EMAIL ATTRIBUTE VALUE | leave EMAIL | show EMAIL"

    def add_arguments(self, parser):
        parser.add_argument("action", choices=["join", "change", "leave", "show"])
        parser.add_argument("email")
        parser.add_argument("values", nargs="*")

    def handle(self, *args, action, email, values, **options):
        refused = []
        try:
            member = join(email, *values) if action == "join" else find(email)
            if action == "change":
                change(member, **dict([values]))
            elif action == "leave":
                leave(member)
        except* MemberError as errors:
            refused = [str(each) for each in errors.exceptions]
        if refused:
            raise CommandError(" ".join(refused))
        self.stdout.write(f"{member.name}, {member.email}, card {member.card}")
