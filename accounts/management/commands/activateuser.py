from accounts.management.base import UserCommand
from accounts.services import activate


class Command(UserCommand):
    help = "Let a deactivated account sign in again."
    operation = staticmethod(activate)
    message = "{user} can sign in."
