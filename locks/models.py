"""The table `locks`, as the lock client for Java writes it, with a fencing token added.

locks
    key (S)                      the lock's name
    ownerName (S)                the holder, or the last one
    leaseDuration (S)            milliseconds, as decimal text; none in a claim, which never expires
    recordVersionNumber (S)      a UUID, a new one with each acquisition and renewal
    isReleased (S)               "1" if it was released, otherwise absent
    data (B)                     bytes of the last holders
    fencingToken (N)             rises with each of our acquisitions
    renewedAt (S)                the holder's time of day at its last renewal, for display only

That client acquires with PutItem, so it drops `fencingToken` and `renewedAt`.

Source: https://github.com/awslabs/amazon-dynamodb-lock-client
"""

from pynamodb.attributes import BinaryAttribute

from dynamo import TextAttribute
from dynamo.client.plain import PlainModel
from dynamo.wire.attributes import IntegerAttribute

RELEASED = "1"


class LockItem(PlainModel):
    """The item of a lock. It is kept when the lock is released, so that fencing tokens increase."""

    class Meta:
        table_name = "locks"

    _not_dumped = "Its items are of the processes that hold locks now."

    name = TextAttribute(hash_key=True, attr_name="key")
    owner = TextAttribute(attr_name="ownerName")
    lease_milliseconds = TextAttribute(attr_name="leaseDuration", null=True)
    version = TextAttribute(attr_name="recordVersionNumber", null=True)
    released = TextAttribute(attr_name="isReleased", null=True)
    data = BinaryAttribute(legacy_encoding=False, null=True)
    fence = IntegerAttribute(attr_name="fencingToken", null=True)
    renewed_at = TextAttribute(attr_name="renewedAt", null=True)
