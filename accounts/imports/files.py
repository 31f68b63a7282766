"""Files of accounts to import, CSV or JSON Lines: read row by row, rejected rows written back.

Columns (CSV: named in the first line, in any order and case) or keys (JSON: one object per line)
are `columns()`; `username` and `email` are required. Blank lines are skipped. The columns `line`
and `reason` are ignored, so that a file of rejected rows can be corrected and imported as it is.
Files are UTF-8, or UTF-16 with a byte order mark.
"""

import codecs
import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, TextIOWrapper
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from pynamodb.constants import BOOLEAN, NUMBER

from accounts.exceptions import UnreadableFile
from accounts.models import account_model
from dynamo.runtime.terminal import printable


def columns() -> tuple[str, ...]:
    """The columns that a file may have: the fields of sign-up and profile, and `password_hash`."""
    return (*account_model().sign_up_and_profile_fields(), "password_hash")


def required() -> tuple[str, ...]:
    """The columns that name an account: its username, if accounts have one, and its address."""
    return tuple(name for name in ("username", "email") if name in columns())


#: Added in a file of rejected rows.
ADDED = ("line", "reason")

#: Ten times what five columns need. With the limit, a file without line ends does not fill memory.
LINE_MAX_LENGTH = 100_000

#: Spreadsheets write the usual separator of the country, or tabs in "Unicode text".
SEPARATORS = ",;\t"

