"""Projects test their own apps: pytest's plugin, and the test case and runner of `dynamo.test`."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import django.test
import pytest
from django.core.management.base import CommandError
from django.test.runner import DiscoverRunner
from pytest_django import Settings

from dynamo.client import engine as local_engine
from dynamo.tables import checks
from dynamo.test import Runner
from tests import ownapp
from tests.dynamo.desk.models import Customer
from tests.engines import is_listening
from tests.fork_server import fork_server
from tests.waiting import wait_until

PROGRAMS = Path(sys.executable).parent
CHECKOUT = {"PYTHONPATH": str(ownapp.ROOT)}
#: As the entry point does, which tests/project/test_library.py uses.
PLUGIN = ("-p", "dynamo.pytest_plugin")


@pytest.fixture
def development(tmp_path: Path, settings: Settings) -> Iterator[str]:
    """The URL of the engine that the project uses in development. No test creates tables there."""
    settings.DYNAMODB_LOCAL_DIR = tmp_path / "var"
    url = local_engine.start().endpoint
    yield url
    client = boto3.client("dynamodb", "us-east-1", endpoint_url=url)
    assert client.list_tables()["TableNames"] == []
    local_engine.stop()


@pytest.fixture
def elsewhere(tmp_path: Path, development: str) -> Iterator[dict[str, str]]:
    """Variables and a profile that lead to AWS, to a trap and to the engine of development."""
    folder = tmp_path / ".aws"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as trap:
        url = f"http://127.0.0.1:{trap.getsockname()[1]}"
        (folder / "config").write_text(
            f"[profile production]\nregion = eu-west-1\nendpoint_url = {url}\n"
            "aws_access_key_id = production\naws_secret_access_key = production\n"
        )
        yield {
            "AWS_PROFILE": "production",
            "AWS_ENDPOINT_URL": url,
            "AWS_ENDPOINT_URL_DYNAMODB": development,
            "AWS_ACCESS_KEY_ID": "production",
            "AWS_SECRET_ACCESS_KEY": "production",
            "AWS_REGION": "eu-west-1",
            "DYNAMODB_TEST_ENDPOINT": url,
        }
        trap.setblocking(False)
        with pytest.raises(BlockingIOError):
            trap.accept()[0].close()


WITH_PYTEST = """
import subprocess
import sys

import pytest

from locks.lock import Lock
from members.models import Member, Ticket
from sequences.series import issue

with pytest.raises(RuntimeError, match="fixture `dynamodb`"):
    Member.create(email="bob@example.org")


@pytest.mark.parametrize("number", range(3))
def test_each_test_begins_with_empty_tables(dynamodb, max_requests, number):
    assert list(Member.scan()) == []
    Member.create(email="ann@example.org")
    with max_requests(2):
        assert issue(Ticket(), series="tickets").number == 1
    Lock("left behind").acquire()


def test_a_test_without_the_fixture_is_refused():
    with pytest.raises(RuntimeError, match="fixture `dynamodb`"):
        Member.create(email="bob@example.org")


WRITER = '''
import django
django.setup()
from members.models import Member
Member.create(email="child@example.org")
'''


def test_a_child_process_uses_the_engine_of_the_test(dynamodb):
    subprocess.run([sys.executable, "-c", WRITER], check=True)
    assert Member.find(email="child@example.org")


def test_too_many_requests_are_listed(dynamodb, max_requests):
    with pytest.raises(AssertionError) as error, max_requests(1):
        Member.create(email="ann@example.org")
        list(Member.scan())
    lines = str(error.value).splitlines()
    assert lines[0].startswith("2 requests") and lines[0].endswith("; at most 1 expected:")
    assert lines[1].startswith("TransactWriteItems members ")
    assert lines[2].startswith("Scan members members/test_more.py:")
"""

WITH_UNITTEST = """
import django.test
from dynamo.test import TestCase
from members.models import Member


class Tables:
    def test_one(self):
        self.assertEqual(list(Member.scan()), [])
        Member.create(email="ann@example.org")

    test_two = test_one

    async def test_in_an_event_loop(self):
        pass


