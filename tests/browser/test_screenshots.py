"""The pictures of docs/screenshots.md: each is of a story that this test plays in a browser.

`make screenshots` writes them to docs/images/. The first story is the chapter "Registration" of the
tutorial, in a new project; the others use the site.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import django
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.accounts.test_own_projects import PAGE
from tests.commands import ROOT
from tests.engines import free_port
from tests.environment import clean_environment
from tests.factories import PASSWORD, make_user
from tests.fork_server import fork_server
from tests.invoice_factories import issued, sell_as
from tests.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.site]

DOCS = ROOT / "docs"
SIZE = {"width": 800, "height": 560}
#: Cheap, as in the other tests.
MD5 = '\nPASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]\n'
#: As the page says; since Django 6.1, `startproject` sets MAILERS.
CONSOLE = '\nEMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"\n'
MAILS = "" if django.VERSION >= (6, 1) else CONSOLE

Take = Callable[[Page, str], None]


@pytest.fixture
def take(tmp_path: Path) -> Take:
    """Takes a picture, for the docs if `make screenshots` asks for it."""
    folder = Path(os.environ.get("SCREENSHOTS", tmp_path))

    def taken(page: Page, name: str) -> None:
        assert f"](images/{name}.png)" in (DOCS / "screenshots.md").read_text(encoding="utf-8")
        page.screenshot(path=folder / f"{name}.png", animations="disabled", caret="hide")

    return taken


@contextmanager
def new_project(folder: Path, engine: str) -> Iterator[tuple[str, Path]]:
    """A project as the tutorial makes it, served: its address, and what its console shows."""
    env = clean_environment(
        PATH=os.environ["PATH"],
        PYTHONPATH=str(ROOT),
        AWS_ENDPOINT_URL_DYNAMODB=engine,
        AWS_DEFAULT_REGION="us-east-1",
        AWS_ACCESS_KEY_ID="tests",
        AWS_SECRET_ACCESS_KEY="tests",
        PYTHONUNBUFFERED="1",
    )

    def run(program: str, *arguments: str) -> None:
        ended = fork_server.run(program, *arguments, env=env, folder=folder)
        assert ended.returncode == 0, ended.stderr

    run("django", "startproject", "club", ".")
    address = f"127.0.0.1:{free_port()}"
    with (folder / "club" / "settings.py").open("a") as settings:
        settings.write(PAGE["club/settings.py"] + MAILS + MD5)
        settings.write(f'ACCOUNTS_SITE_ORIGIN = "http://{address}"\n')
    (folder / "club" / "urls.py").write_text(PAGE["club/urls.py"])
    run("manage.py", "createtables", "-v0")
    console = folder / "console"
    with (
        console.open("w") as shown,
        subprocess.Popen(
            [sys.executable, "manage.py", "runserver", "--noreload", address],
            cwd=folder,
            env=env,
            stdout=shown,
            stderr=subprocess.STDOUT,
        ) as server,
    ):
        try:
            wait_until(lambda: "Quit the server" in console.read_text())
            yield f"http://{address}", console
        finally:
            server.terminate()


def sign_up(page: Page, username: str, email: str) -> None:
    page.goto("/accounts/signup/")
    for label, text in {"Username": username, "Email address": email}.items():
        page.get_by_label(label, exact=True).fill(text)
    for field in page.locator("input[type=password]").all():
        field.fill(PASSWORD)
    page.locator("main button, form button").last.click()


def test_the_chapter_registration_ends_with_a_taken_username(
    browser: Browser, engine: str, tmp_path: Path, take: Take
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with new_project(project, engine) as (address, console):
        options = {"base_url": address, "locale": "en-GB", "viewport": SIZE}
        ann, other = (browser.new_context(**options).new_page() for _visitor in range(2))
        for page in (ann, other):
            page.set_default_timeout(8_000)
        sign_up(ann, "ann", "ann@example.org")
        expect(ann).to_have_url(re.compile("/accounts/profile/$"))
        [link] = re.findall(rf"{address}/\S+", console.read_text())
        ann.goto(link)
        take(ann, "link")
        ann.locator("form button").last.click()
        expect(ann.get_by_text("Confirmed", exact=True)).to_be_visible()
        take(ann, "profile")
        ann.goto("/accounts/sessions/")
        take(ann, "sessions")

        sign_up(other, "ANN", "bob@example.org")
        expect(other.get_by_text("This username is taken.")).to_be_visible()
        take(other, "taken")
        other.goto("/accounts/login/")
        take(other, "sign-in")


def test_the_site_and_its_admin(
    open_page: Callable[..., Page], browser: Browser, take: Take
) -> None:
    ann = make_user(username="ann", email="ann@example.org")
    sell_as(ann, name="Ann Ltd", address="1 High Street\nLondon")
    number = issued(ann.pk).label
    staff = make_user(username="boss", is_staff=True, is_superuser=True)
    page = open_page(browser, ann, viewport=SIZE)
    page.goto("/")
    take(page, "home")
    page.goto(f"/invoices/{number}/")
    take(page, "issued")
    page = open_page(browser, staff, viewport=SIZE)
    page.goto("/admin/")
    take(page, "admin")
    page.get_by_role("main").get_by_role("link", name="Accounts", exact=True).last.click()
    take(page, "admin-list")
    page.get_by_role("main").get_by_role("link", name="ann").first.click()
    take(page, "admin-account")


def test_every_picture_of_the_page_is_taken() -> None:
    shown = re.findall(r"\]\(images/([\w-]+)\.png\)", (DOCS / "screenshots.md").read_text("utf-8"))
    taken = re.findall(r'take\(\w+, "([\w-]+)"\)', Path(__file__).read_text("utf-8"))

    assert sorted(shown) == sorted(taken)
    assert sum((DOCS / "images" / f"{name}.png").stat().st_size for name in shown) < 500_000
