"""Importing accounts from a file: each row is registered once, also if the import is repeated.

The comparable username and email address of a row name its registration. Therefore, its primary key
is the same each time, and an import after a crash or a lost reply finds the accounts that it made.

Several threads register the rows of a batch, some rows at a time in one transaction. If it is
refused, each of them is registered by itself, which shows the error of each. Rows with the same
username, email address or other unique value are never in one batch, so of two such rows the
earlier one always gets the value.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from itertools import chain, islice
from threading import Event
from typing import Any, TypeVar

from django import forms
from django.core.exceptions import ValidationError

from accounts.attributes import check_reserved
from accounts.exceptions import AccountRequestReused, ImportStopped, ValueTaken, taken
from accounts.forms import AccountForm
from accounts.imports.files import Row, required
from accounts.imports.hashes import clean_password_hash
from accounts.models import AbstractAccount, account_model
from accounts.services import register
from dynamo import DynamoError, Refused, Transaction
from dynamo.auth.usernames import clean_username
from dynamo.client.bulk import READ_MAX_ITEMS, read_batches
from dynamo.client.tally import CountingPool
from dynamo.model.unique import SEPARATOR
from dynamo.wire.types import Item

#: The rows of a batch, for each worker. The workers wait for each other only at its end.
ROWS_PER_WORKER = 64

#: The writes of one transaction. DynamoDB takes 100, other engines 25.
MOST_WRITES = 25

CHANGED_SINCE = "This row was imported before, and the account has changed since."


T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that can be registered: its values are valid, and it repeats no earlier row.

    `values` are clean. `request_id` names its registration by the comparable username and email
    address: `import:ann:ann@example.com`. `keys` are the keys of the guard items of all its unique
    values, by attribute. If no new account may have the username (`accounts.attributes`),
    `name_fault` says why; an existing account keeps its username.
    """

    row: Row
    values: Mapping[str, Any]
    password_hash: str | None
    request_id: str
    keys: Mapping[tuple[str, ...], str]
    name_fault: str

    @property
    def pk(self) -> str:
        """The primary key of the account that the registration makes."""
        return account_model().key_for(self.request_id)

    @property
    def identity(self) -> set[str]:
        """The `keys` of username and email address. They identify the account of the row."""
        return {self.keys[(name,)] for name in required()}


class _RowForm(AccountForm):
    """Accepts older usernames: whether one is allowed depends on the stored accounts."""

    def account_field(self, name: str) -> forms.Field:
        changes = {"rule": clean_username} if name == "username" else {}
        return account_model().form_field(name, **changes)


def import_users(
    rows: Iterable[Row], *, workers: int, stop: Event | None = None
) -> Iterator[Result]:
    """Register each of `rows` with `workers` threads. Results come in the order of the lines.

    Costs 1 request per 8 rows and 8 write units per row; nothing for a row that breaks a rule or
    repeats another. If one of the 8 is refused, each of them costs 1 request and 8 units more, and
    a row with both values taken 2 requests and 2 read units more. If no new account may have the
    username, the row costs only the latter. Keeps about 130 bytes per row in memory.

    After `stop` is set, rows in progress are finished and no further row begins.

    Raises:
        ImportStopped: a request for a row failed. Rows in progress were finished; no further row
            began.
    """
    stop = stop or Event()
    seen: dict[int, int] = {}
    failure: DynamoError | None = None

    def attempt(entries: list[Candidate | Result]) -> list[Result | None]:
        if stop.is_set():
            return [None for _entry in entries]
        valid = [
            entry for entry in entries if isinstance(entry, Candidate) and not entry.name_fault
        ]
        made = run_unless_stopped(partial(_register_together, valid)) or {}
        return [
            entry
            if isinstance(entry, Result)
            else made.get(entry.row.line) or run_unless_stopped(partial(_register, entry))
            for entry in entries
        ]

    def run_unless_stopped(act: Callable[[], T]) -> T | None:
        """The result of `act`; None if it fails, or if the import has failed or was stopped."""
        nonlocal failure
        # After a failed row, each further row would wait until its own deadline.
        if failure is None and not stop.is_set():
            try:
                return act()
            except DynamoError as error:
                failure = error
        return None

    rows_at_once = MOST_WRITES // (1 + len(account_model().uniques()))
    with CountingPool(workers) as pool:
        for batch in _batches(rows, seen, workers * ROWS_PER_WORKER):
            parts = [batch[at : at + rows_at_once] for at in range(0, len(batch), rows_at_once)]
            failed_lines = []
            results = chain.from_iterable(pool.map(attempt, parts))
            for entry, result in zip(batch, results, strict=True):
                if result is None:
                    failed_lines.append(entry.row.line)
                else:
                    yield result
            if failure is not None:
                raise ImportStopped(failed_lines[0], failure) from failure
            if stop.is_set():
                return


