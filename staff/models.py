"""The tables `staffactions`, the record of what staff did, and `reports`, what its runs found.

staffactions
    journal (S)                  id (S)                what it is
    <year>-<month>               <time, UTC>#<uuid>    an action of that month
    on#<account pk>              the same              the same, beside the others on that account

    action, byPk, byName, onPk, onName, what, address, reason (S)

An action on an account is two items, put in the transaction that does it. So both questions, what
was done lately and what was done to somebody, are one Query of one partition, newest first, and
strongly consistent, which an index of DynamoDB's is not. It costs 2 write units more for each. A
month's partition takes 500 actions a second. Names are as they were; nothing here is changed or
expires, also when the account is deleted: deploy/iam-site.json gives no right to.

reports
    kind (S)                     a kind of run: survey, checkguards, checkinvoices
    runId, state, startedAt, startedBy, startedByName (S), fence (N)    of the latest run
    seen (N), updatedAt (S)      how far it is, and when it said so
    endedAt, error (S)           when it has ended, and why it failed
    result (S)                   JSON, of the latest run that came to its end, with its
    resultStartedAt, resultEndedAt, resultByName (S)

A table of its own, as its items are written over: who may do that needs no right to the record.
`result` stays while a later run is under way, or fails.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _
from pynamodb.attributes import UnicodeAttribute

from dynamo.attributes import IntegerAttribute
from dynamo.models import Model

#: What staff does, as stored and as shown.
ACTIONS: dict[str, Any] = {
    "deactivate": _("Deactivated the account"),
    "activate": _("Activated the account"),
    "endSession": _("Ended a session"),
    "endSessions": _("Ended all sessions"),
    "breakLock": _("Broke a lock"),
    "startRun": _("Started a run"),
}

#: The kinds of runs that there are, in words.
RUNS: dict[str, Any] = {
    "survey": _("Survey"),
    "checkguards": _("Check of guards"),
    "checkinvoices": _("Check of invoices"),
}


class StaffAction(Model):
    """One action in one journal."""

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
        """What was done, in words."""
        return ACTIONS.get(self.action, self.action)

    @property
    def about(self) -> Any:
        """What else is kept of it, a lock's name or a browser; of a run, its kind in words."""
        return RUNS.get(self.what, self.what) if self.action == "startRun" else self.what


class Report(Model):
    """The latest run of a kind, and the latest result."""

    class Meta:
        table_name = "reports"

    kind = UnicodeAttribute(hash_key=True)
    run_id = UnicodeAttribute(attr_name="runId", null=True)
    state = UnicodeAttribute(null=True)
    started_at = UnicodeAttribute(attr_name="startedAt", null=True)
    started_by = UnicodeAttribute(attr_name="startedBy", null=True)
    started_by_name = UnicodeAttribute(attr_name="startedByName", null=True)
    fence = IntegerAttribute(null=True)
    seen = IntegerAttribute(null=True)
    updated_at = UnicodeAttribute(attr_name="updatedAt", null=True)
    ended_at = UnicodeAttribute(attr_name="endedAt", null=True)
    error = UnicodeAttribute(null=True)
    result = UnicodeAttribute(null=True)
    result_started_at = UnicodeAttribute(attr_name="resultStartedAt", null=True)
    result_ended_at = UnicodeAttribute(attr_name="resultEndedAt", null=True)
    result_by_name = UnicodeAttribute(attr_name="resultByName", null=True)
