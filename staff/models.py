"""The tables `staffactions`, the audit log, and `reports`, what `storereport` stored.

staffactions
    journal (S)                  id (S)                what it is
    <year>-<month>               <time, UTC>#<uuid>    an action of that month
    on#<account pk>              the same              the same action, listed by its account

    action, byPk, byName, onPk, onName, what, address, reason (S)

An action on an account is two items, put in the transaction that does it. So "what was done
recently" and "what was done to this account" are each one consistent Query of one partition,
newest first; an index could not be read consistently. Each item costs 2 write units. A month's
partition takes 500 actions per second. Names are stored as they were. Entries are never changed
and never expire, even if the account is deleted; deploy/iam-site.json grants no right to do so.

reports
    kind (S)                            survey, checkguards or checkinvoices
    result (S)                          the report as JSON
    resultStartedAt, resultEndedAt (S)  when the work began and ended, UTC
    resultByName (S)                    which user and host stored it

Each item is the last report of its kind. Items of earlier versions may have more attributes, or no
`result`: those versions also stored the progress of runs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _
from pynamodb.attributes import UnicodeAttribute

from dynamo.extending import PlainModel

#: Actions as stored and as shown. `startRun` is no longer written.
ACTIONS: dict[str, Any] = {
    "deactivate": _("Deactivated the account"),
    "activate": _("Activated the account"),
    "endSession": _("Ended a session"),
    "endSessions": _("Ended all sessions"),
    "breakLock": _("Broke a lock"),
    "openInvoices": _("Opened invoices"),
    "startRun": _("Started a run"),
}

#: The kinds of report, as stored and as shown.
REPORTS: dict[str, Any] = {
    "survey": _("Statistics"),
    "checkguards": _("Guard check"),
    "checkinvoices": _("Invoice check"),
}


class StaffAction(PlainModel):
    """One entry of the audit log."""

    class Meta:
        table_name = "staffactions"

    journal = UnicodeAttribute(hash_key=True)
    id = UnicodeAttribute(range_key=True)
    action = UnicodeAttribute()
    by = UnicodeAttribute(attr_name="byPk")
    by_name = UnicodeAttribute(attr_name="byName")
    on = UnicodeAttribute(attr_name="onPk", null=True)
    on_name = UnicodeAttribute(attr_name="onName", null=True)
    what = UnicodeAttribute(null=True)
    address = UnicodeAttribute(null=True)
    reason = UnicodeAttribute(null=True)

    @property
    def at(self) -> datetime:
        """When it was done, by the clock of the server that did it."""
        return datetime.fromisoformat(self.id.partition("#")[0])

    @property
    def label(self) -> Any:
        return ACTIONS.get(self.action, self.action)

    @property
    def about(self) -> Any:
        """A lock's name or a browser; for a run, its kind in words."""
        return REPORTS.get(self.what, self.what) if self.action == "startRun" else self.what


class Report(PlainModel):
    """The last report of a kind."""

    class Meta:
        table_name = "reports"

    kind = UnicodeAttribute(hash_key=True)
    result = UnicodeAttribute(null=True)
    started_at = UnicodeAttribute(attr_name="resultStartedAt", null=True)
    ended_at = UnicodeAttribute(attr_name="resultEndedAt", null=True)
    stored_by = UnicodeAttribute(attr_name="resultByName", null=True)
