"""Which usernames may be chosen: readable ones that are not easily mistaken for another.

The rules are those of Unicode's security standard (UTS 39): only characters that it allows in
identifiers, scripts mixed at most as its level "highly restrictive" permits, and no name that looks
as if it were written in ASCII letters although it is not. Names that the site reserves
(`ACCOUNTS_RESERVED_USERNAMES`) are for operators.

They concern new names. An account keeps the name it has, and may change its case.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from accounts.values import comparable_username

#: Python knows no scripts, and no library of PyPI has this data in a maintained form; it is small.
TABLE = Path(__file__).with_name("usernames.txt")

#: Scripts that one text mixes: those of Chinese with Bopomofo, of Japanese and of Korean. UTS 39,
#: section 5.2, allows Latin together with each of them.
_MIXED = (
    frozenset({"Han", "Bopomofo"}),
    frozenset({"Han", "Hiragana", "Katakana"}),
    frozenset({"Han", "Hangul"}),
)


def check_new(name: str) -> None:
    """Refuse a reserved or confusable name; `name` has the shape of a username.

    Raises:
        ValidationError: with the code `character`, `scripts` or `lookalike`.
    """
    plain = unicodedata.normalize("NFKC", name)
    foreign = [char for char in plain if not char.isascii()]
    for char in foreign:
        if _table().scripts(char) is None:
            raise ValidationError(
                _("The character “%(character)s” is not allowed in usernames."),
                "character",
                {"character": char},
            )
    if not _is_highly_restrictive([_table().scripts(char) or frozenset() for char in plain]):
        raise ValidationError(
            _("Use letters of one script only, such as Latin or Cyrillic."),
            "scripts",
        )
    lookalikes = _table().lookalikes
    if foreign and all(char in lookalikes for char in foreign):
        raise ValidationError(
            _(
                "This username looks like “%(lookalike)s” but has different letters. "
                "Choose another one."
            ),
            "lookalike",
            {"lookalike": "".join(lookalikes.get(char, char) for char in plain)},
        )


def check_change(old: str, new: str) -> None:
    """Refuse `new` as `check_new` does, unless it is a name older than these rules in other case.

    Raises:
        ValidationError: see `check_new`.
    """
    if comparable_username(old) == comparable_username(new) and not _is_choosable(old):
        return
    check_new(new)


def check_reserved(name: str, old: str = "") -> None:
    """Refuse a name that is reserved for operators, unless it is the account's already.

    Raises:
        ValidationError: with the code `reserved`.
    """
    wanted = comparable_username(name)
    reserved = map(comparable_username, settings.ACCOUNTS_RESERVED_USERNAMES)
    if wanted != comparable_username(old) and wanted in reserved:
        raise ValidationError(_("This username is reserved."), code="reserved")


def _is_choosable(name: str) -> bool:
    try:
        check_new(name)
    except ValidationError:
        return False
    return True


def _is_highly_restrictive(used: list[frozenset[str]]) -> bool:
    """Whether characters of these scripts may be mixed; an empty set stands for any script."""
    known = [scripts for scripts in used if scripts]
    if not known or frozenset.intersection(*known):
        return True
    others = [scripts for scripts in known if "Latin" not in scripts]
    return any(all(scripts & mixed for scripts in others) for mixed in _MIXED)


@dataclass(frozen=True)
class _Table:
    """What `usernames.txt` says; the ranges are sorted by their first code point."""

    ranges: list[tuple[int, int, frozenset[str]]]
    #: What characters other than Latin look like in ASCII.
    lookalikes: dict[str, str]

    def scripts(self, char: str) -> frozenset[str] | None:
        """The scripts that `char` is used with, empty for any; None if it is not allowed."""
        at = bisect_right(self.ranges, ord(char), key=lambda entry: entry[0]) - 1
        if at < 0 or ord(char) > self.ranges[at][1]:
            return None
        return self.ranges[at][2]


@cache
def _table() -> _Table:
    table = _Table([], {})
    for line in TABLE.read_text(encoding="ascii").splitlines():
        if not line or line.startswith("#"):
            continue
        codes, *values = line.split()
        if values[0] == "=":
            table.lookalikes[chr(int(codes, 16))] = values[1]
            continue
        first, _dash, last = codes.partition("-")
        scripts = frozenset(values) - {"-"}
        table.ranges.append((int(first, 16), int(last or first, 16), scripts))
    return table
