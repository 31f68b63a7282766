"""Importing accounts: each row is registered once, however often and from wherever it comes.

A row's registration is named by its username and address as they are compared. So its primary
key is the same each time, and an import that was killed, or lost a reply, finds its own work.

Rows are registered side by side, with one exception: a row waits for an earlier one with the same
username, address or other unique value. So of two rivals in a file the earlier always wins.
Results come in the order of the lines.
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

from accounts.exceptions import AccountError, RequestIdUsed, ValueTaken, taken
from accounts.imports.candidates import Candidate, Candidates, FirstLines
from accounts.imports.files import Row
from accounts.models import User
from accounts.services import register
from dynamo.bulk import READ_MAX_ITEMS, read_batches
from dynamo.exceptions import DynamoError, Refused
from dynamo.models import Item, Model
from dynamo.tally import CountingPool

#: Rows that are read ahead for each worker, so that none waits for the next to be checked.
ROWS_PER_WORKER = 4

CHANGED_SINCE = "This was imported before; the account has changed since."


class Outcome(StrEnum):
    """What becomes of a row."""

    CREATED = "created"
    #: One account with this username and this address is there already, however it came.
    UNCHANGED = "unchanged"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of `row`; a rejected one has its `reason`."""

    row: Row
    outcome: Outcome
    reason: str = ""


class ImportStopped(AccountError):
    """DynamoDB did not do the rows from `line` on; a few of those after it may be done."""

    def __init__(self, line: int, error: DynamoError) -> None:
        super().__init__(line, error)
        self.line = line
        self.error = error

    def __str__(self) -> str:
        return f"Stopped at line {self.line}: {self.error}"


def import_users(rows: Iterable[Row], *, workers: int) -> Iterator[Result]:
    """Register each of `rows` by `workers` threads; the results, in the order of the lines.

    Costs 1 request and 6 write units a row, created or not (a row that breaks a rule, or comes
    again, nothing); 2 more requests and read units where both values are taken, and only these
    where no new account may have the username. Memory: about 130 bytes a row, by which a row that
    comes again is known.

    Raises:
        ImportStopped: DynamoDB did not do a row; those under way were waited for, and no further
            one was begun.
    """
    candidates = Candidates()
    with CountingPool(workers) as pool:
        under_way = _UnderWay(pool, rows_at_most=workers * ROWS_PER_WORKER)
        for row in rows:
            entry = candidate_or_rejected(candidates, row)
            while under_way.has_no_room_for(entry):
                yield from under_way.finish_first()
            if under_way.failure:
                break
            under_way.begin(entry)
        while under_way.count:
            yield from under_way.finish_first()
    if under_way.failure:
        raise under_way.failure from under_way.failure.error


def candidate_or_rejected(candidates: Candidates, row: Row) -> Candidate | Result:
    """What may be registered, or the rejection of a row that breaks a rule or comes again."""
    try:
        return candidates.candidate(row)
    except ValidationError as error:
        return Result(row, Outcome.REJECTED, " ".join(error.messages))


class _UnderWay:
    """The rows that are being registered, in the order of their lines; `rows_at_most` of them."""

    def __init__(self, pool: CountingPool, rows_at_most: int) -> None:
        self._pool = pool
        self._rows_at_most = rows_at_most
        self._rows: deque[tuple[Candidate | Result, Future[Result | None]]] = deque()
        self._keys: set[str] = set()
        self._error: DynamoError | None = None
        #: Why no further row is begun.
        self.failure: ImportStopped | None = None

    @property
    def count(self) -> int:
        """How many rows they are."""
        return len(self._rows)

    def has_no_room_for(self, entry: Candidate | Result) -> bool:
        """Whether they are too many, or one has a unique value of `entry`."""
        return self.count >= self._rows_at_most or not self._keys.isdisjoint(_keys(entry))

    def begin(self, entry: Candidate | Result) -> None:
        """Let a worker register the candidate; a rejection only waits for its turn."""
        future: Future[Result | None]
        if isinstance(entry, Candidate):
            future = self._pool.submit(self._attempt, entry)
        else:
            future = Future()
            future.set_result(entry)
        self._keys.update(_keys(entry))
        self._rows.append((entry, future))

    def _attempt(self, candidate: Candidate) -> Result | None:
        # Once DynamoDB fails a row, each further one would wait for a deadline of its own.
        if self._error is None:
            try:
                return _register(candidate)
            except DynamoError as error:
                self._error = error
        return None

    def finish_first(self) -> Iterator[Result]:
        """Wait for the first row; its result, or nothing where it was not done (see `failure`)."""
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
        # Its date tells whether this very call made it, if need be by a try whose reply was lost.
        # Both bounds come from the clock that dates it: one that is wrong elsewhere is no matter.
        joined_at = user.date_joined
        made_now = (
            joined_at is not None  # type: ignore[redundant-expr]  # PynamoDB's types know no null
            and began_at <= joined_at <= datetime.now(UTC)
        )
        return Result(candidate.row, Outcome.CREATED if made_now else Outcome.UNCHANGED)
    return _unchanged_or_rejected(candidate, reason)


def _unchanged_or_rejected(candidate: Candidate, reason: str) -> Result:
    if _one_account_has_both(candidate):
        return Result(candidate.row, Outcome.UNCHANGED)
    return Result(candidate.row, Outcome.REJECTED, reason)


def _one_account_has_both(candidate: Candidate) -> bool:
    """Whether one account has the username and the address. Costs 2 requests, 2 read units."""
    try:
        user = User.unique.get("username", candidate.values["username"])
    except User.DoesNotExist:
        return False
    return candidate.names.items() <= User.unique.keys_of(user).items()


def preview_users(rows: Iterable[Row]) -> Iterator[Result]:
    """What `import_users` would make of `rows` now; writes nothing.

    Costs 2 requests for 50 rows, and 3 read units a row; with a third unique attribute 2 for 33,
    and 4. Memory: about 400 bytes a row, as the usernames and addresses that rows before would
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
