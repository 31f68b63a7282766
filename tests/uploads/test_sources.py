"""Destinations, and the files found below the paths of a command."""

import errno
import os
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from tests.uploads.folders import without_privileges, write
from uploads.exceptions import BadDestination
from uploads.sources import LINK_LEAVES, Destination, Result, Selection, Source, shuffled, walk

DESTINATION = Destination.parse("s3://bucket/prefix")
BAD_KEY = "Not a valid S3 key:"


def _name(source: Source) -> str:
    """Its key without the prefix."""
    return source.key.removeprefix("prefix/")


def found(
    *paths: Path | str, follow_links: bool = False, **options: tuple[str, ...]
) -> dict[str, int]:
    """The files found, with their sizes; nothing may be unusable."""
    files = {}
    chosen = Selection(**options)
    for source in walk(map(str, paths), DESTINATION, chosen, follow_links=follow_links):
        assert isinstance(source, Source), source
        assert _name(source) not in files
        files[_name(source)] = source.size
    return files


def unusable(*paths: Path | str, **options: tuple[str, ...]) -> dict[str, str]:
    """What cannot be uploaded, by name, with the reasons."""
    everything = walk(map(str, paths), DESTINATION, Selection(**options))
    return {item.name: item.reason for item in everything if isinstance(item, Result)}


def test_files_of_folders_keep_their_path_and_files_keep_their_name(tmp_path: Path) -> None:
    write(tmp_path / "logs" / "a.log", "12345")
    write(tmp_path / "logs" / "2026" / "11" / "b.log", "")
    write(tmp_path / "more" / "c.log")
    file = write(tmp_path / "deep" / "down" / "d.log")
    (tmp_path / "empty").mkdir()

    assert found(tmp_path / "logs", f"{tmp_path}/more/", file, tmp_path / "empty") == {
        "a.log": 5,
        "2026/11/b.log": 0,
        "c.log": 1,
        "d.log": 1,
    }


def test_a_name_that_is_not_utf_8_is_reported_with_its_bytes(tmp_path: Path) -> None:
    os.close(os.open(os.fsencode(tmp_path) + b"/caf\xe9", os.O_CREAT | os.O_WRONLY))
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff"))
    write(folder / "below")
    write(tmp_path / "fine")

    assert unusable(tmp_path) == dict.fromkeys(
        (f"{tmp_path}/caf\\udce9", f"{tmp_path}/d\\udcff"), f"{BAD_KEY} it is not valid UTF-8"
    )
    # As a path itself the folder's own name is in no key.
    assert found(folder, tmp_path / "fine") == {"below": 1, "fine": 1}


def test_symbolic_links_are_followed_within_their_folder_and_elsewhere_on_request(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "outer" / "folder"
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere / "a", "123")
    write(folder / "sub" / "b", "12345")
    for name, target in {
        "file": folder / "sub" / "b",
        "dir": folder / "sub",
        "left file": elsewhere / "a",
        "left dir": elsewhere,
        "sub/above": tmp_path / "outer" / "other",
    }.items():
        (folder / name).symlink_to(target)
    write(tmp_path / "outer" / "other")
    (tmp_path / "outer" / "inner").symlink_to(folder)
    (tmp_path / "left").symlink_to("/")
    inside = {"sub/b": 5, "file": 5, "dir/b": 5}
    left = ("left*", "*above")

    for path in (folder, tmp_path / "outer" / "inner", f"{folder}/", f"{folder}/sub/.."):
        assert found(path, exclude=left) == inside
        names = ("left file", "left dir", "sub/above", "dir/above")
        assert unusable(path) == {os.path.join(path, name): LINK_LEAVES for name in names}  # noqa: PTH118
    assert unusable(tmp_path / "left") == {f"{tmp_path}/left": LINK_LEAVES}
    assert found(folder, follow_links=True) == inside | {
        "left file": 3,
        "left dir/a": 3,
        "sub/above": 1,
        "dir/above": 1,
    }
    # A slash names the folder behind a link, as for other commands.
    (folder / "left dir" / "a").unlink()
    assert found(f"{folder}/left dir/") == {}


def test_links_that_lead_nowhere_are_reported_and_the_rest_continues(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b" / "file")
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "self").symlink_to("self")
    (tmp_path / "a" / "broken").symlink_to("nowhere")

    assert unusable(tmp_path, tmp_path / "gone") == {
        f"{tmp_path}/a/b/up": "It is a symbolic link to a folder that contains it",
        f"{tmp_path}/a/self": os.strerror(errno.ELOOP),
        f"{tmp_path}/a/broken": "It is a broken symbolic link",
        f"{tmp_path}/gone": os.strerror(errno.ENOENT),
    }
    assert found(tmp_path, exclude=("a/b/up/*", "a/self", "a/broken")) == {"a/b/file": 1}


