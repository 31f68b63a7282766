"""Finds the files to upload below given paths, and their keys in the bucket.

A folder is read while its files are uploaded: only a few thousand names are in memory. A symbolic
link is followed if its target is in the same folder. Another process may replace a file or a folder
by a link at any time, so `opened` in `uploads.contents` decides. Files that cannot be uploaded are
reported with the reason, and the others continue.
"""

import fnmatch
import mimetypes
import os
import random
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from dynamo.runtime.terminal import printable
from uploads.exceptions import BadDestination, BadKey

#: Each file is picked at random from this many, so that machines that upload the same folder rarely
#: meet.
WINDOW = 2000

#: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
KEY_MAX_BYTES = 1024

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")

_SCHEME = "s3://"

LINK_LEAVES = "It is a symbolic link that leaves the folder; --follow-links follows it"


@dataclass(frozen=True)
class Destination:
    """A bucket and a prefix of keys. The prefix may be empty, and has no `/` at its ends.

    `content_type` is that of all objects. If it is empty, the name of each file decides.
    """

    bucket: str
    prefix: str
    content_type: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `s3://BUCKET/PREFIX` or `s3://BUCKET`.

        Raises:
            BadDestination: `text` is neither.
        """
        if not text.startswith(_SCHEME):
            raise BadDestination(text, "it does not begin with s3://")
        bucket, _slash, prefix = text.removeprefix(_SCHEME).partition("/")
        if not _BUCKET.fullmatch(bucket):
            raise BadDestination(text, "a bucket name has 3 to 63 of a–z, 0–9, . and -")
        prefix = prefix.strip("/")
        destination = cls(bucket, prefix)
        try:
            destination.key_for("x")
        except BadKey as error:
            raise BadDestination(
                text, f"a key below it would not be valid: {error.reason}"
            ) from error
        return destination

    @property
    def key_prefix(self) -> str:
        """The beginning of every key below the prefix, such as `logs/` for `logs`."""
        return f"{self.prefix}/" if self.prefix else ""

    def key_for(self, relative: str) -> str:
        """The key of the file named `relative` below the prefix.

        Raises:
            BadKey: the name is not UTF-8, or the key is too long.
        """
        key = self.key_prefix + relative
        try:
            size_bytes = len(key.encode())
        except UnicodeEncodeError as error:
            raise BadKey(key, "it is not valid UTF-8") from error
        if size_bytes > KEY_MAX_BYTES:
            raise BadKey(key, f"it has {size_bytes:,} bytes, at most {KEY_MAX_BYTES:,} are allowed")
        return key

    def content_type_for(self, key: str) -> str:
        """The content type of the object; "" if the name does not show it."""
        if self.content_type:
            return self.content_type
        # With `./`, a name that looks like a URL is not parsed as one.
        kind, encoding = mimetypes.guess_type(f"./{key}")
        if encoding:
            # With a Content-Encoding, browsers would unpack the file, and would not get the stored
            # bytes.
            return "application/gzip" if encoding == "gzip" else ""
        return kind or ""

    def url_for(self, key: str) -> str:
        """The key of the object's row in the table `uploads`."""
        return f"{_SCHEME}{self.bucket}/{key}"


@dataclass(frozen=True)
class Source:
    """A file to upload.

    `path` is in the form of `os.fsdecode` (bytes that are not UTF-8 are surrogates). `size` is in
    bytes, when the file was found; it is read later. `real` is the absolute path that is opened
    without following links; if it is None, `path` is opened, and links are followed.
    """

    path: str
    key: str
    size: int
    real: str | None = None


Outcome = Literal["uploaded", "skipped", "conflict", "failed"]


@dataclass(frozen=True)
class Result:
    """The outcome of a source, or of a file, folder or link that cannot be uploaded.

    `name` is printable; `key` is "" if there is no source. `reason` says why it was not uploaded,
    without a period.
    """

    name: str
    key: str
    outcome: Outcome
    size: int
    reason: str = ""


