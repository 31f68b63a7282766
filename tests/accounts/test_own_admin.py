"""`accounts.admin` in projects of their own: with `accounts.User`, and with models of their own."""

from pathlib import Path

import pytest

from accounts.admin import AccountAdmin
from accounts.models import account_model
from dynamo.admin import AdminSite
from tests.accounts.test_own_projects import EMAIL_ONLY, OF_MEMBERS, PAGE, run

URLS = """
from django.urls import include, path

from dynamo import admin

urlpatterns = [path("accounts/", include("accounts.urls")), path("admin/", admin.site.urls)]
"""
WITH_ADMIN = """
INSTALLED_APPS.append("dynamo.admin")
"""

#: What each program begins with: a superuser in the admin.
BEGIN = """
import html
from django.contrib.auth import get_user_model
from accounts import services
from dynamo.admin.models import LogEntry

Account = get_user_model()
NAME = Account.USERNAME_FIELD
USERS = f"/admin/{Account._meta.app_label}/{Account._meta.model_name}/"
WHY = {"_reason": "Why", "_password": PASSWORD}

def account(name, **values):
    names = {"email": f"{name}@example.org"} | ({"username": name} if NAME == "username" else {})
    return services.register(password=PASSWORD, **names, **values)

def let_in(user):
    browser = Client()
    sent = {"username": getattr(user, NAME), "password": PASSWORD}
    assert browser.post("/admin/login/?next=/admin/", sent).url == "/admin/", sent
    return browser

def source(page):
    return html.unescape(page.content.decode())

def send(browser, path, **typed):
    page = browser.get(path)
    if page.status_code != 200:
        return page
    tags = re.findall(r"<input[^>]*>", page.content.decode())
    named = [dict(re.findall(r'(\\w+)="([^"]*)"', tag)) for tag in tags]
    fields = {tag["name"]: html.unescape(tag.get("value", "")) for tag in named if "name" in tag}
    return browser.post(path, fields | WHY | typed)

def again(user):
    return Account.get(user.pk)

def page_of(user, more="change/"):
    return f"{USERS}{user.pk}/{more}"

boss = account("boss", **BOSS)
boss.change(is_staff=True, is_superuser=True)
admin = let_in(boss)
"""

#: Everything that staff does to an account.
STORY = """
assert USERS in source(admin.get("/admin/"))
bob = account("bob", **BOB)
theirs = Client()
theirs.post("/accounts/login/", {"username": getattr(bob, NAME), "password": PASSWORD})
page = source(admin.get(page_of(bob)))
for text in ("bob@example.org", "email#bob@example.org", "Sound", "There are no entries.", *SHOWN):
    assert text in page, text
assert "Missing" not in page and bob.password not in page
for path in (USERS, *(f"{USERS}?q={who}" for who in ("bob@example.org", bob.pk, *FOUND))):
    assert page_of(bob) in source(admin.get(path)), path
assert page_of(bob) not in source(admin.get(f"{USERS}?q=nobody@example.org"))

session = next(iter(again(bob).sessions_read()))
send(admin, page_of(bob, f"action/endSession/?session={session}"))
assert theirs.get("/accounts/profile/").status_code == 302
for action in ("deactivate", "activate", "sendPasswordReset", "sendConfirmation"):
    assert send(admin, page_of(bob, f"action/{action}/")).url == page_of(bob), action
    assert again(bob).is_active == (action != "deactivate")
assert [mail.outbox[-2].to, mail.outbox[-1].to] == [["bob@example.org"]] * 2
send(admin, page_of(bob, "email/"), email="new@example.org")
assert (again(bob).email, mail.outbox[-1].to) == ("new@example.org", ["new@example.org"])
wrong = send(admin, page_of(bob, "email/"), email="boss@example.org")
assert again(bob).email == "new@example.org" and errors(wrong) == ["email"], errors(wrong)
assert "Why" in source(admin.get(page_of(bob, "history/")))

added = send(admin, f"{USERS}add/", **ADDED)
new = Account.find(email="carl@example.org")
assert added.url == page_of(new) and mail.outbox[-1].to == ["carl@example.org"]
assert [getattr(new, name) for name in ADDED] == list(ADDED.values())
taken = send(admin, f"{USERS}add/", **ADDED)
assert taken.status_code == 200 and sorted(errors(taken)) == sorted(TAKEN), errors(taken)
assert TOLD in source(taken)

send(admin, page_of(new, "delete/"))
assert Account.get_or_none(new.pk) is None
gone = admin.get(page_of(new), follow=True)
assert "This account was deleted." in source(gone)
done = [entry.action for entry in LogEntry.scan() if not entry.journal.startswith("on#")]
assert sorted(done) == sorted([
    "endSession", "deactivate", "activate", "sendPasswordReset", "sendConfirmation",
    "changeEmail", "add", "delete",
]), done
"""

