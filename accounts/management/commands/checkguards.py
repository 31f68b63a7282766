"""`checkguards`: whether every account has its guards, and every guard its account."""

from __future__ import annotations

from contextlib import AbstractContextManager

from accounts.models import User
from dynamo.management.checkguards import GuardsCommand
from web.progress import Progress, progress_bars


class Command(GuardsCommand):
    """Checks the accounts' guards. Costs: `dynamo.unique.check.check_guards`."""

    help = (
        "Check that every account has a guard for each unique value, and every guard its account. "
        "missing: an account without its guard; orphaned: a guard of a value that nobody has, or "
        "has reserved; "
        "foreign: an account whose value another's guard keeps; shared: it carries the value too, "
        "so a person decides who keeps it. "
        "Reads the whole table: 1 read unit per 4 KB of all that is in it."
    )
    unique = User.unique
    noun = "account"
    oldest_by = User.date_joined.attr_name
    settled_by = "changeemail or changeusername with its key"

    def progress(self, *, shown: bool) -> AbstractContextManager[Progress]:
        """One bar for each thing that is read or repaired."""
        return progress_bars(shown=shown)
