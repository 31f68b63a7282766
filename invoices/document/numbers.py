"""Numbers as people type them into a form: `12,50`, `1.234,50`, `1 234,50`, `1'234.50`.

A point or a comma may stand before the decimals or between thousands. So `1.234` has two readings,
and only the person who typed it knows which one is meant. Digits may be full-width.
"""

from __future__ import annotations

import re

#: Longer than any allowed number.
NUMBER_MAX_LENGTH = 40

# Full-width forms, and the spaces and apostrophes that stand between digits, as ASCII.
_ASCII = (
    {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    | dict.fromkeys([*map(ord, " \u3000\u00a0\u202f\u205f\u2019"), *range(0x2000, 0x200B)], "'")
    | {0x2212: "-"}
)
_SIGNED = re.compile(r"([+-]?)([\d.,']+)", re.ASCII)
_WHOLE = {
    # By the character before the decimals: digits, or groups of three.
    ".": re.compile(r"\d*|[1-9]\d{0,2}(?:(?:,\d{3})+|(?:'\d{3})+)", re.ASCII),
    ",": re.compile(r"\d*|[1-9]\d{0,2}(?:(?:\.\d{3})+|(?:'\d{3})+)", re.ASCII),
}


def readings(typed: str) -> list[str]:
    """What `typed` may mean, with a point before the decimals: none, one or two numbers.

    If there are two, the first one has the decimals.
    """
    text = typed.strip()
    match = _SIGNED.fullmatch(text.translate(_ASCII)) if len(text) <= NUMBER_MAX_LENGTH else None
    if not match:
        return []
    sign, digits = match.groups()
    found = []
    for point, whole_part in _WHOLE.items():
        whole, _point, decimals = digits.partition(point)
        is_number = whole_part.fullmatch(whole) and (not decimals or decimals.isdecimal())
        if is_number and (whole or decimals):
            plain = re.sub("[.,']", "", whole) + ("." + decimals if decimals else "")
            found.append(sign + plain)
    return sorted(set(found), key=lambda plain: "." not in plain)


def with_another_decimal(plain: str) -> str:
    """`1.234` as `1.2340`, which has no other reading."""
    return f"{plain}0"
