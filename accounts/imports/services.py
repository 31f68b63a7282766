"""Importing accounts from a file: each row is registered once, also if the import is repeated.

The comparable username and email address of a row name its registration. So its primary key is the
same each time, and an import after a crash or a lost reply finds the accounts that it made.

Several threads register rows. But a row waits for an earlier one with the same username, email
address or other unique value, so of two such rows the earlier one always gets the value. Results
come in the order of the lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice

from django.core.exceptions import ValidationError

from accounts.exceptions import ImportStopped, RequestIdUsed, ValueTaken, taken
from accounts.imports.candidates import Candidate, Candidates, FirstLines
from accounts.imports.files import Row
from accounts.models import User
from accounts.services import register
from dynamo.bulk import READ_MAX_ITEMS, read_batches
from dynamo.exceptions import DynamoError, Refused
from dynamo.models import Item, Model
from dynamo.tally import CountingPool

#: Rows that are read ahead for each worker, so that no worker waits for the next row.
ROWS_PER_WORKER = 4

CHANGED_SINCE = "This row was imported before, and the account has changed since."


class Outcome(StrEnum):
    CREATED = "created"
    #: One account has this username and this email address already.
    UNCHANGED = "unchanged"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of `row`; a rejected row has a `reason`."""

    row: Row
    outcome: Outcome
    reason: str = ""


def import_users(rows: Iterable[Row], *, workers: int) -> Iterator[Result]:
    """Register each of `rows` with `workers` threads. Results come in the order of the lines.

    Costs 1 request and 6 write units per row, created or not; nothing for a row that breaks a rule
    or repeats another; 2 more requests and read units if both values are taken, and only these if
    no new account may have the username. Keeps about 130 bytes per row in memory.

    Raises:
        ImportStopped: DynamoDB failed a row. Rows under way were finished; no further one began.
    """
    candidates = Candidates()
    with CountingPool(workers) as pool:
        under_way = _UnderWay(pool, rows_at_most=workers * ROWS_PER_WORKER)
        for row in rows:
            entry = _candidate_or_rejection(candidates, row)
            while under_way.has_no_room_for(entry):
                yield from under_way.finish_first()
            if under_way.failure:
                break
            under_way.begin(entry)
        while under_way.count:
            yield from under_way.finish_first()
    if under_way.failure:
        raise under_way.failure from under_way.failure.error


def preview_users(rows: Iterable[Row]) -> Iterator[Result]:
    """What `import_users` would do with `rows` now. Writes nothing.

    Costs 2 requests per 50 rows and 3 read units per row; with a third unique attribute 2 per 33
    and 4. Keeps about 400 bytes per row in memory, to know which values earlier rows would take.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.sending.send`.
    """
    candidates = Candidates()
    claimed = FirstLines()
    remaining = iter(rows)
    rows_at_once = READ_MAX_ITEMS // len(User.unique.normalize)
    while some := list(islice(remaining, rows_at_once)):
        entries = [_candidate_or_rejection(candidates, row) for row in some]
        valid = [entry for entry in entries if isinstance(entry, Candidate)]
        guard_model = User.unique.guard_model
        guards = {
            key: item
            for key, item in _stored(
                guard_model, {key for each in valid for key in each.keys.values()}
            ).items()
            if not guard_model.from_raw_data(item).has_lapsed
        }
        users = _stored(User, {each.pk for each in valid})
        for entry in entries:
            if isinstance(entry, Candidate):
                yield _foreseen(entry, guards, users, claimed)
            else:
                yield entry


def _candidate_or_rejection(candidates: Candidates, row: Row) -> Candidate | Result:
    try:
        return candidates.candidate(row)
    except ValidationError as error:
        return Result(row, Outcome.REJECTED, " ".join(error.messages))


