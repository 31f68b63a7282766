"""Who works on an object: its row in the table, claimed before anything is written to S3.

Every write to a row is made by the process that the row names, under the lease and the fence that
it names. Each of these requests may be repeated where its reply was lost.

They are written out as on the wire: thousands of files a day cost two each, and building them from
expressions takes as long as signing them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dynamo.client import send
from dynamo.exceptions import ConditionFailed
from dynamo.models import Item
from locks.leases import Lease
from uploads.exceptions import ClaimLost
from uploads.models import DONE, UPLOADING, UploadItem


class Holder(NamedTuple):
    """The process that a row names: its lock, and that lock's fencing token."""

    lease: str
    fence: int


@dataclass(frozen=True)
class Claim:
    """A row that names us.

    `is_tidy`: S3 can have no multipart upload of the key that the row does not name. It may have
    one where the row was there before us, or where we began one and do not know its id.
    """

    url: str
    lease: Lease
    upload_id: str | None
    is_tidy: bool

    @property
    def holder(self) -> Holder:
        """Us, as the row names us."""
        return Holder(self.lease.name, self.lease.fence)


# A row without a lease was left by an upload that was interrupted or failed.
_ABSENT_OR_FREE = (
    "attribute_not_exists(#key) OR (#state = :uploading AND attribute_not_exists(#lease))"
)
_HELD = "#state = :uploading AND #lease = :holder AND #fence = :its_fence"

_Values = dict[str, str | int | None]
"""Attributes to set, by their stored names; None removes one."""


def holder_of(row: UploadItem) -> Holder:
    """Who works on the row."""
    return Holder(row.lease or "", row.fence or 0)


def read(url: str) -> Item | None:
    """The row on the wire, however damaged; None where there is none. Costs 1 read unit."""
    answer = send("GetItem", {"TableName": UploadItem.table(), "Key": {"key": _typed(url)}})
    return answer.get("Item") or None


def take(url: str, size: int, lease: Lease) -> Claim | UploadItem | None:
    """Claim the row that is absent or free; else the row that stands in the way.

    None where that was there and is not any more. Costs 1 request, 1 write unit.
    """
    return _claim(url, size, lease, None)


def take_over(row: UploadItem, size: int, lease: Lease) -> Claim | UploadItem | None:
    """Claim the row of a holder that is gone, if it is still that one's. Else as `take`."""
    return _claim(row.url, size, lease, holder_of(row))


def _claim(url: str, size: int, lease: Lease, held_by: Holder | None) -> Claim | UploadItem | None:
    # The checksum is written with `done`: until then nobody compares it.
    values: _Values = {
        "state": UPLOADING,
        "size": size,
        "lease": lease.name,
        "fence": lease.fence,
    }
    try:
        answer = _update(url, values, held_by)
    except ConditionFailed as refused:
        row = _stored(refused, url)
        us = Holder(lease.name, lease.fence)
        if row is None or row.state != UPLOADING or holder_of(row) != us:
            return row
        # Our own lost reply, or a row that we could not give up.
        return Claim(url, lease, row.upload_id, is_tidy=False)
    # Of a row that was not there dynoxide returns the key.
    before: Item = answer.get("Attributes", {})
    upload_id = before.get("uploadId", {}).get("S")
    return Claim(url, lease, upload_id, is_tidy="state" not in before)


def note(claim: Claim, upload_id: str | None) -> Claim:
    """Write down our multipart upload, or that there is none. Costs 1 request, 1 write unit.

    Raises:
        ClaimLost: the row is another's now.
    """
    try:
        _update(claim.url, {"uploadId": upload_id}, claim.holder)
    except ConditionFailed as refused:
        raise ClaimLost(claim.url) from refused
    return replace(claim, upload_id=upload_id)


