"""Runs the tutorial: writes its files into an empty folder, and runs its commands in a shell."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile

from tests.environment import clean_environment
from tests.fork_server import ROOT, fork_server

TEXT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
FILE = re.compile(r"^`([\w/]+\.(?:py|html|ini))`\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_EXPORTED = re.compile(r'export (\w+)="([^"]*)"; (.*)')
SESSION = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)

#: The title of the chapter of each example project.
CHAPTERS = {
    "counters": "Counters",
    "tickets": "Items with gapless numbers",
    "members": "A model with unique attributes",
    "tasks": "Background tasks",
    "users": "Users who sign up",
    "admin": "Members in the admin",
}


def chapter(project: str) -> str:
    return TEXT.split(f"\n## {CHAPTERS[project]}\n")[1].split("\n## ")[0]


def files(project: str) -> dict[str, str]:
    """The text of each file of a chapter, by its path."""
    return dict(FILE.findall(chapter(project)))


def write_files(texts: dict[str, str], folder: Path) -> None:
    """Write files, and an empty `__init__.py` into each folder below `folder`."""
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        for package in file.relative_to(folder).parents[:-1]:
            (folder / package / "__init__.py").touch()


def type_session(
    project: str, folder: Path, programs: Path | None = None, **env: str
) -> tuple[str, str]:
    """Type a chapter's commands: what the tutorial shows, and what a terminal showed.

    `programs` is the folder of the `python` to use; without it, forks of our `python` run commands.
    """
    write_files(files(project), folder)
    [session] = SESSION.findall(chapter(project))
    commands = re.findall(r"^\$ (.+)$", session, re.MULTILINE)
    shown = "".join(
        f"$ {command}\n{typed(command, folder, programs, **env)}" for command in commands
    )
    if not shown.endswith("\nStopped.\n"):
        typed("python manage.py localdynamodb stop", folder, programs, **env)
    return session, shown


def typed(command: str, folder: Path, programs: Path | None, **env: str) -> str:
    """What a terminal shows of a command."""
    path = programs or Path(sys.executable).parent
    env = clean_environment(PATH=f"{path}{os.pathsep}{os.environ['PATH']}", **env)
    if exported := _EXPORTED.match(command):
        env = env | {exported[1]: exported[2]}
        command = exported[3]
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    python, *arguments = words
    if programs is None and python == "python" and not {">", "|", "&", ";"} & set(arguments):
        with TemporaryFile() as shown:
            streams = [shown.fileno()] * 3
            fork_server.fork(arguments[0], arguments[1:], streams, env=env, folder=folder).wait()
            shown.seek(0)
            return shown.read().decode()
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    ).stdout
