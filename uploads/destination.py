"""Where files go: a bucket, and a prefix of keys in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from uploads.exceptions import BadDestination, BadKey

#: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
KEY_MAX_BYTES = 1024

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")

_SCHEME = "s3://"


@dataclass(frozen=True)
class Destination:
    """A bucket and a prefix; the prefix has no `/` at its ends, and may be empty."""

    bucket: str
    prefix: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """The destination that `s3://BUCKET/PREFIX` names; `/PREFIX` may be missing.

        Raises:
            BadDestination: it names none.
        """
        if not text.startswith(_SCHEME):
            raise BadDestination(text, "it does not begin with s3://")
        bucket, _slash, prefix = text.removeprefix(_SCHEME).partition("/")
        if not _BUCKET.fullmatch(bucket):
            raise BadDestination(text, "a bucket has 3 to 63 of a–z, 0–9, . and -")
        prefix = prefix.strip("/")
        try:
            size_bytes = len(prefix.encode())
        except UnicodeEncodeError as error:
            raise BadDestination(text, "the prefix is no UTF-8") from error
        if size_bytes >= KEY_MAX_BYTES:
            raise BadDestination(text, f"a key has at most {KEY_MAX_BYTES:,} bytes")
        return cls(bucket, prefix)

    def __str__(self) -> str:
        return f"{_SCHEME}{self.bucket}/{self.prefix}"

    def key_for(self, relative: str) -> str:
        """The key of the file that is called `relative` below the prefix.

        Raises:
            BadKey: it is empty, too long, or no text that UTF-8 can write.
        """
        if not relative:
            raise BadKey(relative, "it is empty")
        key = f"{self.prefix}/{relative}" if self.prefix else relative
        try:
            size_bytes = len(key.encode())
        except UnicodeEncodeError as error:
            raise BadKey(key, "it is no UTF-8") from error
        if size_bytes > KEY_MAX_BYTES:
            raise BadKey(key, f"it has {size_bytes:,} bytes, {KEY_MAX_BYTES:,} at most")
        return key

    def url_for(self, key: str) -> str:
        """The key in the table `uploads` of the object with this key."""
        return f"{_SCHEME}{self.bucket}/{key}"
