"""`runserver` in projects with and without staticfiles."""

import os
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from tests import tutorial
from tests.engines import free_port, is_listening
from tests.fork_server import fork_server
from tests.waiting import wait_until

_MANAGE = """
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import path

settings.configure(
    DEBUG=True,
    SECRET_KEY="only for development",
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["dynamo"],
    DATABASES={},
    AWS_REGION="us-east-1",
)
urlpatterns = [path("", lambda request: HttpResponse("It works."))]
if __name__ == "__main__":
    execute_from_command_line(sys.argv)
"""

Manage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment() -> dict[str, str]:
    """Without an endpoint, so that each project has a local engine of its own."""
    others = {"AWS_ENDPOINT_URL_DYNAMODB", "DJANGO_SETTINGS_MODULE"}
    return {name: value for name, value in os.environ.items() if name not in others}


@pytest.fixture
def manage(tmp_path: Path, environment: dict[str, str]) -> Iterator[Manage]:
    """Run `manage.py` of the project in `tmp_path`, whose engine ends with the test."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return fork_server.run("manage.py", *arguments, env=environment, folder=tmp_path)

    yield run
    run("localdynamodb", "stop")


def write_project_of_the_tutorial(folder: Path) -> None:
    """A project that Django starts, with the settings and the URLs of the tutorial."""
    call_command("startproject", "club", folder)
    [settings] = tutorial.FILE.findall(tutorial.chapter("Settings"))
    with (folder / settings[0]).open("a") as file:
        file.write(settings[1])
    (folder / "club" / "urls.py").write_text(tutorial.files("counters")["club/urls.py"])


@pytest.mark.parametrize(
    ("write", "page"),
    [
        (lambda folder: (folder / "manage.py").write_text(_MANAGE), b"It works."),
        (write_project_of_the_tutorial, b"Visit 1"),
    ],
    ids=["without staticfiles", "of the tutorial"],
)
def test_a_project_is_served_after_its_tables_were_created(
    manage: Manage,
    environment: dict[str, str],
    tmp_path: Path,
    write: Callable[[Path], object],
    page: bytes,
) -> None:
    write(tmp_path)
    port = free_port()
    command = ["runserver", "--noreload", f"127.0.0.1:{port}"]
    with Path(os.devnull).open("w") as nothing:
        streams = [nothing.fileno(), nothing.fileno(), 2]
        server = fork_server.fork("manage.py", command, streams, env=environment, folder=tmp_path)
    try:
        wait_until(lambda: server.poll() is not None or is_listening(port))
        assert server.poll() is None
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            assert answer.read() == page
    finally:
        server.kill()
        server.wait()

    assert manage("createtables").stdout.startswith("Nothing to do")