def test_a_folder_that_cannot_be_read_is_named_and_the_rest_continues(open_folder: Path) -> None:
    write(open_folder / "closed" / "a").parent.chmod(0)
    write(open_folder / "unlisted" / "b").parent.chmod(0o444)
    write(open_folder / "fine")

    with without_privileges():
        assert unusable(open_folder) == dict.fromkeys(
            (f"{open_folder}/closed", f"{open_folder}/unlisted/b"), os.strerror(errno.EACCES)
        )
        excluded = ("closed/*", "unlisted/b")
        assert found(open_folder, exclude=excluded) == {"fine": 1}
        # This pattern leaves files of the folder, so it has to be read.
        assert len(unusable(open_folder, exclude=("closed/*.log", "unlisted/*"))) == 1


def test_a_file_that_vanishes_while_its_folder_is_read_is_named(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / str(number))
    walking = walk([str(tmp_path)], DESTINATION)

    first = next(walking)
    for file in tmp_path.iterdir():
        file.unlink()

    assert isinstance(first, Source)
    # The system has read the folder's names ahead.
    reasons = [item.reason for item in walking if isinstance(item, Result)]
    assert reasons == [os.strerror(errno.ENOENT)] * 2


def test_a_key_has_1024_bytes_at_most_and_a_folder_too_deep_is_named_once(tmp_path: Path) -> None:
    # `prefix/` has 7 bytes, and each of the five folders 200 and a slash: ä is two bytes.
    folder = tmp_path.joinpath(*["ä" * 100] * 5)
    exact, over, deep = (folder / ("y" * length) for length in (12, 13, 200))
    for file in (exact, over, *(deep / name for name in "123")):
        write(file)

    everything = list(walk([str(tmp_path)], DESTINATION))

    assert [item.path for item in everything if isinstance(item, Source)] == [str(exact)]
    assert unusable(tmp_path) == {
        str(over): f"{BAD_KEY} it has 1,025 bytes, at most 1,024 are allowed",
        str(deep): f"{BAD_KEY} it has 1,214 bytes, at most 1,024 are allowed",
    }


@pytest.mark.parametrize(
    ("include", "exclude", "taken"),
    [
        ("*.log", "", "a.log b1.log sub/c.log"),
        ("*.log *.gz", "", "a.log b1.log sub/c.log sub/d.gz"),
        ("sub/*", "", "sub/c.log sub/d.gz"),
        ("?[0-9].log", "", "b1.log"),
        ("*.log", "sub/*", "a.log b1.log"),
        ("", "*.log nothing", "A.LOG b.txt sub/d.gz"),
    ],
)
def test_patterns_choose_files_by_their_paths_and_an_exclude_wins(
    tmp_path: Path, include: str, exclude: str, taken: str
) -> None:
    for name in ("A.LOG", "a.log", "b.txt", "b1.log", "sub/c.log", "sub/d.gz"):
        write(tmp_path / name)

    chosen = found(tmp_path, include=tuple(include.split()), exclude=tuple(exclude.split()))

    assert chosen.keys() == set(taken.split())


def test_patterns_apply_to_single_files_and_to_what_cannot_be_read(tmp_path: Path) -> None:
    files = [write(tmp_path / name) for name in ("a.log", "a.txt")]
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("nowhere")

    assert found(*files, exclude=("*.txt",)) == found(tmp_path, include=("*.log",)) == {"a.log": 1}
    assert unusable(tmp_path, exclude=("fifo", "link")) == {}


def test_files_come_as_their_folder_is_read_and_few_are_in_memory(tmp_path: Path) -> None:
    for number in range(1500):
        (tmp_path / f"{number:04}").touch()
    tracemalloc.start()

    walking = walk([str(tmp_path)], DESTINATION)
    first = list(islice(walking, 10))
    little = tracemalloc.get_traced_memory()[1]
    rest = sum(1 for _ in walking)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(first) + rest == 1500
    assert peak < little + 50_000


def test_files_come_in_random_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uploads.sources.WINDOW", 100)
    for number in range(300):
        (tmp_path / f"{number:04}").touch()

    runs = [list(map(_name, shuffled(walk([str(tmp_path)], DESTINATION)))) for _ in range(2)]

    assert runs[0] != runs[1]
    assert sorted(runs[0]) == sorted(runs[1]) == [f"{number:04}" for number in range(300)]


@pytest.mark.parametrize(
    ("text", "bucket", "prefix"),
    [
        ("s3://bucket", "bucket", ""),
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
        "bucket/logs",
        "s3:///logs",
        "s3://Bucket",
        "s3://ab",
        "s3://b_c/d",
        "s3://bucket/\udce9",
        f"s3://bucket/{'x' * 1023}",
    ],
)
def test_text_that_is_not_a_destination_is_rejected(text: str) -> None:
    with pytest.raises(BadDestination) as refused:
        Destination.parse(text)
    assert refused.value.subject == text
    assert str(refused.value).isprintable()
