"""Makes the files of `invoices.output.exports`, in a function of AWS Lambda.

Lambda may run an event twice, also at the same time: both runs write the same key, and S3 takes
only the first (If-None-Match). It runs an event again if the function was killed; the parts that
were stored until then are removed by the bucket's lifecycle rule.
"""

from __future__ import annotations

import hashlib
import logging
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.conf import settings

from accounts.models import User
from invoices.exceptions import ExportTooSlow
from invoices.output import exports as stored_exports
from invoices.output.exports import FAILED, Export
from invoices.output.files import YEAR_FILES, account_as_json
from invoices.store.issuing import today
from invoices.store.lists import all_records
from web import s3
from web.s3 import ObjectExists, StorageFailed

log = logging.getLogger(__name__)

#: What is kept of the function's time to remove what it stored.
SECONDS_TO_CLEAN_UP = 10.0

PART_BYTES = 8 * 1024 * 1024


def make(event: dict[str, Any], seconds: float) -> None:
    """Create the file of the export in `event`, as `start` sent it, within `seconds`.

    Nothing happens if it was made, or failed, before. Memory holds one part (8 MB) and one page of
    invoices (1 MB). Costs 2 requests to S3, 1 for each part, and those of the file's pieces.

    Raises:
        ExportTooSlow: it would take longer. As after all errors, the parts are removed.
        StorageFailed: see `web.s3`.
    """
    began = time.monotonic()
    ends_at = began + seconds - SECONDS_TO_CLEAN_UP
    export = Export(**event)
    if not _stored_names(export):
        try:
            _upload(export, ends_at)
        except BaseException:
            # The page says so, and the account may start again.
            with suppress(ObjectExists):
                s3.put(settings.EXPORTS_BUCKET, export.folder + FAILED, b"", _sha256(b""))
            stored_exports.end(export)
            raise
        log.info("Stored %s%s in %.1f s", export.folder, export.name, time.monotonic() - began)
    stored_exports.end(export)


def _stored_names(export: Export) -> set[str]:
    pages = s3.list_objects(settings.EXPORTS_BUCKET, export.folder)
    return {found.key.removeprefix(export.folder) for page in pages for found in page}


def _upload(export: Export, ends_at: float) -> None:
    bucket, key = settings.EXPORTS_BUCKET, export.folder + export.name
    upload_id, _was_repeated = s3.create_upload(bucket, key)
    try:
        parts = [
            s3.send_part(bucket, key, upload_id, number, part, _sha256(part))
            for number, part in enumerate(_parts(_pieces(export), ends_at), 1)
        ]
        s3.complete_upload(bucket, key, upload_id, parts)
    except BaseException as error:
        with suppress(StorageFailed):
            s3.abort_upload(bucket, key, upload_id)
        # The reply was lost, or another run of the same event was faster.
        if isinstance(error, StorageFailed) and export.name in _stored_names(export):
            return
        raise


def _pieces(export: Export) -> Iterator[bytes]:
    if export.year is None:
        return account_as_json(User.get(export.account))
    return YEAR_FILES[export.kind](all_records(export.account, export.year, today()))


def _parts(pieces: Iterator[bytes], ends_at: float) -> Iterator[bytes]:
    """The bytes of `pieces` in parts for S3: all but the last have `PART_BYTES` or more."""
    part = bytearray()
    for piece in pieces:
        if time.monotonic() > ends_at:
            raise ExportTooSlow
        part += piece
        if len(part) >= PART_BYTES:
            yield bytes(part)
            part.clear()
    yield bytes(part)


def _sha256(part: bytes) -> str:
    return b64encode(hashlib.sha256(part).digest()).decode()
