from accounts.management.base import UserCommand
from accounts.models import AbstractAccount
from accounts.services import grant_staff


class Command(UserCommand):
    help = "Let an account use the staff pages. Harmless to repeat."
    flags = (("--superuser", "also allow actions on other staff"),)

    def act(self, user: AbstractAccount, **options: object) -> None:
        grant_staff(user, superuser=bool(options["superuser"]))
        self.tell(f"{user} is {'a superuser' if user.is_superuser else 'staff'}.")