class Selection:
    """Selects the files that match an `include`, if there are any, and no `exclude`.

    Patterns are those of `fnmatch`. They are case-sensitive and match the path below the folder, or
    the name of a single file. `*` also matches `/`, so `*.log` matches logs at every depth.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._included = _any_of(include or ["*"])
        self._excluded = _any_of(exclude)
        self._excluded_below = _any_of([pattern for pattern in exclude if pattern.endswith("*")])

    def takes(self, relative: str) -> bool:
        return bool(self._included.match(relative) and not self._excluded.match(relative))

    def excludes_all_below(self, folder: str) -> bool:
        """Whether no file below `folder` can be taken, so that it need not be read."""
        # A pattern that ends in `*` and matches the folder matches everything below it.
        return bool(self._excluded_below.match(f"{folder}/"))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    # Without patterns, this pattern matches nothing.
    return re.compile("|".join(map(fnmatch.translate, patterns)) or r"(?!)")


def shuffled(found: Iterable[Source | Result]) -> Iterator[Source | Result]:
    """`found` in random order."""
    waiting: list[Source | Result] = []
    for source in found:
        if len(waiting) < WINDOW:
            waiting.append(source)
            continue
        picked = random.randrange(WINDOW)  # noqa: S311 - spreads load, keeps no secret
        yield waiting[picked]
        waiting[picked] = source
    random.shuffle(waiting)
    yield from waiting


def walk(
    paths: Iterable[str],
    destination: Destination,
    selection: Selection | None = None,
    *,
    follow_links: bool = False,
) -> Iterator[Source | Result]:
    """All files of `paths` that match `selection`, in the order in which they are found.

    A path is text as `os.fsdecode` returns it. The keys of a folder's files are their paths below
    it. If a path is a file, its key is its name. A path that does not exist, a folder that cannot
    be read, and a folder in which all keys would be too long yield a `Result`. Files are not opened
    here.

    So has a link to something outside of its folder, unless `follow_links`: outside of the
    folder of `paths` in which it is, or, if it is one of `paths`, of the folder that contains it
    (`link/` is the folder behind the link).
    """
    for path in paths:
        # The path is used as the shell gave it, because pathlib would change it.
        folder, name = os.path.split(path)
        try:
            status = os.stat(path)  # noqa: PTH116 - see above
            root = None if follow_links else os.path.realpath(path)
            # A link never has these names. Only the location of `root` shows that the path is a
            # link, because it may be replaced between two calls.
            leaves = name not in {"", ".."} and not _is_in(os.path.realpath(folder), root)
        except (OSError, ValueError) as error:
            yield _unusable(path, error)
            continue
        walk = _Walk(destination, selection or Selection(), root)
        is_folder = stat.S_ISDIR(status.st_mode)
        if not is_folder and not walk.selection.takes(name):
            continue
        if leaves:
            yield _unusable(path, LINK_LEAVES)
        elif is_folder:
            yield from walk.below(path, root, "", status, frozenset())
        else:
            yield walk.file(path, root, name, status)


@dataclass(frozen=True)
class _Walk:
    """`root` is the folder without links in its path; None if links are followed."""

    destination: Destination
    selection: Selection
    root: str | None

    def below(
        self,
        path: str,
        real: str | None,
        below: str,
        status: os.stat_result,
        outer: frozenset[tuple[int, int]],
    ) -> Iterator[Source | Result]:
        """The files of a folder. `below` precedes their names; `outer` are the folders around it.

        Each level is one open descriptor and one step of recursion. The length of a key limits the
        number of levels to 512.
        """
        identity = (status.st_dev, status.st_ino)
        if identity in outer:
            yield _unusable(path, "It is a symbolic link to a folder that contains it")
            return
        try:
            # If the shortest name in the folder is too long for a key, all are.
            self.destination.key_for(_as_text(f"{below}x"))
            with os.scandir(path) as entries:
                for entry in entries:
                    relative = below + entry.name
                    try:
                        found = entry.stat()
                    except OSError as error:
                        if self.selection.takes(relative):
                            is_broken = isinstance(error, FileNotFoundError) and entry.is_symlink()
                            reason = "It is a broken symbolic link" if is_broken else error
                            yield _unusable(entry.path, reason)
                        continue
                    is_folder = stat.S_ISDIR(found.st_mode)
                    if is_folder and self.selection.excludes_all_below(relative):
                        continue
                    if not is_folder and not self.selection.takes(relative):
                        continue
                    inner = real and os.path.join(real, entry.name)  # noqa: PTH118 - paths are texts here
                    if real is not None and entry.is_symlink():
                        inner = os.path.realpath(entry.path)
                        if not _is_in(self.root, inner):
                            yield _unusable(entry.path, LINK_LEAVES, "skipped")
                            continue
                    if is_folder:
                        within = outer | {identity}
                        yield from self.below(entry.path, inner, f"{relative}/", found, within)
                    else:
                        yield self.file(entry.path, inner, relative, found)
        except (BadKey, OSError) as error:
            yield _unusable(path, error)

    def file(
        self, path: str, real: str | None, relative: str, status: os.stat_result
    ) -> Source | Result:
        if not stat.S_ISREG(status.st_mode):
            return _unusable(path, "It is not a regular file")
        try:
            key = self.destination.key_for(_as_text(relative))
        except BadKey as error:
            return _unusable(path, error)
        return Source(path, key, status.st_size, real)


def _is_in(folder: str | None, path: str | None) -> bool:
    return folder is None or path is None or os.path.commonpath([folder, path]) == folder


def _as_text(relative: str) -> str:
    """The name whose UTF-8 encoding is the file name's bytes, in any encoding of the system."""
    return os.fsencode(relative).decode("utf-8", "surrogateescape")


def _unusable(path: str, reason: Exception | str, outcome: Outcome = "failed") -> Result:
    if isinstance(reason, OSError):
        reason = reason.strerror or type(reason).__name__
    return Result(printable(path), "", outcome, 0, str(reason).rstrip("."))
