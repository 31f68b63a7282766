"""The settings and files of a site in production."""

import os
import runpy
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings

from tests.commands import ROOT
from tests.fonts import with_fonts

# The whole environment of a site in production.
PRODUCTION = {
    "DJANGO_SECRET_KEY": "k3y-of-a-test_" + "0123456789abcdefghijklmnopqrstuvwxyz" * 2,
    "DJANGO_ALLOWED_HOSTS": "www.example.org,.example.net",
    "DJANGO_CSRF_TRUSTED_ORIGINS": "https://www.example.org",
    "ACCOUNTS_SITE_ORIGIN": "https://www.example.org",
    "ACCOUNTS_PREVENT_ENUMERATION": "on",
    "ACCOUNTS_EMAIL_CHANGE": "confirm",
    "DJANGO_FROM_EMAIL": "ledger@example.org",
    "EMAIL_URL": "smtp+tls://user:password@mail.example.org:587",
    "AWS_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "tests",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "PATH": os.environ["PATH"],
}
HOST = "www.example.org"

#: Files that are copied, or that the site writes.
LEFT_OUT = {"manage.py", "project", "var", "staticfiles"}

# Settings of the suite that stay: the engine, emails, cheap hashes.
_OF_THE_SUITE = (
    "AWS_",
    "DATABASES",
    "DYNAMODB_",
    "EMAIL_",
    # The helper that makes PDFs outlives a test, and the folder of this one.
    "LOCALE_PATHS",
    "LOGGING",
    "PASSWORD_",
    "ROOT_",
    "TEMPLATES",
)


def checkout_in(folder: Path) -> Path:
    """A checkout of the site in `folder`, without an `.env`."""
    for name in ("manage.py", "project"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    for source in ROOT.iterdir():
        if not source.name.startswith(".") and source.name not in LEFT_OUT:
            (folder / source.name).symlink_to(source)
    return folder


@cache
def _collected() -> TemporaryDirectory[str]:
    """The static files of production, collected once; removed at the end of the process."""
    folder = TemporaryDirectory()
    storages = settings_of(PRODUCTION | {"DJANGO_DEBUG": "off"}, ROOT)["STORAGES"]
    with override_settings(STATIC_ROOT=folder.name, STORAGES=storages):
        call_command("collectstatic", interactive=False, verbosity=0)
    return folder


def collect_into(folder: Path) -> None:
    """Copy the static files of production, as they are collected, into this folder."""
    shutil.copytree(_collected().name, folder)


def settings_of(environment: dict[str, str], root: Path) -> dict[str, Any]:
    """The settings of the checkout `root` in an environment."""
    environment = with_fonts(environment)
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        return runpy.run_path(str(root / "project" / "settings.py"))


def apply(settings: Any, root: Path) -> None:
    """Apply the settings of production; `root` is an empty folder."""
    if not (root / "project").exists():
        # A copy, so that an `.env` of the checkout is not read.
        shutil.copytree(ROOT / "project", root / "project")
    for name, value in settings_of(PRODUCTION, root).items():
        if name.isupper() and not name.startswith(_OF_THE_SUITE):
            setattr(settings, name, value)
    if not settings.STATIC_ROOT.exists():
        collect_into(settings.STATIC_ROOT)
