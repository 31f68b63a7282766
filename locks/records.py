"""The requests that change a lock's item, each under the condition that makes it safe.

Every one of them is recognised by the record version that it writes: where its reply was lost and
its repetition is refused, the version that is stored tells whether it had arrived.

They are spelled as on the wire, as PynamoDB takes as long to build one as an engine nearby to
carry it out. `key` and `data` are reserved words of DynamoDB's.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from time import time_ns
from typing import Any

from dynamo.client.sending import send
from dynamo.exceptions import ConditionFailed
from dynamo.models import PARTITION_KEY_MAX_BYTES, Item
from dynamo.transactions import Refusal, Transaction, Write, joined
from locks.exceptions import BadLockName, LockChanged
from locks.models import RELEASED, LockItem

_NAMES = {"#key": "key"}


def checked_name(name: str) -> str:
    """The name, where a lock can have it.

    Raises:
        BadLockName: it is no text, empty, over 2,048 bytes, or nothing that UTF-8 can write.
    """
    if not isinstance(name, str):
        raise BadLockName(name)
    try:
        size_bytes = len(name.encode())
    except UnicodeEncodeError as error:
        raise BadLockName(name) from error
    if not 1 <= size_bytes <= PARTITION_KEY_MAX_BYTES:
        raise BadLockName(name)
    return name


def checked_data(data: bytes) -> bytes:
    """The data, where a lock can carry it.

    PynamoDB would take a text for Base64, and another holder read what that decodes to.

    Raises:
        TypeError: it is no bytes.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"What is left on a lock is bytes, not {type(data).__name__}.")
    return data


def new_version() -> str:
    """A record version that nobody has used."""
    return str(uuid.uuid4())


def read(name: str) -> LockItem | None:
    """The lock as it is stored, None where it is not. Costs 1 request, 1 read unit.

    Raises:
        DamagedItem: an attribute is of another type.
    """
    item = read_raw(name)
    return LockItem.from_raw_data(item) if item else None


def read_raw(name: str) -> Item | None:
    """The same as on the wire, however damaged."""
    answer = send("GetItem", {"TableName": LockItem.table(), "Key": {"key": {"S": name}}})
    return answer.get("Item") or None


