"""How files are read, cut and checked: a file that changes while it is read is detected."""

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.uploads.folders import without_privileges, write
from tests.uploads.samples import Storage
from uploads.contents import (
    MIB,
    MOST_PARTS,
    PART_BYTES,
    Span,
    is_small,
    opened,
    part_bytes,
    parts_of,
    sha256_of,
)
from uploads.exceptions import FileChanged, Unreadable
from uploads.sources import Destination, Source, walk


def _grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"!")


def _touch(path: Path) -> None:
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))


def _write_over_in_secret(path: Path) -> None:
    found = path.stat()
    path.write_bytes(b"CONTENT")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _replace(path: Path) -> None:
    path.with_name("new").write_bytes(b"content")
    path.with_name("new").replace(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "grows": _grow,
    "shrinks": lambda path: os.truncate(path, 3),
    "is emptied": lambda path: os.truncate(path, 0),
    "is replaced": _replace,
    "is written over": _touch,
    "is written over and its time put back": _write_over_in_secret,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_changes_while_it_is_read_is_detected(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    with opened(str(path)) as file:
        change(path)

        with pytest.raises(FileChanged) as changed:
            file.read_whole()

    assert changed.value.subject == str(path)


NO_SIZE = Path("/proc/cpuinfo")


@pytest.mark.skipif(not NO_SIZE.exists(), reason="it takes a file with contents and no size")
def test_a_file_with_more_bytes_than_its_size_is_rejected() -> None:
    with opened(str(NO_SIZE)) as file:
        assert file.size == 0

        with pytest.raises((FileChanged, Unreadable)):
            file.read_whole()


def test_a_span_can_be_read_again_and_notices_that_its_file_changed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    with opened(str(path)) as file:
        span = Span(file, 2, 5)

        assert (span.read(), span.read(), len(span), span.tell()) == (b"23456", b"", 5, 5)
        assert span.sha256 == sha256_of([b"23456"])
        span.seek(-2, os.SEEK_END)
        assert span.read() == b"56"
        span.seek(0)
        assert span.read() == b"23456"

        os.truncate(path, 2)
        span.seek(0)
        with pytest.raises(FileChanged):
            span.read()


@pytest.mark.parametrize("replaced", ["a/b/file", "a/b", "a"])
def test_a_file_that_was_found_is_not_read_through_a_link_that_replaced_it_or_its_folder(
    storage: Storage, tmp_path: Path, replaced: str
) -> None:
    write(tmp_path / "secret" / "b" / "file", "secret")
    folder = write(tmp_path / "folder" / "a" / "b" / "file").parents[2]
    (source,) = walk([str(folder)], Destination(storage.bucket, "in"))
    assert isinstance(source, Source)
    rest = replaced.removeprefix("a").strip("/")
    (folder / replaced).rename(tmp_path / "before")
    (folder / replaced).symlink_to(tmp_path / "secret" / rest)
    assert Path(source.path).read_text() == "secret"

    uploaded = storage.upload(source)

    assert uploaded.result.outcome == "failed"
    assert "was replaced, perhaps by a symbolic link" in uploaded.result.reason
    storage.assert_untouched(source)


@pytest.mark.parametrize("name", ["gone", "a\0b", "secret"])
def test_a_file_that_cannot_be_opened_has_a_reason(open_folder: Path, name: str) -> None:
    write(open_folder / "secret").chmod(0)

    with (
        without_privileges(),
        pytest.raises(Unreadable) as refused,
        opened(f"{open_folder}/{name}"),
    ):
        pytest.fail("it was opened")

    assert refused.value.reason


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
