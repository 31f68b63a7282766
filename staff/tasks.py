"""The report of each kind that a worker stores every day (`TASKS` in the settings)."""

from dynamo.management.progress import progress_bars
from outbox import task
from staff.reports import KINDS, make_report, store


@task
def report(kind: str) -> None:
    """Make a report and store it, as `storereport` does.

    Raises:
        NewerReport: another one that began later is stored.
    """
    with progress_bars(shown=False) as progress:
        made = make_report(KINDS[kind], by="runtasks", progress=progress)
    store(made)