def take(
    name: str,
    owner: str,
    version: str,
    lease_milliseconds: int,
    *,
    data: bytes | None = None,
    over: Item | None = None,
) -> tuple[bool, Item | None]:
    """Make `owner` the holder, under a `version` that is new.

    Only where the lock is absent or released; or, with `over`, where it is as it was then.
    Returns whether it was taken, and the lock as it is stored now, on the wire. Attributes that
    we do not know are kept, and so is `data` where none is given. Costs 1 request, 1 write unit.
    """
    values: Item = {
        ":owner": {"S": owner},
        ":lease": {"S": str(lease_milliseconds)},
        ":version": {"S": version},
        ":renewed": {"S": _time_of_day()},
        # The clock starts a fencing token that is not there; from then on it only rises.
        ":clock": {"N": str(time_ns() // 1000)},
        ":one": {"N": "1"},
    }
    names: dict[str, str] = {}
    changes = (
        "SET ownerName = :owner, leaseDuration = :lease, recordVersionNumber = :version, "
        "renewedAt = :renewed, fencingToken = if_not_exists(fencingToken, :clock) + :one"
    )
    changes = _and_data(changes, data, values, names)
    if over is None:
        condition = "attribute_not_exists(#key) OR isReleased = :free"
        values[":free"] = {"S": RELEASED}
    else:
        condition = _unchanged(over, values)
    request = _request(name, condition, values, names | _NAMES)
    request["UpdateExpression"] = f"{changes} REMOVE isReleased"
    request["ReturnValues"] = "ALL_NEW"
    try:
        # It counts the fence up, but once it has arrived its condition is false.
        answer = send("UpdateItem", request, repeatable=True)
    except ConditionFailed as refused:
        stored = _stored(refused, name)
        return _version_of(stored) == version, stored
    return True, answer["Attributes"]


def renew(name: str, owner: str, versions: Sequence[str], version: str, data: bytes | None) -> bool:
    """Whether `owner` held the lock under one of `versions`, and now does under `version`.

    Leaves `data` on it, where that is not None. Costs 1 request, 1 write unit.
    """
    values: Item = {":version": {"S": version}, ":renewed": {"S": _time_of_day()}}
    names: dict[str, str] = {}
    changes = "SET recordVersionNumber = :version, renewedAt = :renewed"
    changes = _and_data(changes, data, values, names)
    condition = _held(owner, versions, values)
    request = _request(name, condition, values, names) | {"UpdateExpression": changes}
    try:
        send("UpdateItem", request)
    except ConditionFailed as refused:
        return _version_of(_stored(refused, name)) == version
    return True


def release(name: str, owner: str, versions: Sequence[str], version: str) -> bool:
    """Whether `owner` held the lock under one of `versions`, and gave it free.

    A release under one of `versions` that had arrived unknown to us counts as well, and so does
    one whose reply was lost where another has the lock by now. Costs 1 request, 1 write unit.
    """
    values: Item = {":version": {"S": version}, ":free": {"S": RELEASED}}
    condition = _held(owner, versions, values)
    request = _request(name, condition, values, {})
    request["UpdateExpression"] = "SET recordVersionNumber = :version, isReleased = :free"
    try:
        send("UpdateItem", request)
    except ConditionFailed as refused:
        # Who comes next may have been faster than our repetition.
        return refused.repeated or _version_of(_stored(refused, name)) in versions
    return True


def remove(name: str, versions: Sequence[str]) -> bool:
    """Delete the lock's item while it has one of `versions`; whether it is gone, or was already.

    Costs 1 request, 1 write unit. As for `release`, another may have the lock by now.
    """
    values: Item = {}
    request = _request(name, _one_of(versions, values), values, {})
    try:
        send("DeleteItem", request)
    except ConditionFailed as refused:
        return refused.repeated or _stored(refused, name) is None
    return True


def claim(name: str, owner: str) -> bool:
    """Put a lock that never lapses, if there is no item yet. Costs 1 request, 1 write unit."""
    version = new_version()
    item: Item = {
        "key": {"S": name},
        "ownerName": {"S": owner},
        "recordVersionNumber": {"S": version},
        "renewedAt": {"S": _time_of_day()},
    }
    request = {
        "TableName": LockItem.table(),
        "Item": item,
        "ConditionExpression": "attribute_not_exists(#key)",
        "ExpressionAttributeNames": _NAMES,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    try:
        send("PutItem", request)
    except ConditionFailed as refused:
        return _version_of(_stored(refused, name)) == version
    return True


def free(name: str, seen: Item, *, write: Transaction | None = None) -> None:
    """Give the lock free, and keep its fencing token if it has one. Costs 1 request, 1 write unit.

    Raises:
        LockChanged: it is not as `seen`.
    """
    version = new_version()
    values: Item = {":version": {"S": version}, ":free": {"S": RELEASED}}
    request = _request(name, _unchanged(seen, values), values, _NAMES)
    changes = "SET recordVersionNumber = :version, isReleased = :free"
    # One that is no whole number would let nobody take the lock.
    damaged = not seen.get("fencingToken", {"N": "0"}).get("N", "").isdigit()
    request["UpdateExpression"] = f"{changes} REMOVE fencingToken" if damaged else changes

    def otherwise(refusal: Refusal) -> Exception | None:
        return None if _version_of(refusal.stored) == version else LockChanged(name)

    with joined(write) as write:
        write.add(Write(request, {"Update": request}, otherwise))


def delete(name: str, seen: Item, *, write: Transaction | None = None) -> None:
    """Delete the lock's item. Costs and raises as `free`."""
    values: Item = {}
    request = _request(name, _unchanged(seen, values), values, _NAMES)

    def otherwise(refusal: Refusal) -> Exception | None:
        gone = refusal.repeated and refusal.stored is None
        return None if gone else LockChanged(name)

    with joined(write) as write:
        write.add(Write(request, {"Delete": request}, otherwise))


def _request(name: str, condition: str, values: Item, names: dict[str, str]) -> dict[str, Any]:
    request: dict[str, Any] = {
        "TableName": LockItem.table(),
        "Key": {"key": {"S": name}},
        "ConditionExpression": condition,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    # Neither may be empty.
    if values:
        request["ExpressionAttributeValues"] = values
    if names:
        request["ExpressionAttributeNames"] = names
    return request


def _and_data(changes: str, data: bytes | None, values: Item, names: dict[str, str]) -> str:
    """The changes, which leave `data` on the lock as well where it is not None."""
    if data is None:
        return changes
    values[":data"], names["#data"] = {"B": data}, "data"
    return f"{changes}, #data = :data"


def _held(owner: str, versions: Sequence[str], values: Item) -> str:
    values[":us"] = {"S": owner}
    ours = "ownerName = :us AND attribute_not_exists(isReleased)"
    return f"{_one_of(versions, values)} AND {ours}"


def _one_of(versions: Sequence[str], values: Item) -> str:
    values |= {f":v{number}": {"S": version} for number, version in enumerate(versions)}
    return f"recordVersionNumber IN ({', '.join(f':v{n}' for n in range(len(versions)))})"


def _unchanged(seen: Item, values: Item) -> str:
    """The condition that the record version is the one seen; also where it is no text."""
    version = seen.get("recordVersionNumber")
    if version is None:
        return "attribute_exists(#key) AND attribute_not_exists(recordVersionNumber)"
    values[":seen"] = version
    return "attribute_exists(#key) AND recordVersionNumber = :seen"


def _time_of_day() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _version_of(item: Item | None) -> str | None:
    return None if item is None else item.get("recordVersionNumber", {}).get("S")


def _stored(refused: ConditionFailed, name: str) -> Item | None:
    """What stood in the way; read where the engine did not say it."""
    return refused.stored or read_raw(name)