def finish(claim: Claim, size: int, sha256: str, etag: str) -> None:
    """Write down that the object is stored. Costs 1 request, 1 write unit.

    Raises:
        ClaimLost: the row is another's now.
    """
    values: _Values = {
        "state": DONE,
        "size": size,
        "sha256": sha256,
        "etag": etag,
        "uploadId": None,
        "lease": None,
        "fence": None,
    }
    try:
        _update(claim.url, values, claim.holder)
    except ConditionFailed as refused:
        row = _stored(refused, claim.url)
        # Our own lost reply, or another who stored the same.
        if row is None or (row.state, row.size, row.sha256) != (DONE, size, sha256):
            raise ClaimLost(claim.url) from refused


def let_go(claim: Claim) -> None:
    """Leave the row free, for whoever goes on from its parts. Costs 1 request, 1 write unit."""
    try:
        _update(claim.url, {"lease": None, "fence": None}, claim.holder)
    except ConditionFailed:
        return  # it is free, or another's


def give_up(claim: Claim) -> None:
    """Delete the row: nothing of the object is in S3 by us. Costs 1 request, 1 write unit."""
    try:
        send("DeleteItem", _request(claim.url, {}, claim.holder))
    except ConditionFailed:
        return  # it is deleted, or another's


def forget(row: UploadItem) -> bool:
    """Delete a row that is done, if it still is as it was read; whether it is gone.

    Costs 1 request, 1 write unit.
    """
    # The time tells it from one of the same contents that was uploaded again since.
    seen: dict[str, str | None] = {
        "sha256": row.sha256,
        "etag": row.etag,
        "updatedAt": row.updated_at,
    }
    conditions = [
        f"#{name} = :{name}" if value is not None else f"attribute_not_exists(#{name})"
        for name, value in seen.items()
    ]
    stored = {f":{name}": _typed(value) for name, value in seen.items() if value is not None}
    request = {
        "TableName": UploadItem.table(),
        "Key": {"key": _typed(row.url)},
        "ConditionExpression": " AND ".join(["#state = :done", *conditions]),
        "ExpressionAttributeNames": {f"#{name}": name for name in ("state", *seen)},
        "ExpressionAttributeValues": {":done": _typed(DONE), **stored},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    try:
        send("DeleteItem", request)
    except ConditionFailed as refused:
        # Our own lost reply, or another who forgot it.
        return _stored(refused, row.url) is None
    return True


def _update(url: str, values: _Values, held_by: Holder | None) -> dict[str, Any]:
    """Set the `values` where the row is that holder's, or with None absent or free."""
    values = values | {"updatedAt": datetime.now(UTC).isoformat(timespec="milliseconds")}
    request = _request(url, values, held_by)
    sets = ", ".join(f"#{name} = :{name}" for name, value in values.items() if value is not None)
    removes = ", ".join(f"#{name}" for name, value in values.items() if value is None)
    request["UpdateExpression"] = f"SET {sets}" + (f" REMOVE {removes}" if removes else "")
    request["ReturnValues"] = "ALL_OLD"
    return send("UpdateItem", request)


def _request(url: str, values: _Values, held_by: Holder | None) -> dict[str, Any]:
    names = {*values, "state", "lease", "key" if held_by is None else "fence"}
    stored: Item = {
        f":{name}": _typed(value) for name, value in values.items() if value is not None
    }
    stored[":uploading"] = _typed(UPLOADING)
    if held_by is not None:
        stored |= {":holder": _typed(held_by.lease), ":its_fence": _typed(held_by.fence)}
    return {
        "TableName": UploadItem.table(),
        "Key": {"key": _typed(url)},
        "ConditionExpression": _ABSENT_OR_FREE if held_by is None else _HELD,
        "ExpressionAttributeNames": {f"#{name}": name for name in names},
        "ExpressionAttributeValues": stored,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _typed(value: str | int) -> dict[str, str]:
    return {"N": str(value)} if isinstance(value, int) else {"S": value}


def _stored(refused: ConditionFailed, url: str) -> UploadItem | None:
    """What stood in the way; read where the engine did not say it."""
    item = refused.stored or read(url)
    return UploadItem.from_raw_data(item) if item else None
