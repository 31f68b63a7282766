"""The conditional writes of the lock client for Java, exactly as it sends them.

Source: AmazonDynamoDBLockClient and LockItem of
https://github.com/awslabs/amazon-dynamodb-lock-client (1.2).
"""

import uuid
from dataclasses import dataclass
from typing import Any

from dynamo._internal.client.sending import send
from dynamo._internal.items import Item
from dynamo.exceptions import ConditionFailed

_EXISTS = "attribute_exists(#pk)"
_FREE = f"attribute_not_exists(#pk) OR ({_EXISTS} AND #ir = :ir)"
_RELEASED = f"{_EXISTS} AND #ir = :ir"
_UNCHANGED = f"{_EXISTS} AND #rvn = :rvn"
_OURS = f"{_EXISTS} AND #rvn = :rvn AND #on = :on"


@dataclass
class JavaLease:
    """A lock that the client holds, as far as it knows."""

    key: str
    owner: str
    version: str

    def heartbeat(self) -> bool:
        """Renew the lock; return whether the client still held it."""
        fresh = str(uuid.uuid4())
        done = _sent(
            "UpdateItem",
            {
                "Key": {"key": {"S": self.key}},
                "UpdateExpression": "SET #ld = :ld, #rvn = :newRvn",
                "ConditionExpression": _OURS,
            },
            {"#pk": "key", "#ld": "leaseDuration", "#rvn": "recordVersionNumber"}
            | {"#on": "ownerName"},
            {":ld": "20000", ":newRvn": fresh, ":rvn": self.version} | {":on": self.owner},
        )
        if done:
            self.version = fresh
        return done

    def release(self, *, delete: bool = False) -> bool:
        """Release the lock; return whether the client still held it."""
        names = {"#pk": "key", "#rvn": "recordVersionNumber", "#on": "ownerName"}
        values = {":rvn": self.version, ":on": self.owner}
        request: dict[str, Any] = {"Key": {"key": {"S": self.key}}, "ConditionExpression": _OURS}
        if delete:
            return _sent("DeleteItem", request, names, values)
        request["UpdateExpression"] = "SET #ir = :ir"
        return _sent("UpdateItem", request, names | {"#ir": "isReleased"}, values | {":ir": "1"})


def acquire(
    key: str, *, lease_milliseconds: int = 20_000, data: bytes | None = None
) -> JavaLease | None:
    """Take a lock that is absent or released."""
    names, values = {"#ir": "isReleased"}, {":ir": "1"}
    return _put(key, _FREE, names, values, lease_milliseconds, data)


def taken(key: str, **how: Any) -> JavaLease:
    """As `acquire`, of a lock that is free."""
    lease = acquire(key, **how)
    assert lease is not None
    return lease


def acquire_released(key: str) -> JavaLease | None:
    """Take a lock that was read as released."""
    return _put(key, _RELEASED, {"#ir": "isReleased"}, {":ir": "1"})


def acquire_expired(key: str, seen_version: str) -> JavaLease | None:
    """Take a lock whose version did not change for a whole lease."""
    return _put(key, _UNCHANGED, {"#rvn": "recordVersionNumber"}, {":rvn": seen_version})


def _put(
    key: str,
    condition: str,
    names: dict[str, str],
    values: dict[str, str],
    lease_milliseconds: int = 20_000,
    data: bytes | None = None,
) -> JavaLease | None:
    owner, version = "java", str(uuid.uuid4())
    item: Item = {
        "key": {"S": key},
        "ownerName": {"S": owner},
        "leaseDuration": {"S": str(lease_milliseconds)},
        "recordVersionNumber": {"S": version},
    }
    if data is not None:
        item["data"] = {"B": data}
    request = {"Item": item, "ConditionExpression": condition}
    taken = _sent("PutItem", request, {"#pk": "key"} | names, values)
    return JavaLease(key, owner, version) if taken else None


def _sent(
    operation: str, request: dict[str, Any], names: dict[str, str], values: dict[str, str]
) -> bool:
    request = request | {
        "TableName": "locks",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {name: {"S": value} for name, value in values.items()},
    }
    try:
        send(operation, request)
    except ConditionFailed:
        return False
    return True
