"""Checksums in S3's form: base64, and for an object of parts that of its parts' digests, with `-N`.

Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence


def sha256_of(chunks: Iterable[bytes]) -> str:
    """The SHA-256 of the bytes."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return _text(digest.digest())


def sha1_of(chunks: Iterable[bytes]) -> str:
    """The SHA-1 of the bytes, which S3 keeps where a client asked for it."""
    digest = hashlib.sha1(usedforsecurity=False)
    for chunk in chunks:
        digest.update(chunk)
    return _text(digest.digest())


def crc32_of(chunks: Iterable[bytes]) -> str:
    """The CRC-32 of the bytes."""
    crc = 0
    for chunk in chunks:
        crc = zlib.crc32(chunk, crc)
    return _text(crc.to_bytes(4, "big"))


def composite_of(sha256s: Sequence[str]) -> str:
    """The SHA-256 over those of the parts, as of an object that was put together from them."""
    digest = hashlib.sha256(b"".join(map(b64decode, sha256s))).digest()
    return f"{_text(digest)}-{len(sha256s)}"


def is_composite(checksum: str) -> bool:
    """Whether it is one over parts: base64 has no `-`."""
    return "-" in checksum


def _text(digest: bytes) -> str:
    return b64encode(digest).decode()