class _UnderWay:
    """At most `rows_at_most` rows that are being registered, in the order of their lines."""

    def __init__(self, pool: CountingPool, rows_at_most: int) -> None:
        self._pool = pool
        self._rows_at_most = rows_at_most
        self._rows: deque[tuple[Candidate | Result, Future[Result | None]]] = deque()
        self._keys: set[str] = set()
        self._error: DynamoError | None = None
        #: Why no further row may begin.
        self.failure: ImportStopped | None = None

    @property
    def count(self) -> int:
        return len(self._rows)

    def has_no_room_for(self, entry: Candidate | Result) -> bool:
        """Whether there are too many rows, or one with a unique value of `entry`."""
        return self.count >= self._rows_at_most or not self._keys.isdisjoint(_keys(entry))

    def begin(self, entry: Candidate | Result) -> None:
        """Let a worker register the candidate. A rejection only waits for its turn."""
        future: Future[Result | None]
        if isinstance(entry, Candidate):
            future = self._pool.submit(self._attempt, entry)
        else:
            future = Future()
            future.set_result(entry)
        self._keys.update(_keys(entry))
        self._rows.append((entry, future))

    def _attempt(self, candidate: Candidate) -> Result | None:
        # After a failed row, each further one would wait until its own deadline.
        if self._error is None:
            try:
                return _register(candidate)
            except DynamoError as error:
                self._error = error
        return None

    def finish_first(self) -> Iterator[Result]:
        """Wait for the first row. Yields its result, or nothing if it failed (see `failure`)."""
        entry, future = self._rows.popleft()
        self._keys.difference_update(_keys(entry))
        result = future.result()
        if result is not None:
            yield result
        elif self.failure is None and self._error is not None:
            self.failure = ImportStopped(entry.row.line, self._error)


def _keys(entry: Candidate | Result) -> Iterable[str]:
    return entry.keys.values() if isinstance(entry, Candidate) else ()


def _register(candidate: Candidate) -> Result:
    if candidate.name_fault:
        return _unchanged_or_rejected(candidate, candidate.name_fault)
    began_at = datetime.now(UTC)
    try:
        user = register(
            username=candidate.values["username"],
            email=candidate.values["email"],
            full_name=candidate.values["full_name"],
            phone_number=candidate.values["phone_number"],
            password_hash=candidate.password_hash,
            request_id=candidate.request_id,
        )
    except ValueTaken as error:
        # The other value was free, so no account has both.
        return Result(candidate.row, Outcome.REJECTED, str(error))
    except Refused as refused:
        reason = " ".join(str(error) for error in refused.exceptions)
    except RequestIdUsed:
        reason = CHANGED_SINCE
    else:
        # The date tells whether this call made the account, perhaps by an attempt whose reply was
        # lost. All three times come from the clock of this machine.
        joined_at = user.date_joined
        made_now = (
            joined_at is not None  # type: ignore[redundant-expr]  # PynamoDB's types know no null
            and began_at <= joined_at <= datetime.now(UTC)
        )
        return Result(candidate.row, Outcome.CREATED if made_now else Outcome.UNCHANGED)
    return _unchanged_or_rejected(candidate, reason)


def _unchanged_or_rejected(candidate: Candidate, reason: str) -> Result:
    """Unchanged if one account has both values. Costs 2 requests and 2 read units."""
    try:
        user = User.unique.get("username", candidate.values["username"])
    except User.DoesNotExist:
        return Result(candidate.row, Outcome.REJECTED, reason)
    if candidate.identity.items() <= User.unique.keys_of(user).items():
        return Result(candidate.row, Outcome.UNCHANGED)
    return Result(candidate.row, Outcome.REJECTED, reason)


def _foreseen(
    candidate: Candidate,
    guards: Mapping[str, Item],
    users: Mapping[str, Item],
    claimed: FirstLines,
) -> Result:
    owners = {_owner(guards.get(key)) for key in candidate.identity.values()}
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


def _owner(guard: Item | None) -> str | None:
    """The account that has the value. A value that is only reserved has no owner yet."""
    if guard is None or "reservation" in guard:
        return None
    owner: str = guard["owner"]["S"]
    return owner


def _stored(model: type[Model], keys: set[str]) -> dict[str, Item]:
    """The items of `model`'s table with one of `keys`, by key."""
    [key_name] = model.key_attribute_names()
    items = read_batches(model.table(), [{key_name: {"S": key}} for key in keys])
    return {item[key_name]["S"]: item for item in items}