#: An error shows this many characters of a header.
_SHOWN_LETTERS = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One row, which begins at `line` of the file and has `cells` there.

    If the row cannot be read, `fault` says why.
    """

    line: int
    cells: dict[str, Any]
    fault: str = ""

    @property
    def values(self) -> dict[str, str]:
        """A text for each of `columns()`, if the row can be read."""
        return {name: self.cells.get(name) or "" for name in columns()}


class RowFile(ABC):
    """A file of rows, open for one iteration. Memory holds one line.

    If a line cannot be read, the iteration ends after the rows before it, and `fault` says why.
    """

    #: The columns in the order of the file.
    columns: tuple[str, ...] = ()

    def __init__(self, path: Path, file: BufferedReader) -> None:
        #: The path of the rejected rows: `users.rejected.csv`.
        self.rejected = path.with_suffix(f".rejected{path.suffix}")
        self.line = 0
        self.fault = ""
        # Spreadsheets write UTF-16 as "Unicode text".
        is_utf_16 = file.peek(2)[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}
        self._encoding = "UTF-16" if is_utf_16 else "UTF-8"
        encoding = "utf-16" if is_utf_16 else "utf-8-sig"
        self._text = TextIOWrapper(file, encoding, errors="surrogateescape", newline="\n")

    def __iter__(self) -> Iterator[Row]:
        try:
            yield from self._rows()
        except UnreadableFile as error:
            self.fault = str(error)

    @abstractmethod
    def _rows(self) -> Iterator[Row]:
        """The rows. Raises UnreadableFile."""

    @abstractmethod
    def writer(self, file: IO[str]) -> Callable[[dict[str, object]], object]:
        """A function that writes a rejected row to `file`: its cells, and the values of `ADDED`."""

    def _lines(self) -> Iterator[str]:
        while True:
            try:
                line = self._text.readline(LINE_MAX_LENGTH + 1)
                # A wrong byte of UTF-8 has become a lone surrogate.
                line.encode()
            except UnicodeError as error:
                raise UnreadableFile(f"Line {self.line + 1} is not {self._encoding}.") from error
            if not line:
                return
            self.line += 1
            if len(line) > LINE_MAX_LENGTH:
                raise UnreadableFile(
                    f"Line {self.line} is longer than {LINE_MAX_LENGTH:,} characters."
                )
            yield line


class CsvFile(RowFile):
    def __init__(self, path: Path, file: BufferedReader) -> None:
        super().__init__(path, file)
        lines = self._lines()
        header = next((text for text in lines if text.strip(f"{SEPARATORS} \r\n")), "")
        self._separator = max(SEPARATORS, key=lambda separator: _fit(header, separator))
        # strict: a misplaced quotation mark is an error.
        self._reader = csv.reader(chain([header], lines), strict=True, delimiter=self._separator)
        self.columns = self._header()

    def _header(self) -> tuple[str, ...]:
        try:
            fields = next(self._reader)
        except csv.Error as error:
            raise UnreadableFile(f"Line {self.line} is not CSV: {error}.") from error
        found_columns = tuple(map(_column, fields))
        for what, names in {
            "has no column": [name for name in required() if name not in found_columns],
            "has an unknown column": [
                name for name in found_columns if name not in columns() + ADDED
            ],
            "repeats the column": [name for name in columns() if found_columns.count(name) > 1],
        }.items():
            if names:
                wrong, found = (", ".join(item)[:_SHOWN_LETTERS] for item in (names, fields))
                raise UnreadableFile(printable(f"The header {what}: {wrong}. It has: {found}."))
        return found_columns

    def _rows(self) -> Iterator[Row]:
        while True:
            line = self.line + 1
            try:
                fields = next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                if self.line > line:
                    # The lines after it, which the reader took for parts of a field, are lost.
                    raise UnreadableFile(
                        f"The quotation mark in line {line} is never closed ({error})."
                    ) from error
                yield Row(line, {}, f"This is not CSV: {error}.")
                continue
            if "".join(fields).strip():
                yield self._row(line, fields)

    def _row(self, line: int, fields: list[str]) -> Row:
        found = dict(zip_longest(self.columns, fields[: len(self.columns)], fillvalue=""))
        cells = {name: text for name, text in found.items() if name not in ADDED}
        if len(fields) == len(self.columns):
            return Row(line, cells)
        surplus = ", ".join(fields[len(self.columns) :])
        fault = f"There are {len(fields)} fields for {len(self.columns)} columns"
        return Row(line, cells, f"{fault}: {surplus}" if surplus else f"{fault}.")

    def writer(self, file: IO[str]) -> Callable[[dict[str, object]], object]:
        columns = [*(name for name in self.columns if name not in ADDED), *ADDED]
        writer = csv.DictWriter(file, columns, lineterminator="\n", delimiter=self._separator)
        writer.writeheader()
        return writer.writerow


class JsonLinesFile(RowFile):
    """One JSON object per line. A key that is missing or null is an empty value."""

    def _rows(self) -> Iterator[Row]:
        for text in self._lines():
            if text.strip():
                yield self._row(text)

    def _row(self, text: str) -> Row:
        try:
            found = json.loads(text)
        # A number with many digits is a ValueError too; many brackets are a RecursionError.
        except (ValueError, RecursionError) as error:
            return Row(self.line, {"text": text.rstrip("\r\n")}, f"This is not JSON: {error}")
        if not isinstance(found, dict):
            return Row(self.line, {"text": text.rstrip("\r\n")}, "This is not a JSON object.")
        cells = {name: value for name, value in found.items() if name not in ADDED}
        if unknown := [name for name in cells if name not in columns()]:
            return Row(self.line, cells, f"There is an unknown key: {', '.join(unknown)}.")
        attributes = account_model().get_attributes()
        for name, value in cells.items():
            kind = getattr(attributes.get(name), "attr_type", None)
            if isinstance(value, (bool, int, float)) and kind in {NUMBER, BOOLEAN}:
                # a form sends this for a checked box
                cells[name] = json.dumps(value)
        if wrong := [name for name, value in cells.items() if not isinstance(value, str | None)]:
            return Row(self.line, cells, f"There is a value that is not text: {', '.join(wrong)}.")
        return Row(self.line, cells)

    def writer(self, file: IO[str]) -> Callable[[dict[str, object]], object]:
        return lambda row: file.write(json.dumps(row, ensure_ascii=False) + "\n")


_BY_ENDING: dict[str, Callable[[Path, BufferedReader], RowFile]] = {
    ".csv": CsvFile,
    ".jsonl": JsonLinesFile,
}


@contextmanager
def open_rows(path: Path) -> Iterator[RowFile]:
    """The file at `path`, in the format of its ending.

    Raises:
        UnreadableFile: another ending, or a header with wrong or missing columns.
        OSError
    """
    if path.suffix.lower() not in _BY_ENDING:
        raise UnreadableFile(f"{path.name}: the file name must end in .csv or .jsonl.")
    with path.open("rb") as file:
        yield _BY_ENDING[path.suffix.lower()](path, file)


@contextmanager
def rejected_rows(source: RowFile) -> Iterator[Callable[[Row, str], None]]:
    """Writes the rejected rows of `source`, with their reasons, to its `rejected` path.

    At the end of the `with` block the file replaces that of an earlier import; without rejected
    rows that one is deleted. Only its owner can read the file, because it may hold hashes.

    Raises (on entry and later): OSError
    """
    write: Callable[[dict[str, object]], object] | None = None

    def add(row: Row, reason: str) -> None:
        nonlocal write
        write = write or source.writer(file)
        write(row.cells | {"line": row.line, "reason": reason})

    # JSON can contain lone surrogates. UTF-8 cannot, so they are written as JSON escapes.
    with NamedTemporaryFile(
        "w",
        encoding="utf-8",
        newline="",
        errors="backslashreplace",
        dir=source.rejected.parent,
        prefix=f"{source.rejected.name}.",
        delete=False,
    ) as file:
        try:
            yield add
        finally:
            file.flush()
            partial = Path(file.name)
            if write:
                partial.replace(source.rejected)
            else:
                partial.unlink()
    if not write:
        source.rejected.unlink(missing_ok=True)


def _column(field: str) -> str:
    """`full_name` for "Full Name"."""
    return "_".join(field.casefold().split())


def _fit(header: str, separator: str) -> tuple[int, int]:
    """How many columns are known with this separator, and how many there are."""
    fields = next(csv.reader([header], delimiter=separator), [])
    return sum(_column(field) in columns() for field in fields), len(fields)
