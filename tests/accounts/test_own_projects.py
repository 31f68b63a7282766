"""`accounts` in projects of their own, as docs/registration.md describes them."""

import os
import re
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command

from accounts.checks import check_settings
from accounts.conf import LIMITS, set_defaults
from accounts.models import User
from project import settings as site
from tests.commands import ROOT
from tests.conftest import PATIENCE_SECONDS
from tests.environment import clean_environment
from tests.fork_server import fork_server
from tests.tutorial import FILE, write_files

PAGE = dict(FILE.findall((ROOT / "docs" / "registration.md").read_text(encoding="utf-8")))

EMAIL_ONLY = """
from accounts.models import AbstractAccount
from dynamo import IntegerAttribute


class Member(AbstractAccount):
    class Meta:
        table_name = "members"

    username = None
    USERNAME_FIELD = "email"
    visits = IntegerAttribute("Visits", default=1)
    sign_up_fields = ("email",)
    profile_fields = ("full_name", "language", "visits")
"""

#: As in conftest.py and site.py: a slow machine makes no page late, and hashes are cheap.
SUITED = f"""
ALLOWED_HOSTS = ["*"]
DYNAMODB_PAGE_SECONDS = {PATIENCE_SECONDS}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

from dynamo.client import sending
sending.CONNECT_SECONDS = sending.READ_SECONDS = DYNAMODB_PAGE_SECONDS
"""

#: What each program begins with.
BEGIN = """
import io, json, os, re
os.environ["DJANGO_SETTINGS_MODULE"] = "club.settings"
import django
django.setup()
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from django.test.utils import setup_test_environment

setup_test_environment()
call_command("check", "--fail-level", "WARNING")
call_command("createtables")
PASSWORD = "correct horse battery"

def hidden(page, name):
    return re.search(f'name="{name}" value="([^"]+)"', page.content.decode())[1]

def errors(page):
    return re.findall(r'id="id_(\\w+)_error"', page.content.decode())

def sign_up(client, **values):
    shown = client.get("/accounts/signup/")
    values |= {"password1": PASSWORD, "password2": PASSWORD}
    values["request_id"] = hidden(shown, "request_id")
    return client.post("/accounts/signup/", values)

def shown(client, page):
    return re.sub("<[^>]*>", "", client.get(f"/accounts/{page}/").content.decode())

def printed(*command):
    out = io.StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()

def refused(*command):
    try:
        printed(*command)
    except CommandError as error:
        return str(error)

def follow(client):
    link = re.search(r"http://[^/]+(/\\S+)", mail.outbox[-1].body)[1]
    return client.post(link)
"""

OWN_USER = """
one = {"club": "chess", "membership_number": "1"}
ann, bob = Client(), Client()
sign_up(ann, username="ann", email="ann@example.org", **one)
sign_up(bob, username="bob", email="bob@example.org", **one | {"membership_number": "2"})
assert bob.get("/accounts/export/").json()["account"]["club"] == "chess"
call_command("createuser", username="eve", email="eve@example.org", club="go",
             membership_number="9", unusable_password=True)
eve = {"club": "go", "membership_number": "9"}
assert eve.items() <= json.loads(printed("showuser", "eve", "--json")).items()
assert "membership_number: 9" in printed("showuser", "eve")
from accounts.services import find_user
from tests.items import overwrite, remove_item
ann, twin = find_user("ann"), find_user("bob")
remove_item(twin.table(), pk=twin.guard_key_of(club="chess", membership_number="2"))
overwrite(twin, club={"S": "chess"}, membership_number={"S": "1"})
assert "account.change(club=…, membership_number=…)" in refused("checkguards")
from dynamo.tables.definitions import all_tables
assert [table.base_name for table in all_tables()] == ["cache", "members"]
"""

