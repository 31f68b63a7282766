"""A missing or malformed value ends the start with one line that names the variable."""

import importlib.util
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from tests.commands import ROOT
from tests.fork_server import fork_server
from tests.production import PRODUCTION, checkout_in, collect_into, settings_of


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's code without a `.env` file. Tests do not write into it."""
    return checkout_in(tmp_path_factory.mktemp("checkout"))


@pytest.fixture
def own_checkout(tmp_path: Path) -> Path:
    return checkout_in(tmp_path)


def changed(changes: dict[str, str | None]) -> dict[str, str]:
    """The environment of production with some variables changed; None removes one."""
    return {name: value for name, value in (PRODUCTION | changes).items() if value is not None}


def start(checkout: Path, *program: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
    return fork_server.run(*program, env=changed(changes), folder=checkout)


def settings_under(checkout: Path, **changes: str | None) -> dict[str, Any]:
    """The settings under which `start` would run, read in this process: a second faster."""
    return settings_of(changed(changes), checkout)


#: Of variables that are read alike, one has the wrong values.
WRONG: dict[str, list[str | None]] = {
    "ACCOUNTS_EMAIL_CHANGE": ["later", "on"],
    "ACCOUNTS_LIMIT_MAIL_CLIENT": ["none"],
    "ACCOUNTS_LIMIT_SIGN_IN": ["", "10", "0/15m", "10/0m", "10/15", "10 / 15m", "-5/1h"],
    "ACCOUNTS_PHONE_REGION": ["UK", "Europe"],
    "ACCOUNTS_SITE_ORIGIN": [
        *("http://x", "www.example.org", "https://*.example.org", "https://www.example.org/")
    ],
    "ACCOUNTS_TRUSTED_HOPS": ["one"],
    "AWS_ENDPOINT_URL": ["nonsense"],
    "AWS_ENDPOINT_URL_DYNAMODB": [
        *("localhost:8000", "http://localhost:port", "http://[", "http://exa mple:8000"),
        "http://dynamo_db:8000",
    ],
    "AWS_ENDPOINT_URL_SSM": ["localhost:4566"],
    "AWS_REGION": [None, "", "eu west", "-", "x" * 64],
    "DJANGO_ALLOWED_HOSTS": [
        *(None, " , ", "https://www.example.org", "www.example.org:443"),
        "www.example.org,exa mple.org",
    ],
    "DJANGO_CSRF_TRUSTED_ORIGINS": [
        *("www.example.org", "https://", "https://[", "https://*", "https://x.example:port"),
        *("https://user@www.example.org", "https://bücher.example", "https://www.example.org/"),
        "https://www.example.org, ftp://x.example",
    ],
    "DJANGO_DEBUG": ["maybe"],
    "DJANGO_DEBUG_TOOLBAR": ["on"],
    "DJANGO_FROM_EMAIL": [
        *("ledger", "Ledger, Inc <ledger@example.org>", "ledger@example.org, other@example.org"),
        "Ledger\nBcc: x@example.org <ledger@example.org>",
    ],
    "DJANGO_HSTS_PRELOAD": ["on"],
    "DJANGO_METRICS_TOKEN": ["short", "with a blank, and long enough otherwise"],
    "DJANGO_SECRET_KEY": [None, "", "   "],
    # The other one is set, too.
    "DJANGO_SECRET_KEY_PARAMETER": ["two words", "/site/keys"],
    "DJANGO_STATIC_HOST": ["http://d111.cloudfront.net", "https://d111.cloudfront.net/static/"],
    "DJANGO_TIME_ZONE": ["Europe/Leipzig", "Europe", "../UTC", "zone.tab"],
    "DYNAMODB_MAX_CONNECTIONS": ["many", "0", "9" * 5_000],
    "DYNAMODB_TABLE_PREFIX": ["a b", "x" * 201],
    # The URL of the mail server contains a password.
    "EMAIL_PASSWORD_PARAMETER": ["two words", "/site/email-password"],
    "EMAIL_URL": ["nonsense", "pigeon://mail.example.org", "smtp://mail.example.org:99999"],
    "EXPORTS_BUCKET": ["s3://exports"],
    "INVOICES_FONT_FOLDER": ["fonts"],
    "PROMETHEUS_MULTIPROC_DIR": ["/nowhere/to/be/found"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_a_missing_or_malformed_value_stops_the_start_by_name(
    checkout: Path, name: str, value: str | None
) -> None:
    with pytest.raises(SystemExit) as stopped:
        settings_under(checkout, **{name: value})

    # Python writes such a text to stderr and exits with 1.
    (line,) = str(stopped.value.code).splitlines()
    assert line.startswith(f"The site cannot start: {name} ")
    assert line.count(name) == 1


def test_only_these_variables_are_taken_as_they_are() -> None:
    text = (ROOT / "project" / "settings.py").read_text(encoding="utf-8")

    unchecked = set(re.findall(r'env\.read\(\s*"(\w+)",\s*str\b', text))

    assert unchecked == {"DJANGO_SECRET_KEY", "EMAIL_URL", "PORT"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"DJANGO_ALLOWED_HOSTS": "http://a, www.example.org, b/c"},
            "DJANGO_ALLOWED_HOSTS contains 'http://a', 'b/c': use host names only, without "
            "scheme, port or path",
        ),
        (
            {"AWS_REGION": None, "AWS_DEFAULT_REGION": "EU"},
            "AWS_DEFAULT_REGION must be a region such as eu-west-1, not 'EU'",
        ),
        ({"DJANGO_LOG_FORMAT": "xml"}, "DJANGO_LOG_FORMAT must be json or plain, not 'xml'"),
        (
            {"AWS_ENDPOINT_URL_S3": "ftp://a"},
            "AWS_ENDPOINT_URL_S3 must be an http or https URL, not 'ftp://a'",
        ),
        (
            {"ACCOUNTS_TRUSTED_HOPS": "-1"},
            "ACCOUNTS_TRUSTED_HOPS must be a whole number, 0 or more",
        ),
    ],
    ids=lambda given: ",".join(given) if isinstance(given, dict) else "",
)
def test_a_problem_is_reported_once_and_completely(
    checkout: Path, changes: dict[str, str | None], problem: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        settings_under(checkout, **changes)

    assert stopped.value.code == f"The site cannot start: {problem}."


@pytest.mark.parametrize(
    "program",
    [("manage.py", "check"), ("-c", "import project.wsgi"), ("-c", "import project.asgi")],
    ids=lambda program: program[-1],
)
def test_all_problems_are_reported_in_one_line(checkout: Path, program: tuple[str, ...]) -> None:
    ended = start(checkout, *program, DJANGO_SECRET_KEY=None, AWS_REGION=None, DJANGO_DEBUG="maybe")

    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    assert all(name in line for name in ("DJANGO_SECRET_KEY", "AWS_REGION", "DJANGO_DEBUG"))


VALID: dict[str, list[str | None]] = {
    "ACCOUNTS_EMAIL_CHANGE": ["confirm"],
    "ACCOUNTS_LIMIT_SIGN_IN": ["off", "3/10s"],
    "ACCOUNTS_PHONE_REGION": ["GB"],
    "ACCOUNTS_SITE_ORIGIN": ["https://www.example.org:8443"],
    "AWS_ENDPOINT_URL_DYNAMODB": ["https://x.amazonaws.com", "http://[::1]:8000"],
    "DJANGO_ALLOWED_HOSTS": ["*", "127.0.0.1,[::1],localhost"],
    "DJANGO_CSRF_TRUSTED_ORIGINS": [
        *(None, "https://*.example.org,http://localhost:8000"),
        "http://[::1]:8000,https://a_b.example",
    ],
    "DJANGO_DEBUG": ["OFF"],
    "DJANGO_FROM_EMAIL": ["ledger@example.org", '"Büro, Ledger" <ledger@bücher.example>'],
    "DJANGO_LOG_FORMAT": ["plain"],
    "DJANGO_METRICS_TOKEN": ["t" * 32],
    "DJANGO_TIME_ZONE": [""],
    "DYNAMODB_TABLE_PREFIX": ["staging-"],
    "EMAIL_URL": ["smtp+tls://user:p%40ss@mail.example.org:587"],
    "PROMETHEUS_MULTIPROC_DIR": [tempfile.gettempdir()],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in VALID.items() for value in values]
)
def test_a_valid_value_starts(checkout: Path, name: str, value: str | None) -> None:
    assert settings_under(checkout, **{name: value})["ROOT_URLCONF"] == "project.urls"