RIGHTS = """
bob, carl = account("bob"), account("carl")
clerk = account("clerk")
clerk.change(is_staff=True)
desk = let_in(clerk)
assert desk.get(page_of(bob)).status_code == 403
assert desk.get(f"{USERS}add/").status_code == 403
again(clerk).change(permissions={"accounts.view_user"})
page = source(desk.get(page_of(bob)))
assert "bob@example.org" in page and "/action/" not in page and "/delete/" not in page
for more in ("action/deactivate/", "email/", "delete/"):
    assert desk.get(page_of(bob, more)).status_code == 403, more
again(clerk).change(permissions={"accounts.change_user"})
send(desk, page_of(bob, "action/deactivate/"))
assert not again(bob).is_active
assert desk.get(page_of(bob, "delete/")).status_code == 403
for other in (boss, clerk):
    send(desk, page_of(other, "action/deactivate/"))
    assert again(other).is_active and "/action/" not in source(desk.get(page_of(other)))
    assert desk.get(page_of(other, "email/")).status_code == 403
for password in ("", "not mine"):
    send(desk, page_of(bob, "action/activate/"), _password=password)
    assert not again(bob).is_active

# The right ends while the write is made.
from dynamo import admin as pages

pages.site.get_model_admin(Account).meanwhile = lambda: again(clerk).change(permissions=set())
send(desk, page_of(bob, "action/activate/"))
assert not again(bob).is_active
del pages.site.get_model_admin(Account).meanwhile
again(clerk).change(permissions={"accounts.change_user"})
send(desk, page_of(bob, "action/activate/"))
assert again(bob).is_active
"""

REPLACED = """
from dynamo import admin as pages
from accounts.admin import AccountAdmin

assert type(pages.site.get_model_admin(Account)).__name__ == "OwnAdmin"
assert "Friends" in source(admin.get(page_of(boss)))
"""

OWN_ADMIN = """
from accounts.admin import AccountAdmin
from accounts.models import User
from dynamo import admin

admin.site.unregister(User)


@admin.register(User)
class OwnAdmin(AccountAdmin):
    change_form_template = "club/account.html"

    def meanwhile(self):
        pass

    def commit(self, *args, **options):
        self.meanwhile()
        return super().commit(*args, **options)
"""
OWN_TEMPLATE = """{% extends "accounts/admin/change_form.html" %}
{% block more %}<h2>Friends</h2>{% endblock %}
"""

GUARDED = """
from accounts.models import AbstractAccount
from dynamo import BooleanAttribute, IntegerAttribute, TextAttribute, Unique


class Member(AbstractAccount):
    class Meta:
        table_name = "members"
        guard_table = "names"

    card = IntegerAttribute("Card")
    news = BooleanAttribute("News", default=False)
    secret = TextAttribute(null=True, sensitive=True)

    unique_card = Unique("card")

    sign_up_fields = ("username", "email", "card", "news")
"""

REGISTERED = """
from accounts.admin import AccountAdmin
from dynamo import admin
from members.models import Member

admin.site.register(Member, AccountAdmin)
"""


def test_options_of_a_form_that_accounts_do_not_have_are_reported() -> None:
    site = AdminSite()
    for option in ("fields", "exclude", "readonly_fields"):
        own = type("Own", (AccountAdmin,), {option: ["full_name"]})
        [found] = own(account_model(), site).check()
        assert (found.id, found.hint) == ("dynamo.E013", "Declare an action.")
        assert found.msg.startswith(f"{option} changes nothing")
    assert AccountAdmin(account_model(), site).check() == []


def told(**values: object) -> str:
    return "".join(f"{name} = {value!r}\n" for name, value in values.items())


CASES = {
    "the model of the library": (
        "",
        None,
        {
            "BOSS": {},
            "BOB": {"full_name": "Bob B."},
            "SHOWN": ["userName#bob", "Bob B.", "Full name"],
            "FOUND": ["bob", "userName%23BOB"],
            "ADDED": {"username": "carl", "email": "carl@example.org", "full_name": "Carl C."},
            "TAKEN": ["username", "email"],
            "TOLD": "already exists",
        },
    ),
    "a unique value of two attributes": (
        OF_MEMBERS,
        PAGE["members/models.py"],
        {
            "BOSS": {"club": "chess", "membership_number": "1"},
            "BOB": {"club": "go", "membership_number": "2"},
            "SHOWN": ['club,membership_number#["go", "2"]', "Membership number"],
            "FOUND": ["bob", "club,membership_number%23%5B%22go%22, %222%22%5D"],
            "ADDED": {
                "username": "carl",
                "email": "carl@example.org",
                "club": "go",
                "membership_number": "3",
            },
            "TAKEN": ["username", "email"],
            # As Django shows the error of several attributes.
            "TOLD": "with this Club and Membership number already exists",
        },
    ),
    "no usernames": (
        OF_MEMBERS,
        EMAIL_ONLY,
        {
            "BOSS": {},
            "BOB": {"full_name": "Bob B."},
            "SHOWN": ["Bob B."],
            "FOUND": ["email%23bob@example.org"],
            # The form asks what the sign-up asks.
            "ADDED": {"email": "carl@example.org"},
            "TAKEN": ["email"],
            "TOLD": "already exists",
        },
    ),
    "a table for guard items, numbers and boxes": (
        OF_MEMBERS,
        GUARDED,
        {
            "BOSS": {"card": 1},
            "BOB": {"card": 2, "news": True},
            "SHOWN": ["card#2", "News"],
            "FOUND": ["bob", "2", "card%232"],
            "ADDED": {"username": "carl", "email": "carl@example.org", "card": 3},
            "TAKEN": ["username", "email", "card"],
            "TOLD": "already exists",
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_staff_does_everything_in_a_project_of_its_own(
    name: str, tmp_path: Path, engine: str
) -> None:
    settings, models, values = CASES[name]
    files = {"club/urls.py": URLS}
    if models is not None:
        files |= {"members/models.py": models, "members/admin.py": REGISTERED}

    program = told(**values) + BEGIN + STORY

    run(tmp_path, engine, program, settings=settings + WITH_ADMIN, **files)


def test_a_project_decides_about_staff_by_permissions_and_pages_of_its_own(
    tmp_path: Path, engine: str
) -> None:
    own = """
INSTALLED_APPS += ["dynamo.admin", "desk"]
TEMPLATES[0]["DIRS"] = [BASE_DIR / "pages"]
"""
    files = {"desk/admin.py": OWN_ADMIN, "pages/club/account.html": OWN_TEMPLATE}

    program = told(BOSS={}) + BEGIN + RIGHTS + REPLACED

    run(tmp_path, engine, program, settings=own, **{"club/urls.py": URLS}, **files)
