"""Empties tables in the middle of a test; the fixture `engine` does before each."""

from dynamo import test


def empty(*tables: str) -> None:
    """Delete every item of these tables, past a proxy."""
    test.tables_of_process().empty(tables)
