"""A worker on PostgreSQL: django-sequences, alone or with its invoice row, in one transaction.

It runs as a script, in an environment of its own, without this project: django-sequences has a
package of the same name as ours. So `worker` is found beside it.
"""

from __future__ import annotations

import json
import os

import django
from django.conf import settings
from worker import Cost, Operation, options_of, work

settings.configure(
    INSTALLED_APPS=["sequences"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "postgres",
            "USER": os.environ["BENCH_PG_USER"],
            "HOST": "127.0.0.1",
            "PORT": os.environ["BENCH_PG_PORT"],
            "CONN_MAX_AGE": None,
        }
    },
    USE_TZ=True,
)
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from sequences import get_next_value  # noqa: E402

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


OPERATIONS: dict[str, Operation] = {"invoice": invoice, "counter": counter}


def main() -> None:
    """Work as told."""
    options = options_of([*OPERATIONS, "setup"])
    if options.contender == "setup":
        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(TABLE)
        return
    work(OPERATIONS[options.contender], options, Cost())


if __name__ == "__main__":
    main()
