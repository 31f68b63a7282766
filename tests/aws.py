"""Test the library's operations on real tables: `make aws PREFIX=…`.

Each registered operation (`tests.operations`) must cost what the register says, and be refused when
it comes too late. Only tables with the prefix are used, and all are deleted at the end. AWS's own
credential chain applies. A wrong cost or answer is printed, and the exit code is 1.
"""

import argparse
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamo.client.plain import PlainModel
    from tests.operations import Operation

MOST_TESTS = 200
MOST_REQUESTS = 20_000
#: More than a run has ever taken.
EXPECTED_DOLLARS = 0.01


class TooManyRequests(BaseException):
    """The run sent MOST_REQUESTS."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make aws", description=__doc__)
    parser.add_argument("prefix", help="of the tables, at least three characters")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    options = parser.parse_args()
    if len(options.prefix) < 3:
        parser.error("Name a prefix of at least three characters: make aws PREFIX=try-")
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "project.settings",
        "DJANGO_SECRET_KEY": secrets.token_urlsafe(50),
        "DJANGO_ALLOWED_HOSTS": "localhost",
        "DJANGO_DEBUG": "off",
        "DYNAMODB_TABLE_PREFIX": options.prefix,
    }
    import django

    django.setup()

    from django.conf import settings

    from tests.operations import LIBRARY

    tests = list(cases())
    assert len(tests) <= MOST_TESTS
    place = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB") or f"AWS, region {settings.AWS_REGION}"
    print(
        f"{len(tests)} tests on {place}: tables {options.prefix}…, at most {MOST_REQUESTS:,} "
        f"requests, less than ${EXPECTED_DOLLARS}. The tables are deleted at the end."
    )
    if not options.yes and input("Type the prefix to begin: ") != options.prefix:
        print("Nothing was done.")
        return 2
    with tables({model for operation in LIBRARY for model in operation.models}):
        return run(tests)


def cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """Each test, by its name."""
    from tests.operations import LIBRARY

    for operation in LIBRARY:
        yield operation.name, partial(costs_what_the_register_says, operation)
        for meanwhile in operation.refusals:
            yield f"{operation.name}: {meanwhile}", partial(is_refused, operation, meanwhile)


def costs_what_the_register_says(operation: "Operation") -> None:
    from tests.requests import Requests, told

    given = operation.given()
    sent = Requests()
    with told(sent.note):
        operation.act(given)
    operation.assert_sound()
    cost = sent.operations, sent.units
    assert cost == ([*operation.reads, operation.api], operation.units), cost
    if isinstance(operation.again, type):
        with refused(operation.again):
            operation.act(given)
    operation.assert_sound()


@contextmanager
def refused(error: type[Exception]) -> Iterator[None]:
    try:
        yield
    except error:
        return
    raise AssertionError(f"{error.__name__} was not raised.")


def is_refused(operation: "Operation", meanwhile: str) -> None:
    from tests.operations import DONE

    happen, outcome = operation.refusals[meanwhile]
    given = operation.given()
    happen(given)
    before = operation.stored()
    with refused(outcome) if isinstance(outcome, type) else nullcontext():
        operation.act(given)
    assert (operation.stored() != before) == (outcome is DONE)
    operation.assert_sound()


def run(tests: list[tuple[str, Callable[[], None]]]) -> int:
    """Run the tests; print failures and the cost. 1 if one failed."""
    from django.conf import settings

    from benchmarks.scale.prices import READ_DOLLARS, REGION, WRITE_DOLLARS
    from dynamo.client.tally import collect, table_names
    from locks import leases
    from tests.operations import LIBRARY
    from tests.requests import told

    failed = 0
    used: set[str] = set()

    def note(request: dict[str, Any], **_signal: object) -> None:
        used.update(table_names(request).split("+"))

    with collect() as tally, told(note):
        try:
            for name, test in tests:
                try:
                    test()
                except Exception as error:
                    failed += 1
                    print(f"FAILED {name}: {type(error).__name__}: {error}")
                leases._of_process().drop_all()
                for operation in LIBRARY:
                    if name.partition(":")[0] == operation.name:
                        operation.restore({})
                if tally.requests > MOST_REQUESTS:
                    raise TooManyRequests
        except TooManyRequests:
            failed += 1
            print(f"Stopped after {tally.requests:,} requests.")
    strange = [name for name in used if not name.startswith(settings.DYNAMODB_TABLE_PREFIX)]
    assert not strange, strange
    dollars = tally.write_units * WRITE_DOLLARS + tally.read_units * READ_DOLLARS
    print(
        f"{len(tests) - failed} passed, {failed} failed\n{tally.requests:,} requests, "
        f"{tally.write_units:,.0f} write units, {tally.read_units:,.0f} read units: "
        f"${dollars:.4f} at the prices of {REGION}, without storage and backups"
    )
    return min(failed, 1)


@contextmanager
def tables(models: "set[type[PlainModel]]") -> Iterator[None]:
    """The tables of the models, which must not exist before and are deleted in any case."""
    from dynamo.client.sending import send
    from dynamo.exceptions import Rejected, TableMissing
    from dynamo.tables.definitions import create, merged, tables_of

    needed = merged(table for model in models for table in tables_of(model))
    for table in needed:
        with suppress(TableMissing):
            send("DescribeTable", {"TableName": table.name})
            raise SystemExit(f"The table {table.name} exists. Choose another prefix.")
    try:
        for table in needed:
            create(table)
        yield
    finally:
        for table in needed:
            name = {"TableName": table.name}
            with suppress(Rejected):
                send("UpdateTable", name | {"DeletionProtectionEnabled": False})
            with suppress(TableMissing):
                send("DeleteTable", name)
        print(f"{len(needed)} tables deleted")


if __name__ == "__main__":
    sys.exit(main())
