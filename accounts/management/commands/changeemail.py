from accounts.management.base import UserCommand
from accounts.services import change_email


class Command(UserCommand):
    help = "Change an account's email address."
    operation = staticmethod(change_email)
    arguments = (("EMAIL", "the new address, which is not confirmed"),)
    message = "{user} has the email address {user.email}."
