from accounts.emails.links import mark_confirmed
from accounts.management.base import UserCommand


class Command(UserCommand):
    help = "Confirm an account's email address without a link."
    operation = staticmethod(mark_confirmed)
    message = "{user.email} is confirmed."
