"""The requests that read and change a lock's item, each under the condition that makes it safe.

Each write is recognized by the record version that it stores: if its reply is lost and its
repetition is refused, the stored version shows whether the first one arrived.

A lock can be *released*, which keeps its item, or *deleted*. `release_held` and `delete_held` are
for its holder. `break_seen` is for others: it breaks the lock if it has not changed since they read
it.

Requests are written as on the wire (see `write_one`). `key` and `data` are reserved words of
DynamoDB.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from time import time_ns
from typing import TypedDict

from dynamo import Transaction, joined
from dynamo.client.sending import read_item, write_one
from dynamo.client.writes import Refusal, Write
from dynamo.wire.types import Address, Item, Typed
from dynamo.wire.updates import Update, conditional
from dynamo.wire.values import fits_key
from locks.exceptions import BadLockName, LockChanged
from locks.models import RELEASED, LockItem


def checked_name(name: object) -> str:
    """Return `name` if a lock can have it.

    Raises:
        BadLockName: it is not text, empty, over 2,048 bytes, or cannot be encoded in UTF-8.
    """
    if not isinstance(name, str) or not fits_key(name):
        raise BadLockName(name)
    return name


def checked_data(data: bytes) -> bytes:
    """Return `data` if it is bytes. PynamoDB would decode a text as Base64.

    Raises:
        TypeError: it is not bytes.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"The data of a lock must be bytes, not {type(data).__name__}.")
    return data


def new_version() -> str:
    """A new record version, which was never used."""
    return str(uuid.uuid4())


def read(name: str) -> LockItem | None:
    """Read the lock; None if it does not exist. Costs 1 request, 1 read unit.

    Raises:
        DamagedItem: an attribute has another type.
    """
    item = read_raw(name)
    return LockItem.from_raw_data(item) if item else None


def read_raw(name: str) -> Item | None:
    """Read the lock as on the wire, even if it is damaged."""
    return read_item(_address(name))


