"""The conditional writes of the lock client for Java, exactly as it sends them.

Source: AmazonDynamoDBLockClient and LockItem of
https://github.com/awslabs/amazon-dynamodb-lock-client (1.2).
"""

import uuid
from dataclasses import dataclass
from typing import Any

from dynamo import ConditionFailed
from dynamo.client.sending import send
from tests.items import Item

_EXISTS = "attribute_exists(#pk)"
_FREE = f"attribute_not_exists(#pk) OR ({_EXISTS} AND #ir = :ir)"
_RELEASED = f"{_EXISTS} AND #ir = :ir"
_UNCHANGED = f"{_EXISTS} AND #rvn = :rvn"
_OURS = f"{_EXISTS} AND #rvn = :rvn AND #on = :on"

_NAMES = {
    "#pk": "key",
    "#ld": "leaseDuration",
    "#rvn": "recordVersionNumber",
    "#on": "ownerName",
    "#ir": "isReleased",
}


@dataclass
class JavaLease:
    """A lock that the client holds, as far as it knows."""

    key: str
    owner: str
    version: str

    def heartbeat(self) -> bool:
        """Renew the lock; return whether the client still held it."""
        fresh = str(uuid.uuid4())
        update = "SET #ld = :ld, #rvn = :newRvn"
        if self._sent("UpdateItem", update, **{":ld": "20000", ":newRvn": fresh}):
            self.version = fresh
        return self.version == fresh

    def release(self) -> bool:
        """Release the lock; return whether the client still held it."""
        return self._sent("UpdateItem", "SET #ir = :ir", **{":ir": "1"})

    def delete(self) -> bool:
        """Release the lock and delete its item; return whether the client still held it."""
        return self._sent("DeleteItem")

    def _sent(self, operation: str, update: str | None = None, **values: str) -> bool:
        request: dict[str, Any] = {"Key": {"key": {"S": self.key}}}
        if update is not None:
            request["UpdateExpression"] = update
        ours = {":rvn": self.version, ":on": self.owner}
        return _is_sent(operation, request, _OURS, ours | values)


def acquire(
    key: str, *, lease_milliseconds: int = 20_000, data: bytes | None = None
) -> JavaLease | None:
    """Take a lock that is absent or released."""
    return _put(key, _FREE, {":ir": "1"}, lease_milliseconds, data)


def taken(key: str, **how: Any) -> JavaLease:
    """Like `acquire`, of a lock that is free."""
    lease = acquire(key, **how)
    assert lease is not None
    return lease


def acquire_released(key: str) -> JavaLease | None:
    """Take a lock that was read as released."""
    return _put(key, _RELEASED, {":ir": "1"})


def acquire_expired(key: str, seen_version: str) -> JavaLease | None:
    """Take a lock whose version did not change for a whole lease."""
    return _put(key, _UNCHANGED, {":rvn": seen_version})


def _put(
    key: str,
    condition: str,
    values: dict[str, str],
    lease_milliseconds: int = 20_000,
    data: bytes | None = None,
) -> JavaLease | None:
    lease = JavaLease(key, "java", str(uuid.uuid4()))
    item: Item = {
        "key": {"S": key},
        "ownerName": {"S": lease.owner},
        "leaseDuration": {"S": str(lease_milliseconds)},
        "recordVersionNumber": {"S": lease.version},
    }
    if data is not None:
        item["data"] = {"B": data}
    return lease if _is_sent("PutItem", {"Item": item}, condition, values) else None


def _is_sent(
    operation: str, request: dict[str, Any], condition: str, values: dict[str, str]
) -> bool:
    text = condition + request.get("UpdateExpression", "")
    request |= {
        "TableName": "locks",
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {name: of for name, of in _NAMES.items() if name in text},
        "ExpressionAttributeValues": {name: {"S": value} for name, value in values.items()},
    }
    try:
        send(operation, request)
    except ConditionFailed:
        return False
    return True
