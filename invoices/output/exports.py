"""Files that are made in the background and stored in S3. AWS Lambda sends at most 6 MB.

    exports/<account>/<id>/invoices-2026.zip

A page enqueues a task for the file (`start`), a worker makes it (`make`), and the result of the
task tells its progress (`find`). Nothing else is stored, except the request id of the account's
export while it may be running, in the cache.

A task may run again after its worker was killed: S3 takes the file once (If-None-Match). The parts
that were stored until then are removed by the bucket's lifecycle rule.
"""

import hashlib
import uuid
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Literal, cast

from botocore.config import Config
from django.conf import settings
from django.core.cache import cache as default_cache
from django.utils import timezone
from django.utils.http import content_disposition_header

from accounts.models import AbstractAccount, account_model
from dynamo.cache import DynamoCache
from dynamo.client import endpoints
from dynamo.runtime.processes import PerProcess
from invoices.exceptions import UnknownInvoice
from invoices.output.files import YEAR_FILES, account_as_json
from invoices.store.issuing import today
from invoices.store.lists import all_records
from outbox import Retry, TaskContext, task
from uploads import s3
from uploads.s3 import ObjectExists, StorageFailed, UploadGone

#: After this time the page offers to start the export again.
LATE = timedelta(minutes=5)

#: The bucket's lifecycle rule deletes files that are older.
KEPT = timedelta(days=1)

#: A link to S3 is valid for this time. It is made when it is needed.
LINK_SECONDS = 5 * 60

PART_BYTES = 8 * 1024 * 1024

State = Literal["preparing", "ready", "failed", "late"]


#: The client that signs links. It sends no requests. S3 refuses links of the older version for some
#: objects.
_s3 = PerProcess(lambda: endpoints.client("s3", Config(signature_version="s3v4")))
_cache = cast(DynamoCache, default_cache)


@dataclass(frozen=True)
class Export:
    """A file of an account: one of `YEAR_FILES`, or `json` of everything (year None)."""

    account: str
    kind: str
    year: int | None
    #: The request id of its task; empty until it is started.
    id: str = ""

    @property
    def name(self) -> str:
        """The name under which it is saved."""
        return f"account.{self.kind}" if self.year is None else f"invoices-{self.year}.{self.kind}"

    @property
    def content_type(self) -> str:
        is_table = self.kind.endswith("csv")
        return "text/csv; charset=utf-8" if is_table else f"application/{self.kind}"

    @property
    def key(self) -> str:
        """Its key in the bucket."""
        return f"exports/{self.account}/{self.id}/{self.name}"


def pieces_of(export: Export, user: AbstractAccount) -> Iterator[bytes]:
    """The file of an export of the account `user`, made piece by piece.

    This call reads the data of the first piece from DynamoDB.

    Raises:
        UnknownInvoice: the year has no invoice.
    """
    if export.year is None:
        return account_as_json(user)
    records = all_records(user.pk, export.year, today(user.time_zone))
    first = next(records, None)
    if first is None:
        raise UnknownInvoice(f"of {export.year}")
    return YEAR_FILES[export.kind](chain([first], records))


def start(export: Export) -> str:
    """Start an export, unless it is running already. Returns the id of its task.

    Costs up to 4 requests, 2 read units and 5 write units.

    Raises:
        RequestIdReused: another export of the account may be running.
        Unavailable: see `dynamo.client.sending.send`. Another call continues this one.
    """
    slot = _slot_of(export.account)
    id_ = str(_cache.get_or_set(slot, str(uuid.uuid4()), LATE.total_seconds()))
    return str(make.using(request_id=id_).enqueue(asdict(replace(export, id=id_))).id)


def find(task_id: str) -> tuple[Export, State]:
    """The export that this task makes, and its progress.

    Costs 1 request and 1 read unit if it has ended, else 2 of each.

    Raises:
        TaskException: there is no such task.
    """
    found = make.get_result(task_id)
    export = Export(**found.args[0])
    if found.status == "FAILED":
        return export, "failed"
    is_ready = found.status == "SUCCESSFUL"
    since = cast(datetime, found.finished_at or found.enqueued_at)
    if timezone.now() - since > (KEPT if is_ready else LATE):
        return export, "late"
    return export, "ready" if is_ready else "preparing"


def link_to(export: Export) -> str:
    """A URL of the file in S3 that can be used by anybody for `LINK_SECONDS`. Costs no request.

    It is valid for less time if the credentials expire earlier.
    """
    what = {
        "Bucket": settings.EXPORTS_BUCKET,
        "Key": export.key,
        "ResponseContentDisposition": content_disposition_header(True, export.name),
        "ResponseContentType": export.content_type,
    }
    return str(_s3().generate_presigned_url("get_object", what, LINK_SECONDS))


def _slot_of(account: str) -> str:
    return f"exports.{account}"


# The task ----------------------------------------------------------------------------------------


@task(takes_context=True, retry=Retry(attempts=3, delay=2))
def make(context: TaskContext, export: dict[str, Any]) -> None:
    """Create the file of an export, and let the account start another one.

    Memory holds one part (8 MB) and one page of invoices (1 MB). Costs 2 requests to S3, 1 for each
    part, those of the file's pieces, and 1 write unit.

    Raises:
        StorageFailed: S3 refused, or did not answer. As after all errors, the parts are removed.
    """
    asked = Export(**export)
    try:
        _upload(asked)
    except Exception:
        if context.is_last:
            _end(asked)
        raise
    _end(asked)


def _end(export: Export) -> None:
    _cache.delete_if(_slot_of(export.account), export.id)


def _upload(export: Export) -> None:
    bucket, key = settings.EXPORTS_BUCKET, export.key
    upload_id, _was_repeated = s3.create_upload(bucket, key)
    try:
        parts = [
            s3.send_part(bucket, key, upload_id, number, part, _sha256(part))
            for number, part in enumerate(_parts(export), 1)
        ]
        s3.complete_upload(bucket, key, upload_id, parts)
    except BaseException as error:
        with suppress(StorageFailed):
            s3.abort_upload(bucket, key, upload_id)
        # The reply was lost, or another run of the same task was faster.
        if not isinstance(error, (ObjectExists, UploadGone)):
            raise


def _parts(export: Export) -> Iterator[bytes]:
    """The file in parts for S3: all but the last have `PART_BYTES` or more."""
    part = bytearray()
    for piece in pieces_of(export, account_model().get(export.account)):
        part += piece
        if len(part) >= PART_BYTES:
            yield bytes(part)
            part.clear()
    yield bytes(part)


def _sha256(part: bytes) -> str:
    return b64encode(hashlib.sha256(part).digest()).decode()
