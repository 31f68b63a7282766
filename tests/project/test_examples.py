"""The projects in `examples/` with tests of their own: recipes of registration.md and auth.md."""

import os
import shutil
from pathlib import Path

import pytest

from tests.accounts.test_own_projects import SUITED
from tests.commands import ROOT
from tests.environment import clean_environment
from tests.fork_server import fork_server
from tests.tutorial import CHAPTERS, FILE

EXAMPLES = ROOT / "examples"
#: Those of the tutorial are compared with it (test_readme.py).
RECIPES = sorted({folder.name for folder in EXAMPLES.iterdir()} - CHAPTERS.keys())
REGISTRATION = (ROOT / "docs" / "registration.md").read_text(encoding="utf-8")
PAGE = dict(FILE.findall(REGISTRATION))


#: One program for both commands.
CHECK_AND_TEST = """
import runpy, sys

for command in (["check", "--fail-level=WARNING"], ["test"]):
    sys.argv = ["manage.py", *command]
    runpy.run_path("manage.py", run_name="__main__")
"""


@pytest.mark.parametrize("project", RECIPES)
def test_the_checks_find_nothing_and_the_tests_pass(project: str, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / project, tmp_path / project)
    with (folder / "club" / "settings.py").open("a", encoding="utf-8") as file:
        file.write(SUITED)
    env = clean_environment(PATH=os.environ["PATH"], PYTHONPATH=str(ROOT))
    ended = fork_server.run("-c", CHECK_AND_TEST, env=env, folder=folder)
    assert ended.returncode == 0, ended.stderr
    assert "no issues" in ended.stdout
    assert "OK" in ended.stderr


def test_new_passwords_get_argon2id_without_a_setting() -> None:
    hashed = "from dynamo.auth import make_password; print(make_password('correct horse battery'))"
    env = clean_environment(PATH=os.environ["PATH"], PYTHONPATH=str(ROOT))

    ended = fork_server.run(
        "manage.py", "shell", "-c", hashed, env=env, folder=EXAMPLES / "registration"
    )

    assert "argon2$argon2id$v=19$m=19456,t=2,p=1$" in ended.stdout, ended.stderr


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("file", "example"),
    [
        ("club/settings.py", "registration"),
        ("club/urls.py", "registration"),
        ("members/models.py", "ownuser"),
    ],
)
def test_the_page_shows_the_files_of_the_examples(file: str, example: str) -> None:
    stored = lines(Path(EXAMPLES, example, file).read_text(encoding="utf-8"))
    # Django's default, which replaces the database of `startproject`.
    shown = [line for line in lines(PAGE[file]) if line != "DATABASES = {}"]

    start = stored.index(shown[0])
    assert stored[start : start + len(shown)] == shown


def test_users_sign_up_in_thirty_lines() -> None:
    files = ("members/models.py", "members/views.py", "club/urls.py")
    texts = [(EXAMPLES / "users" / name).read_text(encoding="utf-8") for name in files]

    assert len(lines("".join(texts))) <= 30


def test_registration_takes_thirty_lines_and_a_custom_user_twelve_more() -> None:
    assert len(lines(PAGE["club/settings.py"]) + lines(PAGE["club/urls.py"])) <= 30
    # And a line each in INSTALLED_APPS and for AUTH_USER_MODEL.
    assert len(lines(PAGE["members/models.py"])) + 2 <= 12
