from accounts.management.base import UserCommand
from accounts.services import change_username


class Command(UserCommand):
    help = "Change an account's username."
    operation = staticmethod(change_username)
    arguments = (("NAME", "the new username"),)
    message = "{user.email} has the username {user.username}."
