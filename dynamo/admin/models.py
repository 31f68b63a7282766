"""The audit log: an addition, change, deletion or action and its entries are one transaction.

auditlog
    journal (S)          id (S)                what it is
    <year>-<month>       <time, UTC>#<uuid>    an entry of that month
    on#<item>            the same              the same entry, listed by its item

    action, byPk, byName, onPk, onName, model, what, address, reason (S)

Therefore, one consistent Query of one partition answers "what was done recently" or "what was done
to this item", newest first. An index could not be read consistently. Each of the two items costs 2
write units. A month's partition takes 500 actions per second. Names are stored as they were at that
time. An entry about a change has the names of the attributes, not their values. Entries are never
changed and never expire, even if the item is deleted.
"""

import hashlib
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, ClassVar

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _

from dynamo.admin.identity import id_of, name_of
from dynamo.client.plain import PlainModel, all_models
from dynamo.client.writes import Refusal, Write
from dynamo.exceptions import DamagedItem
from dynamo.model.base import Model
from dynamo.model.pages import Page, Results
from dynamo.transactions import Transaction
from dynamo.wire.attributes import TextAttribute
from dynamo.wire.types import Item
from dynamo.wire.values import PARTITION_KEY_MAX_BYTES

PAGE_SIZE = 50

#: A time and a UUID have 69 characters.
ID_MAX_LENGTH = 100

#: Longer texts about an action are cut: a lock's name may have 2,048 bytes.
WHAT_MAX_LENGTH = 300


class LogEntry(PlainModel):
    """One entry of the audit log. Its properties are those of contrib.admin's that pages show."""

    class Meta:
        table_name = "auditlog"

    journal = TextAttribute(hash_key=True)
    id = TextAttribute(range_key=True)
    action = TextAttribute()
    by = TextAttribute(attr_name="byPk")
    by_name = TextAttribute(attr_name="byName")
    on = TextAttribute(attr_name="onPk", null=True)
    on_name = TextAttribute(attr_name="onName", null=True)
    model_label = TextAttribute(attr_name="model", null=True)
    what = TextAttribute(null=True)
    address = TextAttribute(null=True)
    reason = TextAttribute(null=True)

    #: The labels of the project's actions, by their stored names.
    labels: ClassVar[dict[str, object]] = {}

    @property
    def at(self) -> datetime:
        """When it was done, by the clock of the server that did it."""
        return datetime.fromisoformat(self.id.partition("#")[0])

    @property
    def label(self) -> object:
        return label_of(self.action)

    @property
    def is_addition(self) -> bool:
        return self.action == "add"

    @property
    def is_change(self) -> bool:
        return self.action == "change"

    @property
    def is_deletion(self) -> bool:
        return self.action == "delete"

    @property
    def object_repr(self) -> str:
        return self.on_name or self.what or self.action

    @property
    def content_type(self) -> object:
        """The text that index pages show below the item: the project's action, or the model."""
        named = {model._meta.label_lower: model._meta.verbose_name for model in all_models()}
        name = named.get(str(self.model_label), self.action)
        return SimpleNamespace(name=self.labels.get(self.action, name))

    def get_admin_url(self) -> str | None:
        """The page of the item, if its model is registered."""
        with suppress(NoReverseMatch):
            model = str(self.model_label).replace(".", "_")
            return reverse(f"admin:{model}_change", args=[self.on])
        return None


def label_of(action: str) -> object:
    """The name that pages show for an action with this stored name."""
    own = {"add": _("Added"), "change": _("Changed"), "delete": _("Deleted")}
    return LogEntry.labels.get(action) or own.get(action, action)


def month_of(at: datetime) -> str:
    """The journal of the month of `at`, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m")


def journal_of(item: Model) -> str:
    """The journal of `item`. It has the model's name, unless the key is a random UUID."""
    owner = item._owner()
    name = owner if item._has_default_key() else f"{item._meta.label_lower}#{owner}"
    if len(name.encode()) > PARTITION_KEY_MAX_BYTES - len("on#"):
        name = f"sha256#{hashlib.sha256(name.encode()).hexdigest()}"
    return f"on#{name}"


def record(
    write: Transaction,
    action: str,
    *,
    by: str,
    by_name: str,
    on: Model | None = None,
    what: str = "",
    address: str = "",
    reason: str = "",
) -> None:
    """Add the entry of an action to its transaction; for an action on an item, two entries."""
    now = datetime.now(UTC)
    entry_id = f"{now.isoformat(timespec='microseconds')}#{uuid.uuid4()}"
    shown: dict[str, object] = {"action": action, "by": by, "by_name": by_name, "reason": reason}
    shown |= {"what": what[:WHAT_MAX_LENGTH], "address": address}
    if on is not None:
        is_new = any(entry.kind == "Put" and entry.about is on for entry in write)
        shown["on_name"] = name_of(on, is_new=is_new)[:WHAT_MAX_LENGTH]
        shown |= {"on": id_of(on), "model_label": on._meta.label_lower}
    texts: Any = {name: text or None for name, text in shown.items()}
    for journal in [month_of(now), *([] if on is None else [journal_of(on)])]:
        entry = LogEntry(journal, entry_id, **texts)
        absent = LogEntry.journal.does_not_exist()
        write.add(Write.put(entry, absent, otherwise=_stored_before, is_drawn=True))


def _stored_before(_refusal: Refusal) -> None:
    """Accept an entry that is stored already.

    Its id is random, so the reply to this write was lost.
    """


def _damaged_entry(stored: Item, error: DamagedItem) -> LogEntry:
    """An entry that says that the stored one cannot be read."""
    journal, entry_id = (stored[name]["S"] for name in LogEntry.key_attribute_names())
    return LogEntry(journal, entry_id, action=str(error), by="", by_name="")


def list_entries(
    journal: str, *, before: str | None = None, limit: int = PAGE_SIZE
) -> Page[LogEntry]:
    """A page of the entries before the id `before`. Costs 1 request, 1 read unit per 4 KB."""
    below = LogEntry.id < before[:ID_MAX_LENGTH] if before else None
    stored = LogEntry.query(journal, below, scan_index_forward=False, limit=limit + 1)
    found: list[LogEntry] = list(Results(LogEntry, stored, _damaged_entry))
    return Page(found[:limit], found[limit - 1].id if len(found) > limit else None)
