"""Whether the table and the bucket tell the same of every object below a prefix.

Works while files are uploaded, in bounded memory.

1. Claims. The rows and the objects are read; sorted by key, a sound object is two claims that agree
   on size and ETag. Nothing is looked up for it.
2. Confirmation. Uploads go on meanwhile, and ETags say nothing of contents. So for whatever is
   suspect, row and object are read again, and it is judged by these.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from typing import Literal, get_args

from dynamo import scan
from dynamo.findings import Findings
from dynamo.models import Item
from dynamo.spool import RUN_LENGTH, Spool
from dynamo.tally import CountingPool
from uploads import claims, listing, s3
from uploads.checksums import composite_of, is_composite, sha256_of
from uploads.destination import Destination
from uploads.models import DONE, UploadItem
from uploads.sizes import part_bytes

Kind = Literal["missing", "foreign", "different", "unfinished"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Progress = Callable[[str, int], object]
"""Told what is being read, and how many more of it were."""

_ATTRIBUTES = ("key", "state", "size", "etag")
_OBJECT, _ROW = "object", "row"


@dataclass(frozen=True)
class Sizes:
    """How much is taken at once; tests take less."""

    segments: int = scan.SEGMENTS
    page_limit: int | None = None
    objects_limit: int = 1000
    run_length: int = RUN_LENGTH
    confirm_threads: int = 8
    confirm_ahead: int = 256


@dataclass
class Report:
    """What a check found: keys. `rows` and `objects` are how many there are below the prefix.

    `missing`: done in the table, but not in the bucket. `foreign`: in the bucket, unknown to the
    table. `different`: not what was uploaded. `unfinished`: begun, and not done: an upload that is
    under way, or one that was interrupted and waits for its next run.
    """

    rows: int = 0
    objects: int = 0
    findings: dict[Kind, Findings[str]] = field(
        default_factory=lambda: {kind: Findings() for kind in KINDS}
    )

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not any(self.findings.values())


def check_uploads(
    destination: Destination, *, progress: Progress | None = None, sizes: Sizes | None = None
) -> Report:
    """Compare the rows of `uploads` with the objects below the prefix.

    Costs a scan of `uploads` (1 request per MB and 1 read unit per 4 KB of all that is stored,
    whatever the prefix), 1 request per 1,000 objects, and for each suspect a read unit or two and
    a HeadObject. An object with the size of its row but neither its ETag nor a checksum to compare
    is downloaded. On disk some 200 bytes for each row and object while it runs.

    Raises:
        BucketMissing, StorageFailed: see `uploads.s3`.
        Unavailable, Rejected, TableMissing: see `dynamo.client.send`.
    """
    check = _Check(destination, progress or _silence, sizes or Sizes(), Report())
    with Spool(check.sizes.run_length) as claims:
        check.collect(claims)
        check.settle(claims)
    return check.report


def _silence(_what: str, _count: int) -> None:
    return


@dataclass(frozen=True)
class _Suspect:
    key: str
    kind: Kind


@dataclass(frozen=True)
class _Check:
    destination: Destination
    progress: Progress
    sizes: Sizes
    report: Report

    def collect(self, claims: Spool) -> None:
        """Read both sides, and keep what each says of every key."""
        for listed in listing.pages(self.destination, page_limit=self.sizes.objects_limit):
            for found in listed:
                claims.add(found.key, _OBJECT, str(found.size), found.etag)
            self.report.objects += len(listed)
            self.progress("Objects listed", len(listed))
        bucket = self.destination.url_for("")
        below = self.destination.url_for(listing.below(self.destination))
        for page in scan.pages(
            UploadItem.table(),
            _ATTRIBUTES,
            segments=self.sizes.segments,
            page_limit=self.sizes.page_limit,
        ):
            for row in page:
                url = row["key"]["S"]
                if url.startswith(below):
                    done = row.get("state", {}).get("S") == DONE
                    size, etag = row.get("size", {}).get("N", ""), row.get("etag", {}).get("S", "")
                    claims.add(
                        url.removeprefix(bucket), _ROW, size if done else "", etag if done else ""
                    )
                    self.report.rows += 1
            self.progress("Rows read", len(page))

    def settle(self, claims: Spool) -> None:
        """Confirm what the claims make suspect, and report it."""
        suspects = _suspects(claims)
        with CountingPool(self.sizes.confirm_threads) as pool:
            # A pool takes all that it is given at once, so it is given a little at a time.
            while batch := list(islice(suspects, self.sizes.confirm_ahead)):
                self._report(batch, pool)
                self.progress("Suspects confirmed", len(batch))

    def _report(self, batch: list[_Suspect], pool: CountingPool) -> None:
        findings = self.report.findings
        confirmed = []
        for suspect in batch:
            if findings[suspect.kind].is_full:
                findings[suspect.kind].add(suspect.key)
            else:
                confirmed.append(suspect.key)
        for key, kind in zip(confirmed, pool.map(self._judged, confirmed), strict=True):
            if kind is not None:
                findings[kind].add(key)

    def _judged(self, key: str) -> Kind | None:
        """What is wrong with a key, as row and object stand now; None where nothing is."""
        url = self.destination.url_for(key)
        row = claims.read(url)
        found = s3.head(self.destination.bucket, key)
        if found is not None and not _is_done(row):
            # The row is there before its object: what came in between is no stranger.
            row = claims.read(url)
        if row is None:
            return "foreign" if found is not None else None
        if not _is_done(row):
            return "unfinished"
        if found is None:
            return "missing"
        return None if self._is_same(key, UploadItem.from_raw_data(row), found) else "different"

    def _is_same(self, key: str, row: UploadItem, found: s3.Found) -> bool:
        """Whether the object has the bytes that the row is about."""
        if row.size != found.size or row.sha256 is None:
            return False
        if row.etag == found.etag or row.sha256 == found.sha256:
            return True
        if found.sha256 and not is_composite(found.sha256) and not is_composite(row.sha256):
            return False
        chunks = s3.download(self.destination.bucket, key)
        length = part_bytes(found.size)
        stored = _composite(chunks, length) if is_composite(row.sha256) else sha256_of(chunks)
        return row.sha256 == stored


def _is_done(row: Item | None) -> bool:
    return row is not None and row.get("state", {}).get("S") == DONE


def _suspects(claims: Spool) -> Iterator[_Suspect]:
    for key, entries in groupby(claims, key=itemgetter(0)):
        told = {what: said for _key, what, *said in entries}
        if kind := _suspicion(told.get(_OBJECT), told.get(_ROW)):
            yield _Suspect(key, kind)


def _suspicion(found: list[str] | None, row: list[str] | None) -> Kind | None:
    if row is None:
        return "foreign"
    if row == ["", ""]:
        return "unfinished"
    if found is None:
        return "missing"
    return None if found == row else "different"


def _composite(chunks: Iterable[bytes], length: int) -> str:
    """The checksum over parts of `length` bytes."""
    parts, digest, left = [], hashlib.sha256(), length
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            digest.update(rest[:left])
            rest, left = rest[left:], left - len(rest[:left])
            if not left:
                parts.append(digest)
                digest, left = hashlib.sha256(), length
    if left < length:
        parts.append(digest)
    return composite_of([b64encode(part.digest()).decode() for part in parts])
