"""Destinations, keys, and how files are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest

from uploads.contents import MIB, MOST_PARTS, PART_BYTES, is_small, part_bytes, parts_of
from uploads.exceptions import BadDestination, BadKey
from uploads.sources import Destination


@pytest.mark.parametrize(
    ("text", "bucket", "prefix"),
    [
        ("s3://bucket", "bucket", ""),
        ("s3://bucket/", "bucket", ""),
        ("s3://bucket/logs", "bucket", "logs"),
        ("s3://bucket/logs/", "bucket", "logs"),
        ("s3://my.bucket-1//a//b/", "my.bucket-1", "a//b"),
        ("s3://bucket/日本 語", "bucket", "日本 語"),
    ],
)
def test_a_destination_is_a_bucket_and_a_prefix(text: str, bucket: str, prefix: str) -> None:
    assert Destination.parse(text) == Destination(bucket, prefix)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bucket/logs",
        "s3://",
        "s3:///logs",
        "s3://Bucket",
        "s3://ab",
        "s3://b_c/d",
        "S3://bucket",
        "s3://bucket/\udce9",
        f"s3://bucket/{'x' * 1024}",
    ],
)
def test_what_names_no_bucket_is_refused(text: str) -> None:
    with pytest.raises(BadDestination) as refused:
        Destination.parse(text)
    assert refused.value.text == text
    assert str(refused.value).isprintable()


def test_a_key_is_the_prefix_and_the_name() -> None:
    assert Destination("bucket", "logs").key_for("a/b.log") == "logs/a/b.log"
    assert Destination("bucket", "").key_for("a/b.log") == "a/b.log"
    assert Destination("bucket", "logs").url_for("logs/a") == "s3://bucket/logs/a"
    assert str(Destination("bucket", "logs")) == "s3://bucket/logs"


def test_a_key_has_1024_bytes_at_most_in_utf_8() -> None:
    assert Destination("bucket", "").key_for("é" * 512)
    for name in ("", "é" * 513, "\udce9"):
        with pytest.raises(BadKey) as refused:
            Destination("bucket", "").key_for(name)
        assert refused.value.key == name


@pytest.mark.parametrize(
    "size", [PART_BYTES + 1, 2 * PART_BYTES, 10**9, MOST_PARTS * PART_BYTES + 1, 5 * 10**12]
)
def test_parts_cover_the_file_and_are_not_too_many(size: int) -> None:
    parts = list(parts_of(size))
    assert not is_small(size)
    assert len(parts) <= MOST_PARTS
    assert parts[0] == (0, part_bytes(size))
    assert part_bytes(size) % MIB == 0
    assert all(
        offset + length == following for (offset, length), (following, _length) in pairwise(parts)
    )
    assert sum(parts[-1]) == size
    assert 0 < parts[-1][1] <= part_bytes(size)
