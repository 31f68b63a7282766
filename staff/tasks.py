"""The report of each kind that a worker stores every day (`TASKS` in the settings)."""

from dynamo.tables.findings import unseen
from outbox import task
from staff.reports import KINDS, make_report, store


@task
def report(kind: str) -> None:
    """Make a report and store it, as `storereport` does.

    Raises:
        NewerReport: a report that began later is stored.
    """
    store(make_report(KINDS[kind], by="runtasks", progress=unseen))
