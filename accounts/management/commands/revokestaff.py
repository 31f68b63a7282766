from accounts.management.base import UserCommand
from accounts.services import revoke_staff


class Command(UserCommand):
    help = "Take the rights of staff and superuser from an account. Harmless to repeat."
    operation = staticmethod(revoke_staff)
    message = "{user} is not staff."
