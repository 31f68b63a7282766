"""Files that are made in the background and stored in S3, as AWS Lambda sends at most 6 MB.

    exports/<account>/<id>/invoices-2026.zip    the file, once it is whole
    exports/<account>/<id>/failed               it could not be made

A page enqueues a task for the file (`start`), a worker makes it (`make`), and the page looks into
the bucket (`state_of`). The URL of the page says which export it is about, and is signed. Nothing
else is stored, except in the cache which export of an account may be running.

A task may run again after its worker was killed: S3 takes the file once (If-None-Match). The parts
that were stored until then are removed by the bucket's lifecycle rule.
"""

import hashlib
import json
import logging
import time
import uuid
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any, Literal, Self, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core import signing
from django.core.cache import cache as default_cache
from django.utils.http import content_disposition_header

from accounts.models import AbstractAccount, account_model
from dynamo import Busy
from dynamo.cache import DynamoCache
from dynamo.client import endpoints
from dynamo.runtime.deadline import uncounted
from dynamo.runtime.processes import PerProcess
from invoices.exceptions import ExportUnavailable, UnknownInvoice
from invoices.output.files import YEAR_FILES, account_as_json
from invoices.store.issuing import today
from invoices.store.lists import all_records
from outbox import Retry, TaskContext, task
from uploads import s3
from uploads.s3 import ObjectExists, StorageFailed

log = logging.getLogger(__name__)

#: After this time the page offers to start the export again.
LATE_SECONDS = 5 * 60

#: How long a link to S3 can be used. It is made when it is needed.
LINK_SECONDS = 5 * 60

#: How often a start is tried while other exports of the account end.
_ATTEMPTS = 3

#: The name of the empty object of an export that failed.
FAILED = "failed"

PART_BYTES = 8 * 1024 * 1024

State = Literal["preparing", "ready", "failed", "late"]

# A request of a page takes at most 7 seconds.
_CONFIG = Config(
    connect_timeout=1.0, read_timeout=2.0, retries={"total_max_attempts": 2, "mode": "standard"}
)


def _make_s3() -> object:
    # S3 refuses links of the older version for some objects.
    of_links = Config(signature_version="s3v4", s3={"addressing_style": endpoints.s3_style()})
    return endpoints.client("s3", _CONFIG.merge(of_links))


_s3: PerProcess[Any] = PerProcess(_make_s3)
_cache = cast(DynamoCache, default_cache)


@dataclass(frozen=True)
class Export:
    """A file of an account: one of `YEAR_FILES`, or `json` of everything (year None)."""

    account: str
    kind: str
    year: int | None
    #: Empty until it is started.
    id: str = ""
    #: When it was started, in epoch seconds.
    began: int = 0

    @property
    def name(self) -> str:
        """The name under which it is saved."""
        return f"account.{self.kind}" if self.year is None else f"invoices-{self.year}.{self.kind}"

    @property
    def content_type(self) -> str:
        is_table = self.kind.endswith("csv")
        return "text/csv; charset=utf-8" if is_table else f"application/{self.kind}"

    @property
    def folder(self) -> str:
        """The prefix of its keys in the bucket."""
        return f"exports/{self.account}/{self.id}/"

    @property
    def key(self) -> str:
        """Its key in the bucket."""
        return self.folder + self.name

    @property
    def mark(self) -> str:
        """The export as stored in the cache while it may be running. It is not signed, so it stays
        valid when the secret key changes."""
        return json.dumps(asdict(self))

    @property
    def token(self) -> str:
        """The export, signed, for URLs."""
        return _signer().sign_object(asdict(self))

    @classmethod
    def of_token(cls, token: str) -> Self | None:
        """The export that was signed; None if none was."""
        try:
            return cls(**_signer().unsign_object(token))
        except signing.BadSignature:
            return None


def _signer() -> signing.Signer:
    # Made each time, because the keys of the site may change.
    return signing.Signer(salt="invoices.exports.stored")


