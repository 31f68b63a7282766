"""What an import would do, before it is done: looked up, not tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from accounts.candidates import Candidate, Candidates, FirstLines
from accounts.exceptions import taken
from accounts.imports import CHANGED_SINCE, Outcome, Result, candidate_or_rejected
from accounts.models import User
from accounts.rowfiles import Row
from dynamo.bulk import READ_MAX_ITEMS, read_batches
from dynamo.models import Item, Model


def preview_users(rows: Iterable[Row]) -> Iterator[Result]:
    """What `import_users` would make of `rows` now; writes nothing.

    Costs 2 requests for 50 rows, and 3 read units a row; with a third unique attribute 2 for 33,
    and 4. Memory: about 400 bytes a row, as the user names and addresses that rows before would
    have taken are remembered too.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.sending`.
    """
    candidates = Candidates()
    claimed = FirstLines()
    remaining = iter(rows)
    rows_at_once = READ_MAX_ITEMS // len(User.unique.normalise)
    while some := list(islice(remaining, rows_at_once)):
        entries = [candidate_or_rejected(candidates, row) for row in some]
        valid = [entry for entry in entries if isinstance(entry, Candidate)]
        guards = _not_lapsed(
            _stored(User.unique.guard_model, {key for each in valid for key in each.keys.values()})
        )
        users = _stored(User, {each.pk for each in valid})
        for entry in entries:
            if isinstance(entry, Candidate):
                yield _foreseen(entry, guards, users, claimed)
            else:
                yield entry


def _foreseen(
    candidate: Candidate,
    guards: Mapping[str, Item],
    users: Mapping[str, Item],
    claimed: FirstLines,
) -> Result:
    owners = {_owner(guards.get(key)) for key in candidate.names.values()}
    if len(owners) == 1 and None not in owners:
        return Result(candidate.row, Outcome.UNCHANGED)
    if candidate.name_fault:
        return Result(candidate.row, Outcome.REJECTED, candidate.name_fault)
    if candidate.pk in users:
        return Result(candidate.row, Outcome.REJECTED, CHANGED_SINCE)
    refusals = [
        str(taken(name, candidate.values[name]))
        for name, key in candidate.keys.items()
        if key in guards or key in claimed
    ]
    if refusals:
        return Result(candidate.row, Outcome.REJECTED, " ".join(refusals))
    for key in candidate.keys.values():
        claimed.note(key, candidate.row.line)
    return Result(candidate.row, Outcome.CREATED)


def _not_lapsed(guards: Mapping[str, Item]) -> dict[str, Item]:
    """The guards without those of reservations that anybody may take by now."""
    model = User.unique.guard_model
    return {key: item for key, item in guards.items() if not model.from_raw_data(item).has_lapsed}


def _owner(guard: Item | None) -> str | None:
    """The account that has the value; one that is only reserved is nobody's yet."""
    if guard is None or "reservation" in guard:
        return None
    owner: str = guard["owner"]["S"]
    return owner


def _stored(model: type[Model], keys: set[str]) -> dict[str, Item]:
    """The items of `model`'s table that have one of `keys`, by key."""
    [key_name] = model.key_attribute_names()
    items = read_batches(model.table(), [{key_name: {"S": key}} for key in keys])
    return {item[key_name]["S"]: item for item in items}
