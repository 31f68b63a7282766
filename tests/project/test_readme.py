"""The commands of the README and of docs/, as they stand there, one after the other."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.commands import ROOT, run

MANAGE = ".venv/bin/python manage.py "


def commands_of(text: str) -> list[list[str]]:
    """The words of every `manage.py` command in the code of a text, in their order."""
    lines = [line.removeprefix("$ ") for line in text.splitlines()]
    return [
        shlex.split(line.removeprefix(MANAGE), comments=True)
        for line in lines
        if line.startswith(MANAGE)
    ]


def sections() -> dict[str, str]:
    """The README's sections by their titles."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", readme, re.DOTALL | re.MULTILINE))


NUMBERS = {
    "README.md": sections()["Numbers"],
    "numbers.md": (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8"),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("page", NUMBERS)
def test_what_is_said_to_try_works_in_that_order(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # The engine is the test's own: there is no embedded one to ask for its status.
    commands = [
        words
        for words in commands_of(sections()["Try it"] + NUMBERS[page])
        if words[0] != "localdynamodb"
    ]

    for words in commands:
        out, err, code = run(*words)
        assert (code, err) == (0, ""), (words, out)

    tried = {words[0] for words in commands}
    assert {"createuser", "countertest", "issueinvoice", "checkinvoices"} <= tried
    assert (tmp_path / "invoice.pdf").read_bytes().startswith(b"%PDF-")
