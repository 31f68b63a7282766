from accounts.management.base import UserCommand, as_json, as_lines
from accounts.models import AbstractAccount


class Command(UserCommand):
    help = "Show an account, without its password hash."
    flags = (("--json", "print one JSON object"),)

    def act(self, user: AbstractAccount, **options: object) -> None:
        self.stdout.write(as_json(user) if options["json"] else as_lines(user))
