"""A worker on PostgreSQL: django-sequences, alone or with its invoice row, in one transaction.

It runs in an environment of its own, without this project: django-sequences has a package of the
same name as ours. See `benchmarks.harness` for what a worker prints.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import django
from django.conf import settings

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


def main() -> None:
    """Work as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("contender", choices=["invoice", "counter", "setup"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--operations", type=int)
    parser.add_argument("--name")
    options = parser.parse_args()
    if options.contender == "setup":
        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(TABLE)
        return
    operation = {"invoice": invoice, "counter": counter}[options.contender]
    operation(f"warm-up-{os.getpid()}")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()

    def timed(_number: int) -> float:
        began = time.perf_counter()
        operation(options.name)
        return (time.perf_counter() - began) * 1000

    began = time.perf_counter()
    with ThreadPoolExecutor(options.threads) as pool:
        milliseconds = list(pool.map(timed, range(options.operations)))
    seconds = time.perf_counter() - began
    answer = {"seconds": seconds, "milliseconds": milliseconds, "requests": 0, "units": 0}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
