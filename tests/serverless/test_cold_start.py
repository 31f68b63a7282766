"""The modules and files that a new function loads before its first pages."""

import json
import subprocess
import sys
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from tests.factories import make_user
from tests.serverless.runtime import event

#: Answers the events on stdin, and prints what was loaded and opened until then: after the import
#: of the handler, and after each event.
_PROGRAM = """
import json, sys
from types import SimpleNamespace

opened, found = [], []
sys.addaudithook(lambda name, args: opened.append(str(args[0])) if name == "open" else None)

def look(status):
    found.append({"status": status, "modules": sorted(sys.modules), "opened": sorted(opened)})

events = json.load(sys.stdin)
from project.serverless import handler
look(200)
context = SimpleNamespace(aws_request_id="0" * 32, get_remaining_time_in_millis=lambda: 15_000)
for event in events:
    look(handler(event, context)["statusCode"])
print(json.dumps(found))
"""

IMPORT, PROBE, SIGN_IN, PROFILE = "import", "/livez", "/accounts/login/", "/accounts/profile/"
STEPS = (IMPORT, PROBE, SIGN_IN, PROFILE)

#: A module or package, and the first step that may load it; None: none of the steps.
FIRST_LOADED_BY: dict[str, str | None] = {
    "accounts.pages.account": SIGN_IN,
    "babel": SIGN_IN,
    "invoices.output.pdf": SIGN_IN,
    "staff.views": SIGN_IN,
    # The pages of exports; it needs parts of botocore only that are loaded already.
    "uploads.s3": SIGN_IN,
    "boto3": None,
    "debug_toolbar": None,
    "fontTools": None,
    "idna": None,
    "lxml": None,
    "multiprocessing": None,
    "phonenumbers": None,
    "PIL": None,
    "prometheus_client": None,
    "pypdf": None,
    "s3transfer": None,
    "segno": None,
    "stdnum.iban": None,
    "tqdm": None,
    "typst": None,
}

#: A part of a file's path, and the first step that may open such a file.
FIRST_OPENED_BY: dict[str, str | None] = {
    "/templates/": SIGN_IN,
    "/botocore/data/": PROFILE,
    # Names of currencies and countries, which other pages offer.
    "/babel/": None,
    ".otf": None,
    ".ttf": None,
    "usernames.txt": None,
}

#: How many modules a step may have loaded, all together. Python's own differ between versions.
MOST_MODULES = {IMPORT: 951, PROBE: 951, SIGN_IN: 1065, PROFILE: 1075}


@pytest.fixture
def steps(engine: str, environment: dict[str, str], site_folder: Path) -> dict[str, Any]:
    """What a new process has loaded after each step. The profile is that of a signed-in account."""
    visitor = Client()
    visitor.force_login(make_user(username="ann"))  # type: ignore[arg-type]  # the stubs want a model
    cookie = visitor.cookies[settings.SESSION_COOKIE_NAME].value
    signed_in = SimpleCookie({"__Host-sessionid": cookie})
    events = [event("GET", PROBE), event("GET", SIGN_IN), event("GET", PROFILE, cookies=signed_in)]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=site_folder,
        env=environment | {"DJANGO_SECRET_KEY": settings.SECRET_KEY},
        input=json.dumps(events),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = dict(zip(STEPS, json.loads(done.stdout), strict=True))
    assert [value["status"] for value in found.values()] == [200] * len(STEPS)
    return found


def first_steps(steps: dict[str, Any], kind: str, names: dict[str, str | None]) -> dict[str, Any]:
    """By name, the first step after which `kind` has it; `modules` have whole packages."""

    def has(step: str, name: str) -> bool:
        if kind == "modules":
            return name in steps[step][kind]
        return any(name in path for path in steps[step][kind] if not path.endswith((".py", ".pyc")))

    return {name: next((step for step in STEPS if has(step, name)), None) for name in names}


def test_a_new_function_loads_nothing_before_it_is_needed(steps: dict[str, Any]) -> None:
    assert first_steps(steps, "modules", FIRST_LOADED_BY) == FIRST_LOADED_BY
    assert first_steps(steps, "opened", FIRST_OPENED_BY) == FIRST_OPENED_BY

    loaded = {step: len(found["modules"]) for step, found in steps.items()}
    assert {step for step in STEPS if loaded[step] > MOST_MODULES[step]} == set(), loaded


def test_a_server_has_loaded_all_pages_before_it_listens(
    environment: dict[str, str], site_folder: Path
) -> None:
    load = """
import sys, project.wsgi
print(*sys.modules)
from project import start
start.load_pages = lambda: print("by ASGI, too")
import project.asgi
"""
    said = subprocess.check_output(
        [sys.executable, "-c", load], cwd=site_folder, env=environment, text=True
    )

    modules, asgi = said.splitlines()
    loaded = set(modules.split())
    assert {"accounts.pages.account", "babel", "invoices.pages.views", "phonenumbers"} <= loaded
    assert not {"boto3", "prometheus_client", "typst"} & loaded
    assert asgi == "by ASGI, too"