WITHOUT_USERNAMES = """
ann = Client()
assert sign_up(ann, email="ann@example.org").status_code == 302
assert errors(sign_up(Client(), email="ANN@example.org")) == ["email"]
for page in ("profile", "email", "delete", "sessions"):
    assert ann.get(f"/accounts/{page}/").status_code == 200, page
for page in ("username", "username_reminder"):
    assert ann.get(f"/accounts/{page}/").status_code == 404, page
assert "sername" not in "".join(shown(ann, page) for page in ("profile", "email", "delete"))
ann.post("/accounts/logout/")
wrong = {"username": "ann@example.org", "password": "wrong"}
for page in (ann.get("/accounts/login/"), ann.post("/accounts/login/", wrong)):
    texts = re.sub("<[^>]*>", "", page.content.decode())
    assert "reminder" not in page.content.decode() and "sername" not in texts, texts
who = {"username": "ann@example.org", "password": PASSWORD}
assert ann.post("/accounts/login/", who).status_code == 302
assert Client().login(email="ann@example.org", password=PASSWORD)
assert not Client().login(email="ann@example.org", password="wrong")
from pathlib import Path
rows = Path("users.csv")
lines = "email,full_name,language", "ann@example.org,Ann,", "bob@example.org,Bob,ja", ""
rows.write_text(chr(10).join(lines))
for told in ('"created": 1, "unchanged": 1', '"created": 0, "unchanged": 2'):
    out = io.StringIO()
    call_command("importusers", str(rows), "--json", stdout=out)
    assert told in out.getvalue(), out.getvalue()
assert printed("listusers").count("ann@example.org") == 1
from accounts.services import find_user
bob = find_user("bob@example.org")
assert (bob.full_name, bob.language, bob.visits) == ("Bob", "ja", 1)
assert "sername" not in refused("showuser", "nobody@example.org")
ann.post("/accounts/delete/", {"password": PASSWORD})
call_command("deleteuser", "bob@example.org", interactive=False)
assert "sername" not in "".join(message.body + message.subject for message in mail.outbox)
"""

COSTS = """
from dynamo import collect

def cost(flow, client, path, **typed):
    where = path if path.startswith("/") else f"/accounts/{path}/"
    with collect() as tally:
        page = client.post(where, typed) if typed else client.get(where)
    assert page.status_code in (200, 302), (flow, page.status_code, errors(page))
    units = (f"{units or 0:g}" for units in (tally.write_units, tally.read_units))
    print("Cost:", flow, "/".join((str(tally.requests), *units)))

def mailed():
    return re.search(r"http://[^/]+(/\\S+)", mail.outbox[-1].body)[1]

ann, bob, other, reset = (Client() for _client in range(4))
names = dict(username="ann", email="ann@example.org", password1=PASSWORD, password2=PASSWORD)
passwords = {"new_password1": "another battery", "new_password2": "another battery"}
cost("form", ann, "signup")
shown = hidden(ann.get("/accounts/signup/"), "request_id")
cost("sign up", ann, "signup", request_id=shown, **names)
cost("confirm the address", ann, mailed(), go="on")
cost("sign in", other, "login", username="ann", password=PASSWORD)
cost("show", ann, "profile")
shown = hidden(ann.get("/accounts/profile/"), "version")
cost("edit", ann, "profile", version=shown, full_name="Ann")
cost("change the username", ann, "username", username="anna", password=PASSWORD)
cost("ask for a change", ann, "email", email="new@example.org", password=PASSWORD)
cost("confirm it", ann, mailed(), go="on")
cost("change the password", ann, "password_change", old_password=PASSWORD, **passwords)
cost("ask for a reset", Client(), "password_reset", email="new@example.org")
where = reset.get(mailed(), follow=True).redirect_chain[-1][0]
cost("set a new password", reset, where, new_password1=PASSWORD, new_password2=PASSWORD)
cost("ask for the username", Client(), "username_reminder", email="new@example.org")
ann.post("/accounts/login/", {"username": "anna", "password": PASSWORD})
cost("list", ann, "sessions")
cost("end all others", ann, "sessions/end_others", go="on")
cost("export", ann, "export")
cost("delete", ann, "delete", password=PASSWORD)
sign_up(bob, username="bob", email="bob@example.org")
cost("sign out", bob, "logout", go="on")
"""

FRAME = """<!doctype html><title>{% block title %}{% endblock %}</title><p>The club</p>
{% block content %}{% endblock %}"""

BLOCK = """{% extends "accounts/login.html" %}
{% block content %}<p>Members only</p>{{ block.super }}{% endblock %}"""

OVERRIDDEN = """
page = Client().get("/accounts/login/").content.decode()
assert all(text in page for text in ("The club", "Members only", 'name="password"'))
"""

HIDDEN_LINK = """
ann = Client()
assert sign_up(ann, username="ann", email="ann@example.org").url == "/accounts/signup/sent/"
known = follow(ann)
assert known.url.startswith("/accounts/login/")
sign_up(Client(), username="other", email="ann@example.org")
assert "signup/confirm" not in mail.outbox[-1].body
"""

