from accounts.management.base import UserCommand
from accounts.services import deactivate


class Command(UserCommand):
    help = "End an account's sessions and prevent sign-ins. Its unique values stay taken."
    operation = staticmethod(deactivate)
    message = "{user} cannot sign in any more."
