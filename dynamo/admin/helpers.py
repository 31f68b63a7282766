"""What subclasses of ModelAdmin use besides its methods."""

from dynamo.admin.actions import (
    DELETE as DELETE,
    NOTHING_DONE as NOTHING_DONE,
    REASON as REASON,
    as_stored as as_stored,
)