HELD = """
ann, bob, eve = Client(), Client(), Client()
assert sign_up(ann, username="ann", email="ann@example.org", number="0").status_code == 302
assert sign_up(bob, username="bob", email="bob@example.org", number="0").status_code == 302
late = mail.outbox.pop()
assert follow(ann).status_code == 302
mail.outbox.append(late)
assert "Another account now has the same: Club, Number" in follow(bob).content.decode()
taken = sign_up(eve, username="eve", email="eve@example.org", number="0")
assert errors(taken) == ["number"], taken
"""

#: With an attribute that no page asks for.
OF_CLUBS = """
from accounts.models import AbstractAccount
from dynamo import IntegerAttribute, TextAttribute, Unique


class Member(AbstractAccount):
    class Meta:
        table_name = "members"

    number = IntegerAttribute("Number")
    club = TextAttribute({options})

    unique_number = Unique("club", "number")

    sign_up_fields = ("username", "email", "number")
    profile_fields = ()
"""


def run(folder: Path, engine: str, program: str, *, settings: str = "", **more: str) -> str:
    """Run `program` in the project of the page; the files `more` are added."""
    call_command("startproject", "club", str(folder))
    file = folder / "club" / "settings.py"
    own = f'DYNAMODB_TABLE_PREFIX = "{uuid.uuid4()}."'
    file.write_text("\n".join((file.read_text(), PAGE["club/settings.py"], settings, SUITED, own)))
    (folder / "club" / "urls.py").write_text(PAGE["club/urls.py"])
    write_files(more, folder)
    env = clean_environment(
        PATH=os.environ["PATH"],
        PYTHONPATH=str(ROOT),
        AWS_ENDPOINT_URL_DYNAMODB=engine,
        AWS_DEFAULT_REGION="us-east-1",
        AWS_ACCESS_KEY_ID="tests",
        AWS_SECRET_ACCESS_KEY="tests",
    )
    done = fork_server.run("-c", BEGIN + program, env=env, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


OWN_VIEW = """
from django.test import override_settings
assert Client().get("/accounts/login/").headers["X-Club"] == "chess"
override_settings(ROOT_URLCONF="pages.views").enable()
pages = [Client().post("/contact/").status_code for _ in range(4)]
assert pages == [200, 200, 429, 429]
assert Client().get("/contact/").status_code == 200
assert Client(headers={"x-key": "b"}).post("/keyed/").status_code == 200
assert [Client(headers={"x-key": "a"}).post("/keyed/").status_code for _ in range(2)] == [200, 429]
"""

VIEWS = """
from django.http import HttpResponse
from django.urls import path

from accounts.limits.decorators import limited


@limited("contact", "2/h")
def contact(request):
    return HttpResponse("ok")


@limited("keyed", "1/h", key=lambda request: request.headers["x-key"])
def keyed(request):
    return HttpResponse("ok")


urlpatterns = [path("contact/", contact), path("keyed/", keyed)]
"""

APPENDAGES = """
from accounts.signals import account_deleting, account_exporting
from dynamo import Model, TextAttribute

class Note(Model):
    class Meta:
        table_name = "notes"
    account = TextAttribute(hash_key=True)
    text = TextAttribute()

def delete_note(account, write, **signal):
    Note.get(account).delete(write=write)

def export_note(user, **signal):
    return {"note": Note.get(user.pk).text}

account_deleting.connect(delete_note)
account_exporting.connect(export_note)
from dynamo.tables.definitions import create, tables_of
for table in tables_of(Note):
    list(create(table))
ann = Client()
sign_up(ann, username="ann", email="ann@example.org")
pk = ann.get("/accounts/profile/").wsgi_request.user.pk
Note.create(account=pk, text="mine")
assert ann.get("/accounts/export/").json()["note"] == "mine"
def another_app(user, **signal):
    return {"note": "of another app"}
account_exporting.connect(another_app)
try:
    ann.get("/accounts/export/")
except ValueError as error:
    assert "another_app" in str(error) and "note" in str(error)
else:
    raise AssertionError("one of them is missing")
ann.post("/accounts/delete/", {"password": PASSWORD})
assert Note.get_or_none(pk) is None
"""


OF_KINDS = """
from accounts.models import AbstractAccount
from dynamo import BooleanAttribute, IntegerAttribute


class Member(AbstractAccount):
    class Meta:
        table_name = "members"

    news = BooleanAttribute("News", default=False)
    children = IntegerAttribute("Children")

    sign_up_fields = ("username", "email", "news", "children")
    profile_fields = ("news", "children")
"""

KINDS = """
ann = Client()
large = sign_up(ann, username="ann", email="ann@example.org", children="9" * 39)
assert errors(large) == ["children"], large
assert sign_up(ann, username="ann", email="ann@example.org", children="0").status_code == 302
def stored():
    account = ann.get("/accounts/export/").json()["account"]
    return account["news"], account["children"]
assert stored() == (False, 0), stored()
assert ann.post("/accounts/profile/", {"news": "on", "children": "2"}).status_code == 302
assert stored() == (True, 2), stored()
assert ann.post("/accounts/profile/", {"children": "2"}).status_code == 302
assert stored() == (False, 2), stored()
from pathlib import Path
from accounts.services import find_user
rows = Path("users.jsonl")
for name, news, children in (("bob", True, 3), ("eve", "", "4")):
    typed = {"username": name, "email": f"{name}@example.org"}
    rows.write_text(json.dumps(typed | {"news": news, "children": children}))
    call_command("importusers", str(rows))
bob, eve = find_user("bob"), find_user("eve")
assert (bob.news, bob.children, eve.news, eve.children) == (True, 3, False, 4)
"""

OF_RANKS = """
from accounts.models import AbstractAccount
from dynamo import TextAttribute


class Member(AbstractAccount):
    class Meta:
        table_name = "members"

    rank = TextAttribute("Rank", default="new", choices=[("new", "New"), ("old", "Old")])

    sign_up_fields = (*AbstractAccount.sign_up_fields, "rank")
"""

RANKS = """
from accounts.services import find_user
for name, options in (("ann", {}), ("bob", {"rank": "old"})):
    names = {"username": name, "email": f"{name}@example.org"}
    call_command("createuser", **names, **options, unusable_password=True)
assert (find_user("ann").rank, find_user("bob").rank) == ("new", "old")
wrong = ("--username=eve", "--email=eve@example.org", "--unusable-password", "--rank=none")
assert "Rank: Select a valid choice" in refused("createuser", *wrong)
"""

OF_VISITORS = """
MIDDLEWARE = ["visitors.Visitors" if "accounts.sessions" in name else name for name in MIDDLEWARE]
"""

VISITORS = """
from accounts.sessions.middleware import AuthenticationMiddleware


class Visitors(AuthenticationMiddleware):
    def process_response(self, request, response):
        response.headers["X-Club"] = "chess"
        return super().process_response(request, response)
"""

LANGUAGES_IN_URLS = """
from accounts.services import register
register(username="ann", email="ann@example.org", language="en", password=PASSWORD)
ann = Client(headers={"accept-language": "en"})
assert ann.get("/accounts/login/").url == "/en/accounts/login/"
assert ann.get("/accounts/nowhere/").status_code == 404
who = {"username": "ann", "password": PASSWORD}
assert ann.post("/ja/accounts/login/", who).url == "/ja/accounts/profile/"
for language in ("ja", "en"):
    page = ann.get(f"/{language}/accounts/profile/")
    assert f'lang="{language}"' in page.content.decode()
    assert f'href="/{language}/accounts/email/"' in page.content.decode()
"""

URLS_WITH_LANGUAGES = """
from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path

urlpatterns = i18n_patterns(path("accounts/", include("accounts.urls")))
"""

OF_MEMBERS = """
INSTALLED_APPS.insert(2, "members")
AUTH_USER_MODEL = "members.Member"
"""
OF_FRAMES = """
TEMPLATES[0]["DIRS"] = [BASE_DIR / "frames"]
"""
MEMBERS = {"members/models.py": PAGE["members/models.py"]}


@pytest.mark.fault_of("ministack", "tells no capacity of a batch of reads")
@pytest.mark.fault_of("moto", "reports other capacity")
def test_the_flows_cost_what_the_page_says(tmp_path: Path, engine: str) -> None:
    told = " ".join((ROOT / "docs" / "registration.md").read_text(encoding="utf-8").split())

    # The windows of limits begin at any time.
    off = f"\nACCOUNTS_LIMITS = dict.fromkeys({[*LIMITS]})\n"
    printed = run(tmp_path, engine, COSTS, settings=off)
    measured = re.findall("^Cost: (.+)$", printed, re.MULTILINE)
    assert len(measured) == 18
    assert [cost for cost in measured if f" {cost}" not in told] == []


LOCAL_CACHE = """
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "sessions": {"BACKEND": "dynamo.cache.DynamoCache"},
}
SESSION_CACHE_ALIAS = "sessions"
ACCOUNTS_PREVENT_ENUMERATION = True
"""
HIDDEN = "\nACCOUNTS_PREVENT_ENUMERATION = True\n"


def of_clubs(options: str) -> dict[str, str]:
    return {"members/models.py": OF_CLUBS.format(options=options)}


#: By what a project does: its program, settings and files.
STORIES: dict[str, tuple[str, str, dict[str, str]]] = {
    "a user of its own in commands and the export": (OWN_USER, OF_MEMBERS, MEMBERS),
    "no usernames": (WITHOUT_USERNAMES, OF_MEMBERS, {"members/models.py": EMAIL_ONLY}),
    "a choice with a default": (RANKS, OF_MEMBERS, {"members/models.py": OF_RANKS}),
    "numbers and boxes": (KINDS, OF_MEMBERS, {"members/models.py": OF_KINDS}),
    "the frame of all pages and a block of one": (
        OVERRIDDEN,
        OF_FRAMES,
        {"frames/accounts/base.html": FRAME, "frames/accounts/login.html": BLOCK},
    ),
    "hidden addresses": (HIDDEN_LINK, HIDDEN, {}),
    "only sessions in DynamoDB": (HIDDEN_LINK, LOCAL_CACHE, {}),
    # A held sign-up is refused for unique values that no page asks for.
    "a default": (HELD, OF_MEMBERS + HIDDEN, of_clubs("default='chess'")),
    "a default for new": (HELD, OF_MEMBERS + HIDDEN, of_clubs("'Club', default_for_new='chess'")),
    "what another app stores, a middleware and limits of its own views": (
        APPENDAGES + OWN_VIEW,
        OF_VISITORS,
        {"visitors.py": VISITORS, "pages/views.py": VIEWS},
    ),
    "languages in its URLs": (
        LANGUAGES_IN_URLS,
        '\nLOGIN_URL, LOGIN_REDIRECT_URL = "login", "profile"\n',
        {"club/urls.py": URLS_WITH_LANGUAGES},
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_a_project_of_its_own_has(name: str, tmp_path: Path, engine: str) -> None:
    program, settings, files = STORIES[name]

    run(tmp_path, engine, program, settings=settings, **files)


def test_the_check_names_mistakes(tmp_path: Path, engine: str) -> None:
    settings = """
INSTALLED_APPS += ["uploads", "later"]
MIDDLEWARE.append("django.contrib.auth.middleware.AuthenticationMiddleware")
"""
    files = {
        "uploads/__init__.py": "",
        "later/__init__.py": "",
        "later/templates/accounts/login.html": "",
    }

    with pytest.raises(AssertionError) as found:
        run(tmp_path, engine, "", settings=OF_MEMBERS + settings, **files, **of_clubs(""))

    for told in (
        "neither a default nor null=True: club",
        "hides the library's package uploads",
        "templates/accounts/login.html has no effect",
        "Remove django.contrib.auth.middleware.AuthenticationMiddleware",
    ):
        assert told in str(found.value)


def test_the_check_names_a_user_model_that_is_not_an_account(tmp_path: Path, engine: str) -> None:
    with pytest.raises(AssertionError, match="which is not an account"):
        run(tmp_path, engine, "", settings="\nAUTH_USER_MODEL = 'auth.User'\n")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        (
            "sign_up_fields",
            ("username", "email", "clubb"),
            "sign_up_fields has no attribute: clubb",
        ),
        ("sign_up_fields", ("username",), "sign_up_fields lacks: email"),
        ("profile_fields", ("full_name", "email"), "what pages of their own change: email"),
    ],
)
def test_the_check_names_a_wrong_field(
    monkeypatch: pytest.MonkeyPatch, name: str, value: tuple[str, ...], told: str
) -> None:
    monkeypatch.setattr(User, name, value)

    assert [text for text in ours() if told in text]


MIDDLEWARE = site.MIDDLEWARE


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("ACCOUNTS_SITE_ORIGN", "https://a.example", "Did you mean ACCOUNTS_SITE_ORIGIN?"),
        ("ACCOUNTS_SITE_ORIGIN", "https://a.example/x", "ACCOUNTS_SITE_ORIGIN has a wrong value"),
        ("ACCOUNTS_EMAIL_CHANGE", "later", "ACCOUNTS_EMAIL_CHANGE has a wrong value"),
        ("ACCOUNTS_TRUSTED_HOPS", -1, "ACCOUNTS_TRUSTED_HOPS has a wrong value"),
        ("ACCOUNTS_PREVENT_ENUMERATION", "off", "ACCOUNTS_PREVENT_ENUMERATION has a value of"),
        ("ACCOUNTS_LIMITS", None, "ACCOUNTS_LIMITS has a value of a wrong type"),
        ("ACCOUNTS_LIMITS", {"sign_im": "1/1h"}, "there is no limit sign_im"),
        ("ACCOUNTS_LIMITS", {"mail": "often"}, "mail is not a limit"),
        ("ACCOUNTS_LIMITS", {"mail": (0, 60)}, "mail is not a limit"),
        ("MIDDLEWARE", MIDDLEWARE[:8], "MIDDLEWARE lacks"),
        ("MIDDLEWARE", MIDDLEWARE[::-1], "in another order"),
        (
            "MIDDLEWARE",
            [name for name in MIDDLEWARE if not name.startswith("accounts.")],
            "lacks what the pages of accounts need: accounts.languages.LanguageMiddleware, "
            "accounts.limits.middleware.TooManyAttemptsMiddleware, "
            "accounts.sessions.middleware.AuthenticationMiddleware.",
        ),
        ("LOGIN_REDIRECT_URL", "nowhere", "LOGIN_REDIRECT_URL is 'nowhere'"),
        ("LOGOUT_REDIRECT_URL", "/gone/", "LOGOUT_REDIRECT_URL is '/gone/'"),
        ("SESSION_ENGINE", "django.contrib.sessions.backends.cache", "SESSION_ENGINE has a wrong"),
    ],
)
def test_a_mistake_in_the_settings_is_an_error_of_the_check(
    settings: Any, name: str, value: object, told: str
) -> None:
    assert ours() == []

    setattr(settings, name, value)

    assert [text for text in ours() if told in text]