class Made:
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        Member.create(email="bob@example.org")

    @classmethod
    def setUpTestData(cls):
        cls.ann = Member.create(email="ann@example.org")
        cls.friends = [cls.ann]

    @classmethod
    def tearDownClass(cls):
        assert list(Member.scan()) == []
        super().tearDownClass()

    def test_one(self):
        emails = [each.email for each in Member.scan()]
        self.assertEqual(sorted(emails), ["ann@example.org", "bob@example.org"])
        self.assertIs(self.friends[0], self.ann)
        self.ann.change(email="new@example.org")
        Member.find(email="bob@example.org").delete()
        Member.create(email="carl@example.org")

    test_two = test_one


class OfOursMade(Made, TestCase):
    pass


class OfOurs(Tables, TestCase):
    pass


class WithoutTables(django.test.SimpleTestCase):
    def test_it_is_refused(self):
        with self.assertRaisesMessage(RuntimeError, "dynamo.test.TestCase"):
            Member.create(email="bob@example.org")


class MadeTooEarly(TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            Member.create(email="bob@example.org")
        except RuntimeError as error:
            assert "super().setUpClass() first" in str(error)
        else:
            raise AssertionError
        super().setUpClass()

    def test_it_is_refused(self):
        pass
"""

WITH_A_DATABASE = """
import django.test
from django.db import connection
from dynamo.test import TablesMixin
from members.test_units import Made, Tables


class MadeBesidesADatabase(Made, TablesMixin, django.test.TestCase):
    pass


class BesidesADatabase(Tables, TablesMixin, django.test.TestCase):
    def test_the_database(self):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
"""

DATABASE = "DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}}"


PYTEST = ("pytest", *ownapp.PYTEST, *PLUGIN)
RUNNER = ("manage.py", "test", "--parallel", "2")


@pytest.mark.usefixtures("engine")
def test_a_test_case_of_django_cannot_empty_the_tables() -> None:
    member = Customer.create(email="ann@example.org", club="chess")
    case: Any = django.test.TransactionTestCase("run")

    with pytest.raises(CommandError, match=r"Nothing was deleted\. .* dynamo\.test\.TestCase"):
        case._fixture_teardown()

    assert [*Customer.scan()] == [member]


class OwnRunner(DiscoverRunner):
    pass


@pytest.mark.parametrize(
    ("runner", "is_reported"),
    [
        (DiscoverRunner, True),
        (OwnRunner, True),
        (Runner, False),
        (type("Own", (Runner,), {}), False),
    ],
)
def test_check_reports_a_runner_that_lets_tests_reach_the_tables_in_use(
    settings: Any, monkeypatch: pytest.MonkeyPatch, runner: type, is_reported: bool
) -> None:
    monkeypatch.setattr(checks, "import_string", {"its.Runner": runner}.__getitem__)
    settings.TEST_RUNNER = "its.Runner"

    assert [item.id for item in checks.check_runner()] == ["dynamo.W009"] * is_reported


def test_check_accepts_a_runner_that_is_not_installed_here(settings: Any) -> None:
    settings.TEST_RUNNER = "of_development.Runner"

    assert checks.check_runner() == []


@pytest.mark.parametrize(
    ("command", "said"), [(PYTEST, "20 passed"), (RUNNER, "Ran 9 tests")], ids=["pytest", "runner"]
)
def test_tests_reach_their_own_engine_only(
    tmp_path: Path, elsewhere: dict[str, str], command: tuple[str, ...], said: str
) -> None:
    """With pytest, the project has a relational database, too."""
    if command is PYTEST:
        more = {"test_more": WITH_PYTEST, "test_beside": WITH_A_DATABASE}
        project = ownapp.make(tmp_path, test_units=WITH_UNITTEST, **more)
        settings = project / "club" / "settings.py"
        settings.write_text(f"{settings.read_text()}{DATABASE}\n")
    else:
        project = ownapp.make(tmp_path, test_units=WITH_UNITTEST)
        # pytest's, which the runner would import, too.
        (project / "members" / "test_members.py").unlink()

    environment = ownapp.environment(project, PROGRAMS) | CHECKOUT | elsewhere
    done = fork_server.run(*command, env=environment, folder=project)

    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def test_an_engine_ends_with_its_process_even_if_that_is_killed(tmp_path: Path) -> None:
    program = (
        "from dynamo.client import engine; print(engine.start_temporary(), flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    port = int(process.stdout.readline().rpartition(":")[2])
    assert is_listening(port)

    process.send_signal(signal.SIGKILL)
    process.communicate()

    wait_until(lambda: not is_listening(port))


FIXTURES = """
import urllib.request

import pytest
from members.models import Member


@pytest.mark.django_db
@pytest.mark.parametrize("number", [1, 2])
def test_the_mark_gives_tables(number):
    Member.objects.create_user("ann", "ann@example.org")


def test_db_and_the_client(db, client, django_user_model):
    django_user_model.objects.create_user("ann", "ann@example.org", "pw")
    assert client.login(username="ann", password="pw")
    assert b"ann" in client.get("/").content


def test_an_administrator(admin_client, admin_user, transactional_db):
    assert admin_user.is_superuser
    assert b"admin" in admin_client.get("/").content


@pytest.mark.parametrize("number", [1, 2])
def test_a_live_server(live_server, admin_client, number):
    cookie = admin_client.cookies["sessionid"].value
    headers = {"Cookie": f"sessionid={cookie}"}
    page = urllib.request.urlopen(urllib.request.Request(f"{live_server}/", headers=headers))
    assert b"admin" in page.read()
    assert len(list(Member.scan())) == 1


def test_without_them_requests_are_refused(client):
    with pytest.raises(RuntimeError, match="fixture `dynamodb`"):
        Member.objects.create_user("ann", "ann@example.org")
"""

LIVE = """
import urllib.request

from dynamo.test import LiveServerTestCase
from members.models import Member


class Live(LiveServerTestCase):
    def test_one(self):
        Member.objects.create_user("ann", "ann@example.org", "pw")
        self.assertEqual(len(list(Member.scan())), 1)
        with urllib.request.urlopen(f"{self.live_server_url}/login/") as page:
            self.assertEqual(page.status, 200)

    test_two = test_one
"""

WRONG = """
import django.test


class Wrong(django.test.{0}):
    def test_one(self):
        pass
"""


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """The tutorial's project with users."""
    project = shutil.copytree(ownapp.ROOT / "examples" / "users", tmp_path / "users")
    (project / "pytest.ini").write_text("[pytest]\nDJANGO_SETTINGS_MODULE = club.settings\n")
    (project / "members" / "tests.py").unlink()
    settings = project / "club" / "settings.py"
    # Django's live server needs it.
    settings.write_text(f'{settings.read_text()}STATIC_URL = "static/"\n')
    return Path(project)


def tried(project: Path, command: tuple[str, ...], **files: str) -> str:
    """What a command says of these tests."""
    for name, text in files.items():
        (project / "members" / f"{name}.py").write_text(text)
    environment = ownapp.environment(project, PROGRAMS) | CHECKOUT
    done = fork_server.run(*command, env=environment, folder=project)
    return done.stdout + done.stderr


def test_the_fixtures_of_pytest_django_work_without_a_database(users: Path) -> None:
    assert "9 passed" in tried(users, PYTEST, test_fixtures=FIXTURES, test_live=LIVE)


def test_a_live_server_works_in_the_runner(users: Path) -> None:
    said = tried(users, RUNNER, test_live=LIVE)

    assert "Ran 2 tests" in said
    assert "OK" in said


# One function checks both kinds of cases for both commands.
@pytest.mark.parametrize(
    ("command", "case"),
    [(PYTEST, "TestCase"), (RUNNER, "LiveServerTestCase")],
    ids=["pytest", "runner"],
)
def test_a_test_case_that_needs_a_database_names_ours(
    users: Path, command: tuple[str, ...], case: str
) -> None:
    said = tried(users, command, test_wrong=WRONG.format(case))

    assert (
        f"members.test_wrong.Wrong needs a relational database. Derive it from dynamo.test.{case}"
        in said
    )
