import json

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Deactivated users are left out: an imported account can sign in."""

    help = "Print the users of the relational database as a file for importusers."

    def handle(self, *args: object, **options: object) -> None:
        for user in User.objects.filter(is_active=True).order_by("pk").iterator():
            row = {
                "username": user.username,
                "email": user.email,
                "full_name": user.get_full_name(),
                "password_hash": user.password,
            }
            self.stdout.write(json.dumps(row))
