"""The table `locks`, as the lock client for Java writes it, and a fencing token besides.

locks
    key (S)                      the lock's name
    ownerName (S)                who holds it, or held it last
    leaseDuration (S)            milliseconds, as a decimal text; a claim has none: it never lapses
    recordVersionNumber (S)      a UUID, a new one with each acquisition and renewal
    isReleased (S)               "1" where nobody holds it, else absent
    data (B)                     what the holder left on it
    fencingToken (N)             rises with each of our acquisitions
    renewedAt (S)                the holder's time of day at its last renewal, for people to read

That client acquires with PutItem and so drops `fencingToken` and `renewedAt`.

Source: https://github.com/awslabs/amazon-dynamodb-lock-client
"""

from __future__ import annotations

from pynamodb.attributes import BinaryAttribute, UnicodeAttribute

from dynamo.models import IntegerAttribute, Model

RELEASED = "1"


class LockItem(Model):
    """A lock's item; it outlives its holders, so that the fencing token goes on rising."""

    class Meta:
        table_name = "locks"

    name = UnicodeAttribute(hash_key=True, attr_name="key")
    owner = UnicodeAttribute(attr_name="ownerName")
    lease_milliseconds = UnicodeAttribute(attr_name="leaseDuration", null=True)
    version = UnicodeAttribute(attr_name="recordVersionNumber", null=True)
    released = UnicodeAttribute(attr_name="isReleased", null=True)
    data = BinaryAttribute(legacy_encoding=False, null=True)
    fence = IntegerAttribute(attr_name="fencingToken", null=True)
    renewed_at = UnicodeAttribute(attr_name="renewedAt", null=True)