def pieces_of(export: Export, user: AbstractAccount) -> Iterator[bytes]:
    """The file of an export of the account `user`, made piece by piece.

    This call reads from DynamoDB what the first piece needs.

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


def start(export: Export) -> Export:
    """Start an export and return it with its id; or the one of the account that may be running.

    Costs 2 requests and 2 write units; 1 request and 1 read unit if one is running.

    Raises:
        ExportUnavailable: others of the account began and ended meanwhile.
        Unavailable: see `dynamo.client.sending.send`.
    """
    export = replace(export, id=str(uuid.uuid4()), began=int(time.time()))
    slot = _slot_of(export.account)
    for _attempt in range(_ATTEMPTS):
        if _cache.add(slot, export.mark, LATE_SECONDS):
            break
        # The value is None if the other export ended in between.
        if running := _cache.get(slot):
            return Export(**json.loads(running))
    else:
        raise ExportUnavailable
    try:
        make.enqueue(asdict(export))
    except Busy:
        # If only the reply was lost, the task makes the file, and no page offers it.
        end(export)
        raise
    return export


def end(export: Export) -> None:
    """Let the account start another export, if this one is the running one. Costs 1 write unit."""
    _cache.delete_if(_slot_of(export.account), export.mark)


def state_of(export: Export) -> State:
    """How far the export is. Costs 1 request to S3, which lists the export's keys.

    Raises:
        ExportUnavailable: S3 refused, or did not answer.
    """
    with _reaching_aws():
        answer = _s3().list_objects_v2(Bucket=settings.EXPORTS_BUCKET, Prefix=export.folder)
    keys = {found["Key"] for found in answer.get("Contents", ())}
    if keys:
        return "ready" if export.key in keys else "failed"
    return "preparing" if time.time() - export.began < LATE_SECONDS else "late"


def link_to(export: Export) -> str:
    """A URL of the file in S3 that can be used by anybody for `LINK_SECONDS`. Costs no request.

    It ends earlier if the credentials do.

    Raises:
        ExportUnavailable: there are no credentials.
    """
    what = {
        "Bucket": settings.EXPORTS_BUCKET,
        "Key": export.key,
        "ResponseContentDisposition": content_disposition_header(True, export.name),
        "ResponseContentType": export.content_type,
    }
    with _reaching_aws():
        return str(_s3().generate_presigned_url("get_object", what, LINK_SECONDS))


@contextmanager
def _reaching_aws() -> Iterator[None]:
    """Requests to S3, whose time does not count for the page. Raises ExportUnavailable."""
    try:
        with uncounted():
            yield
    except (BotoCoreError, ClientError) as error:
        # Such as a missing right, which the operator must learn about.
        log.warning("An export cannot be reached: %s", error)
        raise ExportUnavailable from error


def _slot_of(account: str) -> str:
    return f"exports.{account}"


# The task ----------------------------------------------------------------------------------------


@task(takes_context=True, retry=Retry(attempts=3, delay=2))
def make(context: TaskContext, export: dict[str, Any]) -> None:
    """Create the file of an export.

    Nothing happens if it was made before. Memory holds one part (8 MB) and one page of invoices
    (1 MB). Costs 2 requests to S3, 1 for each part, and those of the file's pieces.

    Raises:
        StorageFailed, ExportUnavailable: S3 refused, or did not answer. As after all errors, the
            parts are removed. After the last attempt the page says that the export failed.
    """
    began = time.monotonic()
    asked = Export(**export)
    if state_of(asked) in {"preparing", "late"}:
        try:
            _upload(asked)
        except Exception:
            if context.is_last:
                with suppress(ObjectExists):
                    s3.put(settings.EXPORTS_BUCKET, asked.folder + FAILED, b"", _sha256(b""))
                end(asked)
            raise
        log.info("Stored %s in %.1f s", asked.key, time.monotonic() - began)
    end(asked)


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
        if isinstance(error, StorageFailed) and state_of(export) == "ready":
            return
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
