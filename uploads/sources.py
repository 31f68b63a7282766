"""From the PATHs of a command to the files that are to be uploaded, one after another.

A folder is read while its files are uploaded: however many it has, a few thousand are in memory.
Symbolic links are followed. What cannot be uploaded is named with its reason, and the rest goes on.
"""

from __future__ import annotations

import fnmatch
import os
import random
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from dynamo.terminal import printable
from uploads.destination import Destination
from uploads.exceptions import BadKey
from uploads.files import Source, Unusable

T = TypeVar("T")

#: Files are drawn by lot from so many, so that machines that upload one folder meet rarely.
WINDOW = 2000

_KINDS: dict[str, Callable[[int], bool]] = {
    "a FIFO": stat.S_ISFIFO,
    "a socket": stat.S_ISSOCK,
    "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
}


@dataclass(frozen=True)
class Selection:
    """Which files are taken: those that match an `include` (or none is given) and no `exclude`.

    Patterns are those of `fnmatch`, with upper and lower case apart, on the path below the folder
    (of a single file: its name). `*` matches `/`, too, so `*.log` takes logs at every depth.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    _included: re.Pattern[str] = field(init=False, repr=False)
    _excluded: re.Pattern[str] = field(init=False, repr=False)
    _excluded_below: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        whole = [pattern for pattern in self.exclude if pattern.endswith("*")]
        object.__setattr__(self, "_included", _any_of(self.include or ["*"]))
        object.__setattr__(self, "_excluded", _any_of(self.exclude))
        object.__setattr__(self, "_excluded_below", _any_of(whole))

    def takes(self, relative: str) -> bool:
        """Whether the file is taken."""
        return bool(self._included.match(relative) and not self._excluded.match(relative))

    def leaves_out(self, folder: str) -> bool:
        """Whether nothing below `folder` can be taken, so that it need not be read."""
        # What a pattern that ends in `*` matches, it matches with anything after it.
        return bool(self._excluded_below.match(f"{folder}/"))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    # One that nothing matches stands for no patterns.
    return re.compile("|".join(map(fnmatch.translate, patterns)) or r"(?!)")


def sources(
    paths: Iterable[str],
    destination: Destination,
    selection: Selection | None = None,
    *,
    window: int = WINDOW,
) -> Iterator[Source | Unusable]:
    """Every file of `paths` that `selection` takes, in an order drawn by lot.

    A path is text as `os.fsdecode` makes it. The files of a folder keep their path below it, a
    file that is a path itself keeps its name. A path that is not there is unusable, and so is
    every file, folder and link that cannot be uploaded; a folder that cannot be read, or whose
    files' keys would all be too long, is one of them. Files are not opened here.
    """
    return _drawn_by_lot(walk(paths, destination, selection), window)


def walk(
    paths: Iterable[str], destination: Destination, selection: Selection | None = None
) -> Iterator[Source | Unusable]:
    """The same as `sources`, in the order in which they are found."""
    walker = _Walk(destination, selection or Selection())
    for path in paths:
        yield from walker.found_at(path)


def _drawn_by_lot(things: Iterable[T], window: int) -> Iterator[T]:
    waiting: list[T] = []
    for thing in things:
        if len(waiting) < window:
            waiting.append(thing)
            continue
        drawn = random.randrange(window)  # noqa: S311 - spreads load, keeps no secret
        yield waiting[drawn]
        waiting[drawn] = thing
    random.shuffle(waiting)
    yield from waiting


@dataclass(frozen=True)
class _Folder:
    """A folder that is being read; `below` goes before its files' names."""

    path: str
    below: str
    identity: tuple[int, int]
    entries: Iterator[os.DirEntry[str]]


@dataclass(frozen=True)
class _Walk:
    destination: Destination
    selection: Selection

    def found_at(self, path: str) -> Iterator[Source | Unusable]:
        try:
            status = os.stat(path)  # noqa: PTH116 - the shell's bytes, not a Path's
        except (OSError, ValueError) as error:
            yield _unusable(path, error)
            return
        if stat.S_ISDIR(status.st_mode):
            yield from self._below(path, status)
        else:
            name = os.path.basename(path)  # noqa: PTH119 - as above
            if self.selection.takes(name):
                yield self._file(path, name, status)

    def _below(self, path: str, status: os.stat_result) -> Iterator[Source | Unusable]:
        # An explicit stack: Python's own would make each file of a deep folder dearer. Each of its
        # folders is an open descriptor; keys of 1,024 bytes bound how many.
        opened: list[_Folder] = []
        try:
            yield from self._entered(opened, path, "", status)
            while opened:
                folder = opened[-1]
                try:
                    entry = next(folder.entries, None)
                except OSError as error:
                    yield _unusable(folder.path, error)
                    entry = None
                if entry is None:
                    _close(opened.pop())
                else:
                    yield from self._met(opened, folder, entry)
        finally:
            for folder in opened:
                _close(folder)

    def _met(
        self, opened: list[_Folder], folder: _Folder, entry: os.DirEntry[str]
    ) -> Iterator[Source | Unusable]:
        relative = folder.below + entry.name
        try:
            status = entry.stat()
        except OSError as error:
            if self.selection.takes(relative):
                dangling = isinstance(error, FileNotFoundError) and entry.is_symlink()
                yield _unusable(entry.path, "It is a broken symbolic link" if dangling else error)
            return
        if not stat.S_ISDIR(status.st_mode):
            if self.selection.takes(relative):
                yield self._file(entry.path, relative, status)
        elif not self.selection.leaves_out(relative):
            yield from self._entered(opened, entry.path, f"{relative}/", status)

    def _entered(
        self, opened: list[_Folder], path: str, below: str, status: os.stat_result
    ) -> Iterator[Unusable]:
        identity = (status.st_dev, status.st_ino)
        if any(folder.identity == identity for folder in opened):
            yield _unusable(path, "It is a symbolic link to a folder that it is in")
            return
        try:
            # The shortest name that a file in it can have; where that is no key, none is.
            self.destination.key_for(_as_text(f"{below}x"))
            entries = os.scandir(path)
        except (BadKey, OSError) as error:
            yield _unusable(path, error)
        else:
            opened.append(_Folder(path, below, identity, entries))

    def _file(self, path: str, relative: str, status: os.stat_result) -> Source | Unusable:
        if not stat.S_ISREG(status.st_mode):
            kind = next(
                (kind for kind, is_it in _KINDS.items() if is_it(status.st_mode)), "no file"
            )
            return _unusable(path, f"It is {kind}")
        name = _as_text(relative)
        try:
            self.destination.key_for(name)
        except BadKey as error:
            return _unusable(path, error)
        return Source(path, name, status.st_size)


def _as_text(relative: str) -> str:
    """The name whose UTF-8 is the file's bytes, whatever encoding this system's names have."""
    return os.fsencode(relative).decode("utf-8", "surrogateescape")


def _unusable(path: str, reason: Exception | str) -> Unusable:
    if isinstance(reason, OSError):
        reason = reason.strerror or type(reason).__name__
    return Unusable(printable(path), str(reason).rstrip("."))


def _close(folder: _Folder) -> None:
    folder.entries.close()  # type: ignore[attr-defined]  # os.scandir's iterator has it