def test_hints_for_deployment_name_settings_not_variables_of_the_site(settings: Any) -> None:
    settings.ACCOUNTS_SITE_ORIGIN = ""
    settings.DEFAULT_FROM_EMAIL = "webmaster@localhost"
    settings.ACCOUNTS_EMAIL_CHANGE = "immediate"

    hints = [str(item.hint) for item in check_settings(None)]

    assert len(hints) >= 4
    for hint in hints:
        assert all(hasattr(settings, name) for name in re.findall("[A-Z]{2,}_[A-Z_]+", hint)), hint
        assert "=" not in hint


def ours() -> list[str]:
    """What the checks of accounts find."""
    found = run_checks(tags=["security"])
    return [f"{item.msg} {item.hint}" for item in found if str(item.id).startswith("accounts.")]


@pytest.mark.parametrize(
    ("typed", "origin"),
    [
        (["runserver"], "http://127.0.0.1:8000"),
        (["runserver", "--noreload", "8732"], "http://127.0.0.1:8732"),
        (["runserver", "localhost:80"], "http://localhost:80"),
        (["runserver", "0:8000"], "http://127.0.0.1:8000"),
        (["check", "8732"], "http://127.0.0.1:8000"),
    ],
)
def test_links_of_development_lead_to_the_address_of_runserver(
    monkeypatch: pytest.MonkeyPatch, settings: Any, typed: list[str], origin: str
) -> None:
    settings.DEBUG, settings.ACCOUNTS_SITE_ORIGIN = True, ""
    monkeypatch.setattr(sys, "argv", ["manage.py", *typed])

    set_defaults()

    assert origin == settings.ACCOUNTS_SITE_ORIGIN


@pytest.mark.parametrize(
    ("own", "languages"),
    [
        ({"LANGUAGE_CODE": "de"}, ["de", "en", "ja"]),
        ({"LANGUAGE_CODE": "de-at"}, ["de", "en", "ja"]),
        ({"LANGUAGE_CODE": "fr", "LANGUAGES": [("fr", "French")]}, ["fr"]),
    ],
)
def test_pages_are_in_the_languages_that_they_have_unless_a_project_names_others(
    own: dict[str, Any], languages: list[str]
) -> None:
    program = f"""
from django.conf import settings
APPS = ["django.contrib.contenttypes", "django.contrib.auth", "dynamo", "accounts"]
settings.configure(
    INSTALLED_APPS=APPS, AUTH_USER_MODEL="accounts.User", DATABASES={{}}, SECRET_KEY="s", **{own!r}
)
import django; django.setup()
assert [code for code, _name in settings.LANGUAGES] == {languages}
"""
    done = fork_server.run("-c", program)
    assert done.returncode == 0, done.stderr
