"""Usernames: their shape, the form in which they are compared, and the rules for new ones.

New usernames must not be confused with others. They follow Unicode's security standard (UTS 39):
their characters are allowed in identifiers, scripts are mixed only as the level "highly
restrictive" permits, and no other letters look like ASCII letters.
"""

import re
import unicodedata
import uuid
from bisect import bisect_right
from functools import cache, lru_cache
from operator import itemgetter
from pathlib import Path

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

USERNAME_MAX_LENGTH = 150
INVALID_USERNAME = _("Use letters, digits and the characters . + - _ only.")

# Like Django's UnicodeUsernameValidator, but without "@", so that no username is an email address.
_USERNAME = re.compile(r"[\w.+-]+")
_BASED_ON_LATIN = re.compile(r"LATIN (?:SMALL|CAPITAL) LETTER (?:DOTLESS )?([A-Z])(?: WITH .+)?")
_OTHER_LATIN = dict(zip("ðÐŋŊĸəƏ", "dDnNkeE", strict=True))

#: The scripts of characters. Python lacks this data, and PyPI has no maintained library with it.
TABLE = Path(__file__).with_name("usernames.txt")

#: Scripts that may be mixed, as in Chinese, Japanese and Korean. UTS 39, section 5.2, allows Latin
#: together with each of them.
_MIXED = (
    frozenset({"Han", "Bopomofo"}),
    frozenset({"Han", "Hiragana", "Katakana"}),
    frozenset({"Han", "Hangul"}),
)


def as_uuid(text: str) -> str | None:
    """The UUID in `text` in its usual spelling, or None."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None


def clean_username(name: str) -> str:
    """A username: at most 150 letters, digits and . + - _, and not a UUID.

    Therefore, a username is never an email address (with "@") or a primary key (a UUID).
    """
    plain = unicodedata.normalize("NFKC", name)
    if len(plain) > USERNAME_MAX_LENGTH:
        limit = {"limit": USERNAME_MAX_LENGTH}
        raise ValidationError(_("Use at most %(limit)s characters."), "max_length", limit)
    if not _USERNAME.fullmatch(plain):
        raise ValidationError(INVALID_USERNAME, code="invalid")
    if as_uuid(plain):
        raise ValidationError(_("A username cannot be a UUID."), code="uuid")
    return name


def comparable_username(name: str) -> str:
    """NFKC and case folding until nothing changes: `Bob`, `BOB` and `ＢＯＢ` become equal."""
    folded = unicodedata.normalize("NFKC", name)
    while (again := unicodedata.normalize("NFKC", folded.casefold())) != folded:
        folded = again
    return folded


def check_new_username(name: str) -> None:
    """Refuse a confusable username. `name` has the shape of a username.

    Raises:
        ValidationError: with the code `character`, `scripts` or `lookalike`.
    """
    plain = unicodedata.normalize("NFKC", name)
    if plain.isascii():
        return
    foreign = [char for char in plain if not char.isascii()]
    for char in foreign:
        if _scripts(char) is None:
            raise ValidationError(
                _("The character “%(character)s” is not allowed in usernames."),
                "character",
                {"character": char},
            )
    if not _is_highly_restrictive([_scripts(char) or frozenset() for char in plain]):
        raise ValidationError(
            _("Use letters of one script only, such as Latin or Cyrillic."), "scripts"
        )
    _ranges, lookalikes = _table()
    if all(char in lookalikes for char in foreign):
        raise ValidationError(
            _(
                "This username looks like “%(lookalike)s” but has different letters. "
                "Choose another one."
            ),
            "lookalike",
            {"lookalike": "".join(lookalikes.get(char, char) for char in plain)},
        )


def clean_new_username(text: str) -> str:
    """A username that an account may get.

    Raises the errors of `clean_username` and `check_new_username`.
    """
    name = clean_username(text)
    check_new_username(name)
    return name


@lru_cache(1024)
def in_ascii(name: str) -> str:
    """`name` without accents and case, and with ASCII letters instead of similar ones.

    Two names that look alike are then equal. Reserved names are compared in this form.
    """
    letters = unicodedata.normalize("NFKD", name)
    marks = {"Mn", "Mc", "Me"}
    plain = (char for char in letters if unicodedata.category(char) not in marks)
    return comparable_username("".join(map(_ascii_letter, plain)))


def _ascii_letter(char: str) -> str:
    # Letters such as ł have no decomposition, but Unicode names the letter that they are made of.
    if based := _BASED_ON_LATIN.fullmatch(unicodedata.name(char, "")):
        return based[1]
    return _OTHER_LATIN.get(char) or _table()[1].get(char, char)


def _is_highly_restrictive(used: list[frozenset[str]]) -> bool:
    """Whether characters of these scripts may be mixed. An empty set means any script."""
    known = [scripts for scripts in used if scripts]
    if not known or frozenset.intersection(*known):
        return True
    others = [scripts for scripts in known if "Latin" not in scripts]
    return any(all(scripts & mixed for scripts in others) for mixed in _MIXED)


@cache
def _table() -> tuple[list[tuple[int, int, frozenset[str]]], dict[str, str]]:
    """The contents of `usernames.txt`.

    Ranges of code points with their scripts, sorted; and ASCII letters that others look like.
    """
    ranges, lookalikes = [], {}
    for line in TABLE.read_text(encoding="ascii").splitlines():
        if not line or line.startswith("#"):
            continue
        codes, *values = line.split()
        if values[0] == "=":
            lookalikes[chr(int(codes, 16))] = values[1]
            continue
        first, _dash, last = codes.partition("-")
        scripts = frozenset(values) - {"-"}
        ranges.append((int(first, 16), int(last or first, 16), scripts))
    return ranges, lookalikes


def _scripts(char: str) -> frozenset[str] | None:
    """The scripts of `char`; empty for any script, None if it is not allowed."""
    ranges, _lookalikes = _table()
    # The last range that begins at `char` or before it.
    at = bisect_right(ranges, ord(char), key=itemgetter(0)) - 1
    if at < 0 or ord(char) > ranges[at][1]:
        return None
    return ranges[at][2]