@pytest.mark.parametrize(
    ("changes", "hsts"),
    [
        ({}, [31_536_000, False, False]),
        ({"INCLUDE_SUBDOMAINS": "on"}, [31_536_000, True, False]),
        ({"INCLUDE_SUBDOMAINS": "on", "PRELOAD": "on"}, [31_536_000, True, True]),
    ],
)
def test_hsts_covers_other_hosts_of_the_domain_only_if_set(
    checkout: Path, changes: dict[str, str], hsts: list[Any]
) -> None:
    read = settings_under(checkout, **{f"DJANGO_HSTS_{name}": changes[name] for name in changes})

    names = ("SECONDS", "INCLUDE_SUBDOMAINS", "PRELOAD")
    assert [read.get(f"SECURE_HSTS_{name}") for name in names] == hsts


def test_the_toolbar_is_there_only_under_debug(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    production = settings_under(checkout)
    debug = settings_under(checkout, DJANGO_DEBUG="on")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    absent = settings_under(checkout, DJANGO_DEBUG="on")

    for read, is_there in ((production, False), (debug, True), (absent, False)):
        assert ("debug_toolbar" in read["INSTALLED_APPS"]) is is_there
        connect = f"connect-src '{'self' if is_there else 'none'}'"
        assert connect in read["ANSWER_HEADERS"]["Content-Security-Policy"]
    # It mixes up the CSRF tokens of pages that are served at once.
    assert "debug_toolbar.panels.templates.TemplatesPanel" not in debug["DEBUG_TOOLBAR_PANELS"]
    # Django's own test runner runs with the toolbar installed.
    assert debug["DEBUG_TOOLBAR_CONFIG"]["IS_RUNNING_TESTS"] is False


def test_production_is_strict(checkout: Path) -> None:
    production = settings_under(checkout)
    debug = settings_under(checkout, DJANGO_DEBUG="on", DJANGO_DEBUG_TOOLBAR="off")

    for name in ("SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"):
        assert production[name] is True
    assert (production["DEBUG"], production["DYNAMODB_LOCAL"]) == (False, False)
    for read, formatter in ((production, "json"), (debug, "plain")):
        assert read["LOGGING"]["handlers"]["console"]["formatter"] == formatter


def test_limits_are_read_as_a_number_of_times_in_seconds(checkout: Path) -> None:
    given = {"SIGN_IN": "3/2d", "MAIL": "OFF", "SIGN_IN_CLIENT": "7/90s", "MAIL_CLIENT": "5/1h"}
    read = settings_under(checkout, **{f"ACCOUNTS_LIMIT_{name}": given[name] for name in given})

    assert read["ACCOUNTS_LIMITS"].items() >= {
        *(("sign_in", (3, 172_800)), ("mail", None), ("sign_in_client", (7, 90))),
        *(("mail_client", (5, 3600)), ("sign_up_client", (100, 3600))),
    }
    assert read["ACCOUNTS_TRUSTED_HOPS"] == 0


@pytest.mark.parametrize(
    ("region", "profile", "found"),
    [
        (None, "here", "eu-north-1"),
        ("us-west-2", "here", "us-west-2"),
        (None, "malformed", "names a wrong region: it must be .*'eu north'"),
        (None, "nobody", "cannot be used: .*nobody"),
        ("us-west-2", "nobody", "cannot be used: .*nobody"),
    ],
)
def test_the_region_may_come_from_a_profile(
    checkout: Path, tmp_path: Path, region: str | None, profile: str, found: str
) -> None:
    config = tmp_path / "config"
    config.write_text("[profile here]\nregion=eu-north-1\n[profile malformed]\nregion=eu north\n")
    changes = {"AWS_REGION": region, "AWS_PROFILE": profile, "AWS_CONFIG_FILE": str(config)}

    if " " in found:
        with pytest.raises(SystemExit, match=f"^The site cannot start: AWS_PROFILE {found}[^;]*$"):
            settings_under(checkout, **changes)
    else:
        assert settings_under(checkout, **changes)["AWS_REGION"] == found


def test_the_region_may_have_the_name_of_older_tools(checkout: Path) -> None:
    read = settings_under(checkout, AWS_REGION=None, AWS_DEFAULT_REGION="eu-west-3")

    assert read["AWS_REGION"] == "eu-west-3"


def test_a_dotenv_file_adds_what_the_environment_lacks(own_checkout: Path) -> None:
    (own_checkout / ".env").write_text("DJANGO_ALLOWED_HOSTS=from.file\nAWS_REGION=from-file-1\n")
    shown = "from project import settings as s; print(s.ALLOWED_HOSTS, s.AWS_REGION)"

    ended = start(own_checkout, "-c", shown, DJANGO_ALLOWED_HOSTS=None)

    assert ended.stdout == "['from.file'] eu-west-1\n"


def test_an_unreadable_dotenv_file_stops_the_start(own_checkout: Path) -> None:
    (own_checkout / ".env").write_bytes(b"\xff")

    with pytest.raises(SystemExit, match=r"^The site cannot start: \.env cannot be read: "):
        settings_under(own_checkout)


@pytest.mark.parametrize(
    ("changes", "origin"),
    [
        ({"ACCOUNTS_SITE_ORIGIN": "https://x.example:8443"}, "https://x.example:8443"),
        ({}, "https://www.example.org"),
        ({"DJANGO_ALLOWED_HOSTS": ".example.net,a.example,b.example"}, "https://a.example"),
        ({"DJANGO_ALLOWED_HOSTS": "*"}, ""),
        ({"DJANGO_DEBUG": "on", "PORT": ""}, "http://127.0.0.1:8000"),
        ({"DJANGO_DEBUG": "on", "PORT": "9001"}, "http://127.0.0.1:9001"),
    ],
)
def test_mailed_links_begin_with_a_configured_origin(
    checkout: Path, changes: dict[str, str], origin: str
) -> None:
    found = settings_under(checkout, **({"ACCOUNTS_SITE_ORIGIN": None} | changes))

    assert found["ACCOUNTS_SITE_ORIGIN"] == origin


def test_reserved_usernames_can_be_replaced(checkout: Path) -> None:
    assert "admin" in settings_under(checkout)["ACCOUNTS_RESERVED_USERNAMES"]
    mine = settings_under(checkout, ACCOUNTS_RESERVED_USERNAMES="Büro, boss")
    assert mine["ACCOUNTS_RESERVED_USERNAMES"] == ["Büro", "boss"]


@pytest.mark.fault_of("moto", "ignores client request tokens")
def test_a_check_for_deployment_finds_nothing(own_checkout: Path, engine: str) -> None:
    endpoint = {"AWS_ENDPOINT_URL_DYNAMODB": engine, "AWS_REGION": "us-east-1"}
    collect_into(own_checkout / "staticfiles")

    check = ("manage.py", "check", "--deploy", "--fail-level=WARNING")
    ended = start(own_checkout, *check, **endpoint)

    assert ended.stderr == ""
    assert ended.stdout == "System check identified no issues (2 silenced).\n"
    assert ended.returncode == 0


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"DJANGO_ALLOWED_HOSTS": "*"}, "project.W002"),
        ({"DJANGO_ALLOWED_HOSTS": "*", "ACCOUNTS_SITE_ORIGIN": None}, "accounts.E001"),
        ({"DJANGO_SECRET_KEY": "weak"}, "security.W009"),
        ({"DJANGO_BEHIND_TLS_PROXY": "on", "ACCOUNTS_TRUSTED_HOPS": None}, "accounts.W001"),
        ({"EMAIL_URL": None}, "project.W003"),
        ({"EMAIL_URL": "consolemail://"}, "accounts.W002"),
        ({"DJANGO_FROM_EMAIL": None}, "accounts.W002"),
        ({"ACCOUNTS_PREVENT_ENUMERATION": None}, "accounts.W003"),
        ({"ACCOUNTS_EMAIL_CHANGE": "immediate"}, "accounts.W004"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else value,
)
def test_a_check_for_deployment_reports_weak_settings(
    checkout: Path, changes: dict[str, str | None], finding: str
) -> None:
    read = settings_under(checkout, **changes)
    checked = {name: value for name, value in read.items() if name.startswith(CHECKED)}
    with override_settings(**checked):
        messages = run_checks(tags=["security"], include_deployment_checks=True)
        found = {
            message.id: message.is_serious() for message in messages if not message.is_silenced()
        }

    # The others are warnings.
    assert found[finding] is (".E" in finding)
    assert "DJANGO_ALLOWED_HOSTS" in changes or found.keys() == {finding}


#: The beginnings of the settings that the checks read.
CHECKED = (
    *("ACCOUNTS_", "ALLOWED_", "CSRF_", "DEBUG", "DEFAULT_FROM_", "EMAIL_", "MIDDLEWARE"),
    *("SECRET_", "SECURE_", "SESSION_", "SILENCED_", "X_FRAME_"),
)


@pytest.mark.parametrize(("value", "indexes"), [(None, ["unique-search"]), ("off", [])])
def test_accounts_have_the_search_index_unless_it_is_switched_off(
    checkout: Path, value: str | None, indexes: list[str]
) -> None:
    code = (
        "import django; django.setup()\n"
        "from dynamo.tables.definitions import all_tables\n"
        "[users] = [each for each in all_tables() if each.base_name == 'users']\n"
        "print([each.name for each in users.indexes])"
    )
    changes = {"ACCOUNTS_PREFIX_SEARCH": value, "DJANGO_SETTINGS_MODULE": "project.settings"}
    ended = start(checkout, "-c", code, **changes)

    assert (ended.stderr, ended.stdout) == ("", f"{indexes}\n")
