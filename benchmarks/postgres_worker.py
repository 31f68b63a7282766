"""A worker on PostgreSQL: django-sequences, alone or with its invoice row, in one transaction;
and an account whose name and address are unique columns.

It runs as a script, in an environment of its own, without this project: django-sequences has a
package of the same name as ours. So `worker` is imported from its folder.
"""

from __future__ import annotations

import json

import django
from django.conf import settings
from registrant import HASH, next_registrant
from worker import Cost, Operation, options_of, postgres_settings, work

settings.configure(
    INSTALLED_APPS=["sequences"], DATABASES=postgres_settings(CONN_MAX_AGE=None), USE_TZ=True
)
django.setup()

from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction
from django.utils import timezone

from sequences import get_next_value


class Account(models.Model):  # noqa: DJ008 - never printed
    """An account with two unique columns."""

    id = models.UUIDField(primary_key=True)
    username = models.CharField(max_length=150, unique=True)
    email = models.EmailField(unique=True)
    password = models.CharField(max_length=128)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    joined_at = models.DateTimeField()

    class Meta:
        app_label = "bench"


TABLE = """
CREATE TABLE IF NOT EXISTS invoice (
    series text, number bigint, contents jsonb, PRIMARY KEY (series, number)
)
"""
CONTENTS = json.dumps(
    {
        "seller": ["A seller", "2 Street\nCity", "GB123456789"],
        "customer": ["A customer", "1 Road\nTown"],
        "lines": [["Work", "8", "95.50", "19"]],
        "net": 76400,
        "vat": 14516,
        "gross": 90916,
        "currency": "EUR",
    }
)


def invoice(name: str) -> None:
    """The next number and its row, in one transaction: no gap."""
    with transaction.atomic(), connection.cursor() as cursor:
        number = get_next_value(name)
        cursor.execute("INSERT INTO invoice VALUES (%s, %s, %s)", [name, number, CONTENTS])


def counter(name: str) -> None:
    """The next number."""
    get_next_value(name)


def register(name: str) -> bool:
    """One INSERT into a table whose username and email address are unique columns."""
    who = next_registrant(name)
    try:
        Account.objects.create(
            id=who.pk,
            username=who.username,
            email=who.email,
            password=HASH,
            joined_at=timezone.now(),
        )
    except IntegrityError:
        if not who.may_be_taken:
            raise
        return False
    return True


def lock(name: str) -> None:
    """An advisory lock, taken and given back."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s))", [name])
        cursor.execute("SELECT pg_advisory_unlock(hashtext(%s))", [name])


OPERATIONS: dict[str, Operation] = {
    "lock": lock,
    "invoice": invoice,
    "counter": counter,
    "register": register,
}


def main() -> None:
    options = options_of([*OPERATIONS, "setup"])
    if options.contender == "setup":
        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(TABLE)
        with connection.schema_editor() as editor:
            editor.create_model(Account)
        return
    work(OPERATIONS[options.contender], options, Cost())


if __name__ == "__main__":
    main()
