"""Stores a small file: one PutObject where no object is."""

from __future__ import annotations

import itertools
import time

from dynamo.retries import pause_seconds
from uploads import s3
from uploads.claims import Claim
from uploads.contents import Small, are_equal
from uploads.exceptions import Conflict, ObjectExists, StorageBusy
from uploads.run import ANOTHER_THERE, Run

#: How often S3 may say that another was faster, or put and deleted an object meanwhile.
TRIES = 5


def store_small(contents: Small, key: str, claim: Claim, run: Run) -> tuple[str, bool]:
    """Put the object; its ETag, and whether it is by us (else it was there, and is equal).

    Costs 1 request; where an object has the key, 1 more to look at it, and those of `are_equal`.

    Raises:
        Conflict: another object has the key.
        StorageFailed: S3 refused, or gave no answer.
        LeaseLost: the row may be another's by now.
    """
    for attempt in itertools.count(1):
        claim.lease.check()
        try:
            etag = s3.put(run.bucket, key, contents.data, contents.sha256)
        except ObjectExists as exists:
            found = s3.head(run.bucket, key)
            if found is not None:
                if are_equal(contents, found, run.bucket, key):
                    # botocore had repeated it: most likely it is our own.
                    return found.etag, exists.retries > 0
                raise Conflict(key, ANOTHER_THERE) from exists
            if attempt >= TRIES:
                raise
        except StorageBusy:
            if attempt >= TRIES:
                raise
        else:
            return etag, True
        time.sleep(pause_seconds(attempt))
    raise AssertionError("unreachable: the loop ends by return or raise")
