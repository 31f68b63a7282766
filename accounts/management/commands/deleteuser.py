from django.core.management.base import CommandError, CommandParser

from accounts.management.base import UserCommand
from accounts.models import AbstractAccount
from accounts.services import delete
from dynamo.management.base import is_confirmed


class Command(UserCommand):
    help = "Delete an account. Its unique values become free."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--no-input", "--noinput", action="store_false", dest="interactive", help="do not ask"
        )

    def act(self, user: AbstractAccount, **options: object) -> None:
        question = f"Delete the account of {user} ({user.email})?"
        if options["interactive"] and not is_confirmed(question):
            raise CommandError("Nothing was deleted.")
        delete(user)
        self.tell(f"The account of {user} was deleted.")