def _batches(
    rows: Iterable[Row], seen: dict[int, int], size: int
) -> Iterator[list[Candidate | Result]]:
    """`rows` in batches of at most `size`. No unique value occurs twice in one batch."""
    batch: list[Candidate | Result] = []
    keys: set[str] = set()
    for row in rows:
        entry = _checked(row, seen)
        own = set(entry.keys.values()) if isinstance(entry, Candidate) else set()
        if len(batch) == size or keys & own:
            yield batch
            batch, keys = [], set()
        batch.append(entry)
        keys |= own
    if batch:
        yield batch


def preview_users(rows: Iterable[Row]) -> Iterator[Result]:
    """Yield the results that `import_users` would have with `rows` now. Writes nothing.

    Costs 2 requests per 50 rows and 3 read units per row; with a third unique attribute 2 per 33
    and 4. Keeps about 400 bytes per row in memory, to know which values earlier rows would take.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.sending.send`.
    """
    seen: dict[int, int] = {}
    claimed: set[int] = set()
    remaining = iter(rows)
    rows_at_once = READ_MAX_ITEMS // len(account_model().uniques())
    while some := list(islice(remaining, rows_at_once)):
        entries = [_checked(row, seen) for row in some]
        valid = [entry for entry in entries if isinstance(entry, Candidate)]
        guards = _stored({key for item in valid for key in item.keys.values()})
        users = _stored({item.pk for item in valid})
        for entry in entries:
            if isinstance(entry, Candidate):
                yield _predicted(entry, guards, users, claimed)
            else:
                yield entry


def _checked(row: Row, seen: dict[int, int]) -> Candidate | Result:
    """The row, unless it breaks a rule or repeats an earlier row.

    `seen` has the line of each earlier row by Python's hash of its request id: 64 bits, with a key
    that is random in each process. The probability that two of 10 million rows are confused is 3 in
    a million.
    """
    try:
        candidate = _candidate(row)
    except ValidationError as error:
        return Result(row, Outcome.REJECTED, " ".join(error.messages))
    line = seen.setdefault(hash(candidate.request_id), row.line)
    if line != row.line:
        return Result(row, Outcome.REJECTED, f"This is the same as line {line}.")
    return candidate


def _candidate(row: Row) -> Candidate:
    """Raises ValidationError if the row breaks a rule."""
    if row.fault:
        raise ValidationError(row.fault)
    form = _RowForm(row.values)
    if not form.is_valid():
        raise ValidationError(form.faults())
    values = form.account_values()
    model = account_model()
    name_fault = ""
    if "username" in values:
        try:
            values |= model.cleaned(username=values["username"])
            check_reserved(values["username"])
        except ValidationError as error:
            name_fault = f"{form.fields['username'].label}: {' '.join(error.messages)}"
    keys = {
        names: key
        for names in model.uniques()
        if (key := model.guard_key_of(**{name: values.get(name) for name in names})) is not None
    }
    compared = [keys[(name,)].partition(SEPARATOR)[2] for name in required()]
    password_hash = clean_password_hash(row.values["password_hash"])
    return Candidate(row, values, password_hash, ":".join(["import", *compared]), keys, name_fault)


