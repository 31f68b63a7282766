"""Importing accounts: each row is registered once, however often and from wherever it comes.

A row's registration is named by its user name and address as they are compared. So its primary
key is the same each time, and an import that was killed, or lost a reply, finds its own work.

Rows are registered side by side, with one exception: a row waits for an earlier one with the same
user name or address. So of two rivals in a file the earlier always wins. Results come in the order
of the lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice

from django.core.exceptions import ValidationError

from accounts.candidates import Candidate, Candidates, FirstLines
from accounts.exceptions import AccountError, RequestIdUsed, ValueTaken, taken
from accounts.models import User
from accounts.rowfiles import Row
from accounts.services import register
from dynamo.client import send
from dynamo.exceptions import DynamoError, Refused
from dynamo.models import Item, Model

#: Rows that are read ahead for each worker, so that none waits for the next to be checked.
ROWS_PER_WORKER = 4
#: Two guards each make the 100 keys that one BatchGetItem takes.
PREVIEW_ROWS = 50

CHANGED_SINCE = "This was imported before; the account has changed since."


class Outcome(StrEnum):
    """What becomes of a row."""

    CREATED = "created"
    #: One account with this user name and this address is there already, however it came.
    UNCHANGED = "unchanged"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of `row`; a rejected one has its `reason`."""

    row: Row
    outcome: Outcome
    reason: str = ""


class ImportStopped(AccountError):
    """DynamoDB did not do the row at `line`, nor perhaps some after it."""

    def __init__(self, line: int, error: DynamoError) -> None:
        super().__init__(line, error)
        self.line = line
        self.error = error

    def __str__(self) -> str:
        return f"Stopped at line {self.line}: {self.error}"


def import_users(rows: Iterable[Row], *, workers: int) -> Iterator[Result]:
    """Register each of `rows` by `workers` threads; the results, in the order of the lines.

    Costs 1 request and 6 write units a row, created or not (a row that breaks a rule, or comes
    again, nothing); 2 more requests and read units where both values are taken. Memory: about 130
    bytes a row, by which a row that comes again is known.

    Raises:
        ImportStopped: DynamoDB did not do a row; those under way were waited for, and no further
            one was begun.
    """
    candidates = Candidates()
    with ThreadPoolExecutor(workers) as pool:
        under_way = _UnderWay(pool, rows_at_most=workers * ROWS_PER_WORKER)
        for row in rows:
            entry = _candidate_or_rejected(candidates, row)
            while under_way.has_no_room_for(entry):
                yield from under_way.finish_first()
            if under_way.failure:
                break
            under_way.begin(entry)
        while under_way.count:
            yield from under_way.finish_first()
    if under_way.failure:
        raise under_way.failure from under_way.failure.error


def _candidate_or_rejected(candidates: Candidates, row: Row) -> Candidate | Result:
    try:
        return candidates.candidate(row)
    except ValidationError as error:
        return Result(row, Outcome.REJECTED, " ".join(error.messages))


class _UnderWay:
    """The rows that are being registered, in the order of their lines; `rows_at_most` of them."""

    def __init__(self, pool: ThreadPoolExecutor, rows_at_most: int) -> None:
        self._pool = pool
        self._rows_at_most = rows_at_most
        self._rows: deque[tuple[Candidate | Result, Future[Result]]] = deque()
        self._keys: set[str] = set()
        self.failure: ImportStopped | None = None

    @property
    def count(self) -> int:
        """How many rows they are."""
        return len(self._rows)

    def has_no_room_for(self, entry: Candidate | Result) -> bool:
        """Whether they are too many, or one has the user name or the address of `entry`."""
        return self.count >= self._rows_at_most or not self._keys.isdisjoint(_keys(entry))

    def begin(self, entry: Candidate | Result) -> None:
        """Let a worker register the candidate; a rejection only waits for its turn."""
        if isinstance(entry, Candidate):
            future = self._pool.submit(_register, entry)
        else:
            future = Future()
            future.set_result(entry)
        self._keys.update(_keys(entry))
        self._rows.append((entry, future))

    def finish_first(self) -> Iterator[Result]:
        """Wait for the first row; its result, or nothing where there is none (see `failure`)."""
        entry, future = self._rows.popleft()
        self._keys.difference_update(_keys(entry))
        try:
            result = future.result()
        except CancelledError:
            return
        except DynamoError as error:
            self.failure = self.failure or ImportStopped(entry.row.line, error)
            # Each would wait for a deadline of its own; those that no worker has begun need not.
            for _entry, other in self._rows:
                other.cancel()
            return
        yield result


def _keys(entry: Candidate | Result) -> Iterable[str]:
    return entry.keys.values() if isinstance(entry, Candidate) else ()


def _register(candidate: Candidate) -> Result:
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
        made_now = user.date_joined is not None and began_at <= user.date_joined <= datetime.now(UTC)
        return Result(candidate.row, Outcome.CREATED if made_now else Outcome.UNCHANGED)
    if _one_account_has_both(candidate):
        return Result(candidate.row, Outcome.UNCHANGED)
    return Result(candidate.row, Outcome.REJECTED, reason)


def _one_account_has_both(candidate: Candidate) -> bool:
    """Whether one account has the user name and the address. Costs 2 requests, 2 read units."""
    try:
        user = User.unique.get("username", candidate.values["username"])
    except User.DoesNotExist:
        return False
    return candidate.keys.items() <= User.unique.keys_of(user).items()


def preview_users(rows: Iterable[Row]) -> Iterator[Result]:
    """What `import_users` would make of `rows` now; writes nothing.

    Costs 2 requests for 50 rows, and 3 read units a row. Memory: about 400 bytes a row, as the
    user names and addresses that rows before would have taken are remembered too.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.send`.
    """
    candidates = Candidates()
    claimed = FirstLines()
    remaining = iter(rows)
    while some := list(islice(remaining, PREVIEW_ROWS)):
        entries = [_candidate_or_rejected(candidates, row) for row in some]
        guards = _stored(User.unique.guard_model, {key for each in entries for key in _keys(each)})
        users = _stored(User, {each.pk for each in entries if isinstance(each, Candidate)})
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
    # A value that is only reserved is taken, but by nobody yet.
    owners = {
        guards[key]["owner"]["S"] if key in guards and "reservation" not in guards[key] else None
        for key in candidate.keys.values()
    }
    if len(owners) == 1 and None not in owners:
        return Result(candidate.row, Outcome.UNCHANGED)
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


def _stored(model: type[Model], keys: set[str]) -> dict[str, Item]:
    """The items of `model`'s table that have one of `keys`, at most 100, by key."""
    [key_name] = model.key_attribute_names()
    found: dict[str, Item] = {}
    wanted = {model.table(): {"Keys": [{key_name: {"S": key}} for key in keys]}} if keys else {}
    while wanted:
        answer = send("BatchGetItem", {"RequestItems": wanted})
        found |= {item[key_name]["S"]: item for item in answer["Responses"].get(model.table(), [])}
        wanted = answer.get("UnprocessedKeys", {})
    return found
