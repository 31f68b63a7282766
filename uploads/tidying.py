"""Multipart uploads that no row names, left by who died, or got no answer, after beginning one."""

from __future__ import annotations

from dataclasses import replace

from uploads import s3
from uploads.claims import Claim
from uploads.run import Run


def tidied(claim: Claim, key: str, run: Run, *, keep: str | None) -> Claim:
    """Abort the multipart uploads of the key but for `keep`, the one that is ours.

    Costs nothing where there can be none, else 1 request to list them and 1 for each.

    Raises:
        LeaseLost: the row may be another's by now, and so may an upload.
        StorageFailed: S3 refused, or gave no answer.
    """
    if claim.is_tidy:
        return claim
    for upload_id in s3.uploads_of(run.bucket, key):
        if upload_id != keep:
            claim.lease.check()
            s3.abort(run.bucket, key, upload_id)
    return replace(claim, upload_id=keep, is_tidy=True)
