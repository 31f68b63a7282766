"""The README is short and its Python works; the commands of docs/ work in their order."""

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from tests import ownapp
from tests.commands import ROOT, run
from tests.fork_server import fork_server
from tests.tutorial import CHAPTERS, FILE, chapter, example, files, type_session, write_files

GUIDE = (ROOT / "dynamo" / "guide.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: The settings of a project: blocks that only assign.
INSTALLED, CACHES_AND_SESSIONS = re.findall(
    r"^```python\n((?:[A-Z_]+ = .*\n)+)```$", README, re.MULTILINE
)
#: pytest with the plugin of the library, which it loads by its entry point where it is installed.
OWN_TESTS = ("pytest", *ownapp.PYTEST, "-p", "dynamo.pytest_plugin")
MANAGE = ".venv/bin/python manage.py "

#: The bars of tables count too; there are more than a hundred.
MOST_WORDS = 900
MOST_LINES_OF_THE_GUIDE = 900

#: The library alone is installed in the project that runs the README's Python.
SETTINGS = """
settings.configure(
    SECRET_KEY="of-this-test",
    INSTALLED_APPS=INSTALLED_APPS,
    AWS_REGION=AWS_REGION,
    DYNAMODB_TABLE_PREFIX=PREFIX,
    CACHES=CACHES,
    SESSION_ENGINE=SESSION_ENGINE,
)
django.setup()
"""
WHAT_IS_STORED_THEN = """
from django.core.cache import cache

assert Member.find(email="ann@example.com").pk == ann.pk
try:
    Member.create(email="ann@example.net")
except Member.Taken:
    pass
else:
    raise AssertionError("two members have one email address")
assert next_value("orders") == 2
again = issue(Ticket(subject="Broken door"), series="2026", request_id="form-7")
assert (ticket.number, again.number) == (1, 1)
assert fencing_token > 0
assert cache.add("key", 1) and not cache.add("key", 2)
"""


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= MOST_WORDS


def test_the_guide_is_printed_and_short() -> None:
    command = [sys.executable, "-m", "dynamo", "guide"]
    printed = subprocess.check_output(command, cwd=ROOT, text=True, encoding="utf-8")

    assert printed == GUIDE
    assert len(printed.splitlines()) <= MOST_LINES_OF_THE_GUIDE


def test_the_project_of_the_guide_passes_its_checks_and_its_tests(tmp_path: Path) -> None:
    project = dict(FILE.findall(GUIDE))
    # The other blocks are `python`, and run as one program.
    assert len(project) == len(re.findall("^```(?:py|html|ini)$", GUIDE, re.MULTILINE))
    write_files(project | {"manage.py": ownapp.FILES["manage.py"]}, tmp_path)

    environment = ownapp.environment(tmp_path, Path(sys.executable).parent)
    for command in (("manage.py", "check", "--fail-level=WARNING"), OWN_TESTS):
        ended = fork_server.run(
            *command, env=environment | {"PYTHONPATH": str(ROOT)}, folder=tmp_path
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("page", "then"),
    [
        ("README.md", WHAT_IS_STORED_THEN),
        ("dynamo/guide.md", ""),
        ("docs/indexes.md", ""),
        ("docs/models.md", ""),
        ("docs/numbers.md", ""),
    ],
)
def test_the_python_of_a_page_works_with_only_the_library(
    page: str, then: str, tmp_path: Path
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    settings = [INSTALLED, CACHES_AND_SESSIONS]
    program = [
        "import django",
        "from django.conf import settings",
        "from django.core.management import call_command",
        *settings,
        f"PREFIX = '{Path(page).stem}-'",
        SETTINGS,
        *statements("".join(block for block in blocks if block not in settings)),
        then,
    ]
    file = tmp_path / "page.py"
    file.write_text("\n".join(program), encoding="utf-8")

    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = fork_server.run(str(file), env=environment, folder=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")


def statements(program: str) -> Iterator[str]:
    """The statements of a program; tables are created first, and those of a model after it."""
    create = "call_command('createtables', verbosity=0)"
    yield create
    for statement in ast.parse(program).body:
        yield ast.unparse(statement)
        if isinstance(statement, ast.ClassDef):
            yield create


def commands_of(page: str) -> list[list[str]]:
    """The words of every `manage.py` command in the code of a page, in their order."""
    lines = [line.removeprefix("$ ") for line in page.splitlines()]
    return [
        shlex.split(line.removeprefix(MANAGE), comments=True)
        for line in lines
        if line.startswith(MANAGE)
    ]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("page", "needed"),
    [
        ("commands.md", {"createuser", "issueinvoice", "checkinvoices", "invoicepdf"}),
        ("invoices.md", {"creditinvoice", "markpaid", "sendinvoice"}),
    ],
)
def test_the_commands_of_a_page_work_in_their_order(
    page: str, needed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    # The engine is the test's own: there is no local one to ask for its status.
    commands = [words for words in commands_of(text) if words[0] != "localdynamodb"]

    for words in commands:
        out, err, code = run(*words)
        assert (code, err) == (0, ""), (words, out)

    tried = {words[0] for words in commands}
    assert needed <= tried
    if "invoicepdf" in needed:
        assert (tmp_path / "invoice.pdf").read_bytes().startswith(b"%PDF-")


# The tutorial, which `test_library.py` types with the installed wheel -----------------------------


@pytest.mark.parametrize("project", CHAPTERS)
def test_the_commands_of_the_tutorial_print_what_it_shows(project: str, tmp_path: Path) -> None:
    told, shown = type_session(project, tmp_path, PYTHONPATH=str(ROOT))

    assert shown == told


@pytest.mark.parametrize("project", CHAPTERS)
def test_the_examples_have_what_the_tutorial_shows(project: str) -> None:
    stored = example(project)

    assert files(project).items() <= stored.items()
    for lines in re.findall(r"^```py\n(.*?)^```$", chapter(CHAPTERS[project]), re.DOTALL | re.M):
        assert any(indent(lines, " " * 8) in text for text in stored.values())


def test_a_model_with_an_index_is_in_the_admin_in_twenty_lines() -> None:
    lines = example("admin")["members/admin.py"].splitlines()

    assert len([line for line in lines if line]) <= 20
