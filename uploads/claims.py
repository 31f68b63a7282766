"""Claims: before a process writes an object to S3, it writes its name to the object's row.

Each process holds one lock, and the rows that it works on name that lock and its fencing token (see
`locks.holders`). Every write to a row requires that the row names the writer. After a lost reply,
each request here can safely be repeated.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pynamodb.expressions.condition import Condition

from dynamo.client.sending import Outcome, read_item, write_one
from dynamo.wire.types import Address, Item
from dynamo.wire.updates import Update, conditional
from locks import Lease
from locks.holders import Holder
from uploads.exceptions import ClaimLost
from uploads.models import DONE, UPLOADING, UploadItem

LOCK_PREFIX = "uploads#"

#: The mean time between two looks at a process that holds a row.
POLL_SECONDS = 1.0

_IS_UPLOADING = UploadItem.state == UPLOADING
# If a row has no lease, its upload was interrupted or failed.
_ABSENT_OR_FREE = UploadItem.url.does_not_exist() | (
    _IS_UPLOADING & UploadItem.lease.does_not_exist()
)


@dataclass(frozen=True)
class Claim:
    """A row that names this process.

    `is_only_upload` says that S3 has no multipart upload of the key except `upload_id`. It is also
    False if this is unknown: if the row existed before the claim, or while a created upload is not
    yet recorded.
    """

    url: str
    lease: Lease
    upload_id: str | None
    is_only_upload: bool

    @property
    def holder(self) -> Holder:
        return Holder(self.lease.name, self.lease.fence)


def holder_of(row: UploadItem) -> Holder | None:
    return Holder(row.lease, row.fence or 0) if row.lease else None


def read(url: str) -> Item | None:
    """The row as stored, even if it is damaged. Costs 1 read unit."""
    return read_item(_address(url))


def take(
    url: str, size: int, lease: Lease, held_by: Holder | None = None
) -> Claim | UploadItem | None:
    """Claim the row if it is absent or free, or if it names `held_by`, a process that is gone.

    Otherwise, returns the stored row, or None if it was deleted in the meantime. Costs 1 request, 1
    write unit.
    """
    # The checksum is written with `done`.
    condition = _ABSENT_OR_FREE if held_by is None else _is_held_by(held_by)
    values = {"state": UPLOADING, "size": size, "lease": lease.name, "fence": lease.fence}
    outcome = _update(url, condition, **values)
    if not outcome:
        row = _row(outcome)
        us = Holder(lease.name, lease.fence)
        if row is None or row.state != UPLOADING or holder_of(row) != us:
            return row
        # An earlier attempt succeeded, or this process could not release the row.
        return Claim(url, lease, row.upload_id, is_only_upload=False)
    # dynoxide returns the key for a row that did not exist.
    before = outcome.item or {}
    upload_id = before.get("uploadId", {}).get("S")
    return Claim(url, lease, upload_id, is_only_upload="state" not in before)


def record_upload(claim: Claim, upload_id: str) -> Claim:
    """Write the id of the multipart upload to the row. Costs 1 request, 1 write unit.

    Raises:
        ClaimLost: the row names another process.
    """
    outcome = _update(claim.url, _is_held_by(claim.holder), upload_id=upload_id)
    if not outcome:
        raise ClaimLost(claim.url) from outcome.refused
    return replace(claim, upload_id=upload_id)


def finish(claim: Claim, size: int, sha256: str, etag: str) -> None:
    """Write that the object is stored. Costs 1 request, 1 write unit.

    Raises:
        ClaimLost: the row names another process.
    """
    stored = {"state": DONE, "size": size, "sha256": sha256, "etag": etag}
    removed = dict.fromkeys(("upload_id", "lease", "fence"))
    outcome = _update(claim.url, _is_held_by(claim.holder), **stored, **removed)
    if not outcome:
        row = _row(outcome)
        # In this case, an earlier attempt succeeded, or another process stored the same.
        if row is None or (row.state, row.size, row.sha256) != (DONE, size, sha256):
            raise ClaimLost(claim.url) from outcome.refused


def release(claim: Claim) -> None:
    """Free the row, so that another run continues from its parts. Costs 1 request, 1 write unit."""
    # This is refused if the row is free or names another process.
    _update(claim.url, _is_held_by(claim.holder), lease=None, fence=None)


def delete(claim: Claim) -> None:
    """Delete the row, because this process stored nothing. Costs 1 request, 1 write unit."""
    # This is refused if the row was deleted or names another process.
    _delete(claim.url, _is_held_by(claim.holder))


def delete_unchanged(row: UploadItem) -> bool:
    """Delete a row unless it changed since it was read. Returns whether it is gone.

    Costs 1 request, 1 write unit.
    """
    condition = UploadItem.state == row.state
    # The time distinguishes it from a row of the same contents that was uploaded again.
    for name in ("lease", "fence", "sha256", "etag", "updated_at"):
        attribute = getattr(UploadItem, name)
        value = getattr(row, name)
        condition &= attribute.does_not_exist() if value is None else attribute == value
    outcome = _delete(row.url, condition)
    # A refusal without a row means that an earlier attempt succeeded, or another process deleted
    # it.
    return bool(outcome) or outcome.stored is None


def _is_held_by(holder: Holder) -> Condition:
    return _IS_UPLOADING & (UploadItem.lease == holder.lease) & (UploadItem.fence == holder.fence)


def _update(url: str, condition: Condition, **values: object) -> Outcome:
    """Set the attributes, by Python name, if `condition` holds; None removes one."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    changes = Update.of_actions(UploadItem.set_or_remove(values | {"updated_at": now}))
    request = changes.request(_address(url), condition) | {"ReturnValues": "ALL_OLD"}
    return write_one("UpdateItem", request)


def _delete(url: str, condition: Condition) -> Outcome:
    return write_one("DeleteItem", conditional(_address(url), condition))


def _address(url: str) -> Address:
    return {"TableName": UploadItem.table(), "Key": {"key": {"S": url}}}


def _row(refused: Outcome) -> UploadItem | None:
    """The row that failed the condition."""
    return UploadItem.from_raw_data(refused.stored) if refused.stored else None
