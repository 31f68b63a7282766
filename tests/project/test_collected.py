"""The server does not start, and `check --deploy` warns, if `collectstatic` was not run."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.finders import find
from django.contrib.staticfiles.storage import staticfiles_storage

from project import settings as site
from project.checks import check_collected, stop_without_static_files
from tests.fork_server import fork_server
from tests.production import PRODUCTION, checkout_in

STYLE = "accounts/site.css"


@pytest.fixture
def static_root(production: None, settings: Any, tmp_path: Path) -> Path:
    """The collected static files of this test."""
    settings.STATIC_ROOT = shutil.copytree(settings.STATIC_ROOT, tmp_path / "staticfiles")
    return Path(settings.STATIC_ROOT)


def test_without_collected_files_a_server_prints_one_line(tmp_path: Path) -> None:
    program = "import project.wsgi"
    ended = fork_server.run("-c", program, env=PRODUCTION, folder=checkout_in(tmp_path))

    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith("The site cannot start: there are no static files in ")
    assert line.endswith("Run manage.py collectstatic --no-input.")


def test_a_file_that_was_not_collected_stops_the_start(static_root: Path) -> None:
    del staticfiles_storage.hashed_files[STYLE]

    with pytest.raises(SystemExit, match=f"cannot start: {STYLE} is not among"):
        stop_without_static_files()
    assert [finding.id for finding in check_collected(None)] == ["project.E001"]


def test_a_file_that_changed_later_is_a_warning(static_root: Path) -> None:
    source = find(STYLE)
    assert isinstance(source, str)
    (static_root / STYLE).write_bytes(Path(source).read_bytes() + b"/* before */")

    stop_without_static_files()

    (finding,) = check_collected(None)
    assert finding.id == "project.W001"
    assert STYLE in finding.msg


def test_no_collected_files_are_needed_in_development_or_for_a_check_before_the_collection(
    production: None, settings: Any, tmp_path: Path
) -> None:
    settings.STATIC_ROOT = tmp_path / "nothing"
    assert check_collected(None) == []

    settings.STORAGES = site.STORAGES
    stop_without_static_files()
    assert check_collected(None) == []
