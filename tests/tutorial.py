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

#: What `django-admin startproject` writes, as far as the chapters need it.
STARTED = """
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "only for development"
DEBUG = True
ROOT_URLCONF = "club.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
STATIC_URL = "static/"
"""
#: The end of a command whose errors are filtered, too.
ERRORS_TOO = " 2>&1"
MANAGE = (ROOT / "examples" / "users" / "manage.py").read_text(encoding="utf-8")

#: The title of the chapter of each example project.
CHAPTERS = {
    "counters": "Counters",
    "tickets": "Items with gapless numbers",
    "members": "A model with unique attributes",
    "tasks": "Background tasks",
    "admin": "Members in the admin",
}
#: Those that continue the project of the chapter on unique attributes.
CONTINUED = {"tasks"}


def chapter(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def files(project: str) -> dict[str, str]:
    """The text of each file that a chapter shows or that its project begins with, by its path."""
    common = chapter("Settings")
    [console] = re.findall("^EMAIL_BACKEND = .+\n", common, re.MULTILINE)
    before = dict(FILE.findall(common))
    if project in CONTINUED:  # and change the command
        before = {name: text for name, text in files("members").items() if "commands" not in name}
    shown = dict(FILE.findall(chapter(CHAPTERS[project])))
    settings = [before["club/settings.py"], shown.get("club/settings.py", "")]
    if project not in CONTINUED:
        settings = [STARTED.lstrip(), console, *settings]
    return {
        "manage.py": MANAGE,
        "club/urls.py": "urlpatterns = []\n",
        **before,
        **shown,
        "club/settings.py": "".join(settings),
    }


def example(project: str) -> dict[str, str]:
    """The finished files of a chapter: also those that it names without showing them."""
    folder = ROOT / "examples" / project
    return {
        str(file.relative_to(folder)): file.read_text(encoding="utf-8")
        for file in folder.rglob("*.*")
        if file.suffix in {".py", ".html"} and file.name != "__init__.py"
    }


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
    write_files(files(project) | example(project), folder)
    [session] = SESSION.findall(chapter(CHAPTERS[project]))
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
    # A fork prints what the rest of the line filters.
    first, _pipe, filters = command.partition(" | ")
    words = shlex.shlex(first.removesuffix(ERRORS_TOO), posix=True, punctuation_chars=True)
    words.whitespace_split = True
    python, *arguments = words
    if programs is None and python == "python" and not {">", "|", "&", ";"} & set(arguments):
        with TemporaryFile() as out, TemporaryFile() as err:
            errors = err if filters and not first.endswith(ERRORS_TOO) else out
            streams = [stream.fileno() for stream in (out, out, errors)]
            fork_server.fork(arguments[0], arguments[1:], streams, env=env, folder=folder).wait()
            for stream in (out, err):
                stream.seek(0)
            shown = out.read().decode()
            if filters:
                command = ["sh", "-c", filters]
                shown = subprocess.run(
                    command, input=shown, stdout=subprocess.PIPE, text=True, check=False
                ).stdout
            return err.read().decode() + shown
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
