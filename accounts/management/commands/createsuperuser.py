from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.core.management.base import CommandError


class Command(createsuperuser.Command):
    help = "Names createuser, which makes accounts here."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        raise CommandError(
            "There are no superusers here. Make an account for an operator with "
            "manage.py createuser --staff --username NAME --email ADDRESS."
        )