def _register_together(candidates: list[Candidate]) -> dict[int, Result]:
    """Register all candidates in one transaction.

    Returns their results by line; none if it is refused.
    """
    began_at = datetime.now(UTC)
    write = Transaction()
    users = [_account_of(candidate, write) for candidate in candidates]
    if write.try_commit():
        return {}
    return {
        candidate.row.line: _registered(candidate, user, began_at)
        for candidate, user in zip(candidates, users, strict=True)
    }


def _register(candidate: Candidate) -> Result:
    if candidate.name_fault:
        return _unchanged_or_rejected(candidate, candidate.name_fault)
    began_at = datetime.now(UTC)
    try:
        return _registered(candidate, _account_of(candidate), began_at)
    except ValueTaken as error:
        reason = str(error)
        if len(required()) > 1:
            # The other value was free, so no account has both.
            return Result(candidate.row, Outcome.REJECTED, reason)
    except Refused as refused:
        reason = " ".join(str(error) for error in refused.exceptions)
    except AccountRequestReused:
        reason = CHANGED_SINCE
    return _unchanged_or_rejected(candidate, reason)


def _account_of(candidate: Candidate, write: Transaction | None = None) -> AbstractAccount:
    return register(
        **candidate.values,
        password_hash=candidate.password_hash,
        request_id=candidate.request_id,
        write=write,
    )


def _registered(candidate: Candidate, user: AbstractAccount, began_at: datetime) -> Result:
    """Whether the registration that began at `began_at` made the account of `candidate`."""
    # The date shows this even if the reply to the creating request was lost. All three times come
    # from the clock of this machine.
    made_now = bool(user.date_joined) and began_at <= user.date_joined <= datetime.now(UTC)
    return Result(candidate.row, Outcome.CREATED if made_now else Outcome.UNCHANGED)


def _unchanged_or_rejected(candidate: Candidate, reason: str) -> Result:
    """`UNCHANGED` if one account has both values, else `REJECTED`.

    Costs 2 requests and 2 read units.
    """
    with suppress(account_model().DoesNotExist):
        name = required()[0]
        user = account_model().find(**{name: candidate.values[name]})
        if candidate.identity <= set(account_model().guard_keys_of(user.stored).values()):
            return Result(candidate.row, Outcome.UNCHANGED)
    return Result(candidate.row, Outcome.REJECTED, reason)


def _predicted(
    candidate: Candidate, guards: Mapping[str, Item], users: Mapping[str, Item], claimed: set[int]
) -> Result:
    """The result that a registration would have.

    `claimed` has the hashes of the values of earlier rows.
    """
    owners = [guards[key]["owner"]["S"] for key in candidate.identity if key in guards]
    if len(owners) == len(required()) and len(set(owners)) == 1:
        return Result(candidate.row, Outcome.UNCHANGED)
    if candidate.name_fault:
        return Result(candidate.row, Outcome.REJECTED, candidate.name_fault)
    if candidate.pk in users:
        return Result(candidate.row, Outcome.REJECTED, CHANGED_SINCE)
    refusals = [
        str(taken(names, candidate.values))
        for names, key in candidate.keys.items()
        if key in guards or hash(key) in claimed
    ]
    if refusals:
        return Result(candidate.row, Outcome.REJECTED, " ".join(refusals))
    claimed.update(map(hash, candidate.keys.values()))
    return Result(candidate.row, Outcome.CREATED)


def _stored(keys: set[str]) -> dict[str, Item]:
    """The accounts and guard items with one of `keys`, by key."""
    items = read_batches(account_model().table(), [{"pk": {"S": key}} for key in keys])
    return {item["pk"]["S"]: item for item in items}
