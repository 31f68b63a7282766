"""A project with one app and the tests of docs/testing.md, which run as its developers run them."""

import os
import re
import subprocess
from pathlib import Path

from tests.commands import ROOT
from tests.environment import clean_environment
from tests.tutorial import write_files

_TOLD = re.compile(r"^`(\w+\.\w+)`\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TOLD_FILES = dict(_TOLD.findall((ROOT / "docs" / "testing.md").read_text(encoding="utf-8")))

FILES = {
    "manage.py": """
import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "club.settings")
if __name__ == "__main__":
    execute_from_command_line(sys.argv)
""",
    "club/settings.py": """
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
DEBUG = True
SECRET_KEY = "only for development"
INSTALLED_APPS = ["dynamo", "sequences", "locks", "members"]
DATABASES = {}
USE_TZ = True
# Both would lead to the tables of development.
DYNAMODB_LOCAL = True
DYNAMODB_LOCAL_DIR = BASE_DIR / "var"
""",
    "members/models.py": """
from dynamo.wire.attributes import TextAttribute
from dynamo.model.base import Model
from dynamo.model.unique import Unique, casefolded
from sequences import NumberedItem


class Member(Model):
    class Meta:
        table_name = "members"

    email = TextAttribute()
    unique_email = Unique("email", normalize=casefolded)


class Ticket(NumberedItem):
    class Meta:
        table_name = "tickets"
""",
    "pytest.ini": _TOLD_FILES.pop("pytest.ini"),
    **{f"members/{name}": text for name, text in _TOLD_FILES.items()},
}


PYTEST = ("-q", "-p", "no:randomly", "-p", "no:cacheprovider")


def make(folder: Path, **more: str) -> Path:
    """Write the project, with `more` files of tests in its app (`test_names="…"`)."""
    write_files(FILES | {f"members/{name}.py": text for name, text in more.items()}, folder)
    return folder


def environment(project: Path, programs: Path) -> dict[str, str]:
    """That of the developers of the project."""
    return clean_environment(HOME=str(project), PATH=f"{programs}:{os.environ['PATH']}")


def outcome(project: Path, *command: str, programs: Path, **env: str) -> tuple[int, str]:
    """The exit code of a command in the project, and all that it printed."""
    done = subprocess.run(
        [programs / command[0], *command[1:]],
        cwd=project,
        env=environment(project, programs) | env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout
