"""Users without usernames, and those whom the web server signs in, in projects of their own."""

import sys
from pathlib import Path

from tests import ownapp
from tests.fork_server import ROOT, fork_server
from tests.tutorial import example, write_files

#: A required attribute of each kind that can be typed.
MODELS = """
from dynamo.wire import attributes as of
from dynamo.auth import AbstractUser


class Member(AbstractUser):
    class Meta:
        table_name = "members"

    username = None
    USERNAME_FIELD = "email"

    born = of.DateAttribute()
    seen = of.DateTimeAttribute()
    size = of.IntegerAttribute()
    ratio = of.DecimalAttribute(max_digits=4, decimal_places=2)
    pays = of.BooleanAttribute()
    plan = of.TextAttribute(choices=[("free", "Free"), ("paid", "Paid")])
"""

SETTINGS = """
AUTH_USER_MODEL = "members.Member"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "home"
USE_TZ = True
TIME_ZONE = "Asia/Tokyo"
"""

URLS = """
from dynamo import admin

urlpatterns.append(path("admin/", admin.site.urls))
"""

ADMIN = """
from dynamo import admin
from members.models import Member

admin.site.register(Member, admin.UserAdmin)
"""

TESTS = """
import io
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from unittest.mock import patch

from django.contrib.auth import authenticate
from django.core import mail
from django.core.management import call_command
from django.core.management.base import CommandError

from dynamo.test import TestCase
from members.models import Member

FIRST, SECOND, THIRD = "old and rusty", "new and shiny", "never seen before"
TYPED = {
    "born": "1815-12-10", "seen": "2026-01-01 09:00", "size": "17", "ratio": "1.50",
    "pays": "True", "plan": "paid",
}
READ = {
    "born": date(1815, 12, 10), "seen": datetime(2026, 1, 1, tzinfo=UTC), "size": 17,
    "ratio": Decimal("1.5"), "pays": True, "plan": "paid",
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def call(name, *args, stdin="", **options):
    out = io.StringIO()
    with patch("sys.stdin", io.StringIO(stdin)):
        call_command(name, *args, stdout=out, stderr=out, **options)
    return out.getvalue()


class EmailUsers(TestCase):
    def assertIsAnn(self, password):
        ann = Member.objects.get(email="ANN@example.org")
        self.assertTrue(ann.check_password(password))
        self.assertEqual({name: getattr(ann, name) for name in READ}, READ)
        self.assertEqual((ann.get_username(), str(ann)), ("ann@example.org",) * 2)

    def test_createsuperuser_asks_for_each_value_until_it_is_valid(self):
        answers = ["ann", "ann@example.org", "yesterday", *TYPED.values()]
        with patch("builtins.input", side_effect=answers):
            with patch("getpass.getpass", lambda *_: FIRST):
                call_command("createsuperuser", stdin=Terminal())
        self.assertIsAnn(FIRST)

    def test_createsuperuser_takes_options_and_a_line_of_stdin_and_changepassword_two(self):
        values = {"email": "ann@example.org", **TYPED}
        call("createsuperuser", password_stdin=True, stdin=f"{FIRST}\\n", **values)
        self.assertIsAnn(FIRST)
        with self.assertRaisesMessage(CommandError, "already taken"):
            call("createsuperuser", interactive=False, **values)
        with patch("getpass.getpass", lambda *_, **__: SECOND):
            call("changepassword", "Ann@example.org")
        self.assertIsAnn(SECOND)

    def test_an_address_is_the_name_in_every_call(self):
        ann = Member.objects.create_user(email="ann@example.org", password=FIRST, **READ)
        bob = Member.objects.create_superuser(email="bob@example.org", password=FIRST, **READ)
        for names in ({"email": "ANN@example.org"}, {"username": "ann@EXAMPLE.org"}):
            self.assertEqual(authenticate(**names, password=FIRST), ann)
            self.assertIsNone(authenticate(**names, password=SECOND))
        self.assertIsNone(authenticate(username="ann", password=FIRST))
        self.assertEqual(Member.named(ann.pk), ann)
        self.assertEqual(Member.objects.get_by_natural_key("ann@example.org"), ann)
        self.assertEqual(ann.natural_key(), ("ann@example.org",))
        for arguments in [("ann@example.org", FIRST), ("bob",)]:
            with self.assertRaisesMessage(TypeError, "create_user(email=…, born=…"):
                Member.objects.create_user(*arguments)
        with self.assertRaises(ValueError):
            Member.objects.create_user(password=FIRST, **READ)
        self.assertEqual(Member.objects.get_or_create(email="ANN@example.org"), (ann, False))

    def sent(self, url, **typed):
        page = self.client.get(url, follow=True)
        form = page.context.get("form") or page.context["adminform"].form
        here = page.redirect_chain[-1][0] if page.redirect_chain else url
        hidden = {field.html_name: field.value() for field in form.hidden_fields()}
        return self.client.post(here, hidden | typed, follow=True)

    def test_from_sign_up_to_reset_and_the_admin(self):
        names = {"email": "ann@example.org", "password1": FIRST, "password2": FIRST}
        page = self.sent("/signup/", **names)
        self.assertEqual({*page.context["form"].errors}, TYPED.keys() - {"pays"})  # a checkbox
        self.assertContains(self.sent("/signup/", **names, **TYPED), "You are ann@example.org")
        self.assertIsAnn(FIRST)
        page = self.sent("/signup/", **names, **TYPED)
        self.assertContains(page, "Member with this Email address already exists.")
        self.client.post("/logout/")
        self.assertContains(self.client.get("/login/"), "Email address:")
        page = self.sent("/login/", username="ann@EXAMPLE.org", password=FIRST)
        self.assertContains(page, "You are ann@example.org")
        self.client.post("/logout/")
        self.sent("/password_reset/", email="ann@example.org")
        [link] = re.findall("http://testserver(/reset/.+)", mail.outbox[0].body)
        self.sent(link, new_password1=THIRD, new_password2=THIRD)
        self.assertIsAnn(THIRD)

        ann = Member.objects.get(email="ann@example.org")
        ann.change(is_staff=True, is_superuser=True)
        page = self.sent("/admin/login/?next=/admin/", username=ann.email, password=THIRD)
        self.assertContains(page, "Members")
        self.assertContains(self.client.get("/admin/members/member/?q=an"), ann.email)
        others = {"email": "bob@example.org", "seen_0": "2026-01-01", "seen_1": "09:00"}
        self.sent("/admin/members/member/add/", **names | TYPED | others)
        self.assertEqual(Member.objects.get(email="bob@example.org").size, 17)
        page = self.client.get(f"/admin/members/member/{ann.pk}/change/")
        self.assertContains(page, "Email address")
"""

EXTENDS = "{% extends 'page.html' %}"
REGISTRATION = (
    *("login", "password_reset_form", "password_reset_done", "password_reset_confirm"),
    "password_reset_complete",
)


REMOTE = """
import asyncio
from concurrent.futures import ThreadPoolExecutor

from django.contrib.auth import aauthenticate, authenticate, get_user
from django.test import Client

from dynamo.auth.backends import RemoteUserBackend
from dynamo.test import TestCase
from members.models import Member


class OnlyKnown(RemoteUserBackend):
    create_unknown_user = False


class RemoteUsers(TestCase):
    def test_sixteen_first_pages_at_once_make_one_user(self):
        def first_page(number):
            client = Client(REMOTE_USER="ANN" if number % 2 else "ann")
            return client.get("/"), get_user(client)

        with ThreadPoolExecutor(16) as pool:
            found = [*pool.map(first_page, range(16))]
        [ann] = Member.scan()
        self.assertEqual({user.pk for page, user in found}, {ann.pk})
        self.assertContains(found[0][0], f"You are {ann.username}")
        self.assertFalse(ann.has_usable_password())
        ann.change(is_active=False)
        self.assertIsNone(authenticate(remote_user="ann"))

    def test_permissions_are_those_in_dynamodb(self):
        async def asked():
            bob = await aauthenticate(remote_user="bob")
            return await bob.ahas_perm("a.b"), await bob.aget_all_permissions(), bob

        may, every, bob = asyncio.run(asked())
        self.assertEqual((may, every, bob.email), (False, set(), None))
        self.assertFalse(bob.has_perm("a.b"))
        bob.change(permissions={"a.b"})
        self.assertTrue(authenticate(remote_user="bob").has_module_perms("a"))

    def test_a_backend_may_know_stored_users_only(self):
        with self.settings(AUTHENTICATION_BACKENDS=["members.tests.OnlyKnown"]):
            self.assertIsNone(authenticate(remote_user="cid"))
            cid = Member.objects.create_user("cid")
            self.assertEqual(authenticate(remote_user="CID"), cid)
"""

BY_THE_SERVER = """
AUTHENTICATION_BACKENDS = ["dynamo.auth.backends.RemoteUserBackend"]
MIDDLEWARE.append("django.contrib.auth.middleware.RemoteUserMiddleware")
"""


def test_users_without_usernames_work_in_every_command_and_page(tmp_path: Path) -> None:
    admin = example("admin")
    users = example("users")
    page = "members/templates/page.html"
    changed = {
        page: users[page].replace("user.username", "user"),
        **{f"members/templates/registration/{name}.html": EXTENDS for name in REGISTRATION},
        "club/settings.py": admin["club/settings.py"] + SETTINGS,
        "club/urls.py": users["club/urls.py"] + URLS,
        "members/models.py": MODELS,
        "members/admin.py": ADMIN,
        "members/tests.py": TESTS,
    }

    assert "Ran 4 tests" in run_tests(admin | users | changed, tmp_path)


def test_a_user_whom_the_web_server_names_is_made_once(tmp_path: Path) -> None:
    users = example("users")
    settings = users["club/settings.py"] + BY_THE_SERVER

    changed = {"club/settings.py": settings, "members/tests.py": REMOTE}

    assert "Ran 3 tests" in run_tests(users | changed, tmp_path)


def run_tests(project: dict[str, str], folder: Path) -> str:
    """What `manage.py test` prints in a project whose tests pass."""
    write_files(project, folder)
    env = ownapp.environment(folder, Path(sys.executable).parent) | {"PYTHONPATH": str(ROOT)}
    done = fork_server.run("manage.py", "test", env=env, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
