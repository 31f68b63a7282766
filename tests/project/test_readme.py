"""The README's commands, as they stand there, one after the other."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.commands import ROOT, run

MANAGE = ".venv/bin/python manage.py "


def commands_of(*titles: str) -> list[list[str]]:
    """The words of every `manage.py` command in the code of these sections, in their order."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", readme, re.DOTALL | re.MULTILINE))
    lines = [line.removeprefix("$ ") for title in titles for line in sections[title].splitlines()]
    return [
        shlex.split(line.removeprefix(MANAGE), comments=True)
        for line in lines
        if line.startswith(MANAGE)
    ]


@pytest.mark.usefixtures("engine")
def test_what_the_readme_says_to_try_works_in_that_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # The engine is the test's own: there is no embedded one to ask for its status.
    commands = [words for words in commands_of("Try it", "Numbers") if words[0] != "localdynamodb"]

    for words in commands:
        out, err, code = run(*words)
        assert (code, err) == (0, ""), (words, out)

    tried = {words[0] for words in commands}
    assert {"createuser", "countertest", "issueinvoice", "checkinvoices", "deleteuser"} <= tried
    assert (tmp_path / "invoice.pdf").read_bytes().startswith(b"%PDF-")
