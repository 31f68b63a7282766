"""The table `reports`: what `storereport` stored. The audit log is `dynamo.admin`'s.

reports
    kind (S)                            statistics, guards or invoices
    result (S)                          the report as JSON
    startedAt, endedAt (S)              when the work began and ended, UTC
    storedBy (S)                        which user and host stored it

Each item is the last report of its kind.
"""

from dynamo import TextAttribute
from dynamo.client.plain import PlainModel

#: The permission of actions on the accounts of staff, which superusers have.
ON_STAFF = "act_on_staff"


class Report(PlainModel):
    """The last report of one kind."""

    class Meta:
        table_name = "reports"

    kind = TextAttribute(hash_key=True)
    result = TextAttribute()
    started_at = TextAttribute(attr_name="startedAt")
    ended_at = TextAttribute(attr_name="endedAt")
    stored_by = TextAttribute(attr_name="storedBy")