def take(
    name: str,
    owner: str,
    version: str,
    lease_milliseconds: int,
    *,
    data: bytes | None = None,
    instead_of: Item | None = None,
) -> tuple[bool, Item | None]:
    """Make `owner` the holder, under a new `version`. Costs 1 request, 1 write unit.

    The lock must be absent or released. With `instead_of`, an item that was read before, it must
    not have changed since then. Returns whether it was taken, and the item that is now stored, on
    the wire. Unknown attributes are kept; so is the stored data if `data` is None.
    """
    update = Update(
        {
            "ownerName": {"S": owner},
            "leaseDuration": {"S": str(lease_milliseconds)},
            "recordVersionNumber": {"S": version},
            "renewedAt": {"S": _time_of_day()},
            "isReleased": None,
            **_stored_data(data),
        },
        # The first fencing token comes from the clock. After that, it only increases.
        count={"fencingToken": ({"N": str(time_ns() // 1000)}, {"N": "1"})},
    )
    condition = _FREE if instead_of is None else _unchanged(instead_of)
    request = update.request(_address(name), **condition)
    request["ReturnValues"] = "ALL_NEW"
    # The request can be repeated although it increases the token: after it was carried out, its
    # condition is false.
    outcome = write_one("UpdateItem", request)
    if outcome:
        return True, outcome.item
    return _version_of(outcome.stored) == version, outcome.stored


def renew(name: str, versions: Sequence[str], version: str, data: bytes | None) -> bool:
    """Store `version` if the lock has one of `versions`; return whether it is stored.

    Nothing is stored if another program, such as an operator's script, marked the lock as released,
    because a waiter may take it. `data` is stored as well, unless it is None. Costs 1 request, 1
    write unit.
    """
    now: Typed = {"S": _time_of_day()}
    update = Update({"recordVersionNumber": {"S": version}, "renewedAt": now, **_stored_data(data)})
    unreleased = _held(versions, " AND attribute_not_exists(isReleased)")
    outcome = write_one("UpdateItem", update.request(_address(name), **unreleased))
    return bool(outcome) or _version_of(outcome.stored) == version


def release_held(name: str, versions: Sequence[str], version: str) -> bool:
    """Release the lock if it has one of `versions`; return whether it is released.

    Also True if an earlier release under one of `versions` had arrived, or if the reply was lost
    and another holder has the lock now. Costs 1 request, 1 write unit.
    """
    request = Update(_released(version)).request(_address(name), **_held(versions))
    outcome = write_one("UpdateItem", request)
    # If an earlier attempt released the lock, another process may hold it now.
    return bool(outcome) or outcome.repeated or _version_of(outcome.stored) in versions


def delete_held(name: str, versions: Sequence[str]) -> bool:
    """Delete the lock's item if it has one of `versions`; return whether it is gone.

    As after `release_held`, another holder may have the lock now. Costs 1 request, 1 write unit.
    """
    outcome = write_one("DeleteItem", conditional(_address(name), **_held(versions)))
    return bool(outcome) or outcome.repeated or outcome.stored is None


def claim(name: str, owner: str) -> bool:
    """Put a lock that never expires, if there is no item yet. Costs 1 request, 1 write unit."""
    version = new_version()
    item: Item = {
        "key": {"S": name},
        "ownerName": {"S": owner},
        "recordVersionNumber": {"S": version},
        "renewedAt": {"S": _time_of_day()},
    }
    absent = _condition("attribute_not_exists(#key)", {})
    outcome = write_one("PutItem", conditional({**_address(name), "Item": item}, **absent))
    return bool(outcome) or _version_of(outcome.stored) == version


def break_seen(name: str, seen: Item, *, delete: bool, write: Transaction | None = None) -> None:
    """Release the lock of any holder, keeping its fencing token, or delete its item.

    Costs 1 request, 1 write unit.

    Raises:
        LockChanged: its record version is not that of `seen`.
    """
    version = new_version()
    if delete:
        kind, request = "Delete", conditional(_address(name), **_unchanged(seen))
    else:
        # A lock whose token is not a whole number cannot be acquired.
        damaged = not seen.get("fencingToken", {"N": "0"}).get("N", "").isdigit()
        update = Update(_released(version) | ({"fencingToken": None} if damaged else {}))
        kind, request = "Update", update.request(_address(name), **_unchanged(seen))

    def otherwise(refusal: Refusal) -> Exception | None:
        is_deleted = delete and refusal.repeated and not refusal.stored
        is_released = not delete and _version_of(refusal.stored) == version
        return None if is_deleted or is_released else LockChanged(name)

    with joined(write) as write:
        write.add(Write(request, kind, request, otherwise))


def _address(name: str) -> Address:
    return {"TableName": LockItem.table(), "Key": {"key": {"S": name}}}


def _released(version: str) -> Item:
    return {"recordVersionNumber": {"S": version}, "isReleased": {"S": RELEASED}}


def _stored_data(data: bytes | None) -> Item:
    return {} if data is None else {"data": {"B": data}}


# Conditions: the arguments of `conditional` -------------------------------------------------------


class _Under(TypedDict):
    condition: str
    values: Item
    names: dict[str, str]


def _condition(condition: str, values: Item) -> _Under:
    names = {"#key": "key"} if "#key" in condition else {}
    return {"condition": condition, "values": values, "names": names}


_FREE = _condition("attribute_not_exists(#key) OR isReleased = :free", {":free": {"S": RELEASED}})


def _held(versions: Sequence[str], more: str = "") -> _Under:
    """The condition `more`, and that the record version is one of `versions`, which are ours."""
    values: Item = {f":v{number}": {"S": version} for number, version in enumerate(versions)}
    return _condition(f"recordVersionNumber IN ({', '.join(values)}){more}", values)


def _unchanged(seen: Item) -> _Under:
    """The condition that the record version is that of `seen`, which may have any type."""
    version = seen.get("recordVersionNumber")
    if version is None:
        return _condition(
            "attribute_exists(#key) AND attribute_not_exists(recordVersionNumber)", {}
        )
    return _condition("recordVersionNumber = :seen", {":seen": version})


def _time_of_day() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _version_of(item: Item | None) -> str | None:
    return None if item is None else item.get("recordVersionNumber", {}).get("S")
