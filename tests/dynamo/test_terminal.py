from __future__ import annotations

from dynamo.terminal import printable


def test_names_are_shown_on_one_line() -> None:
    assert printable("日本 a\n\x1b[1m\udce9") == "日本 a\\n\\x1b[1m\\udce9"
