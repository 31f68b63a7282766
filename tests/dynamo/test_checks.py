"""The system checks of the tables and of the engine."""

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import caches
from django.core.checks import CheckMessage, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command, get_commands
from django.core.management.base import SystemCheckError
from django.test import override_settings

from dynamo.admin import checks as admin_checks
from dynamo.client.sending import send
from dynamo.management.commands import createtables
from dynamo.runtime import deadline
from dynamo.sessions import SessionStore
from dynamo.tables import checks
from dynamo.tables.definitions import Table, all_tables, create
from tests import engines
from tests.faults.kinds import Answer
from tests.faults.proxy import NOWHERE, FaultProxy, through
from tests.items import scanned
from tests.requests import Requests

ALWAYS = 1_000
ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST"}
STATICFILES = "django.contrib.staticfiles"
DYNAMO_CACHE = {"BACKEND": "dynamo.cache.DynamoCache"}


def found() -> list[CheckMessage]:
    return run_checks(tags=["dynamodb"], include_deployment_checks=True)


def ids() -> set[str]:
    return {str(finding.id) for finding in found()}


def test_an_id_of_a_check_has_one_meaning() -> None:
    texts = "\n".join(module.__doc__ or "" for module in (checks, admin_checks))

    listed = re.findall(r"^ *(dynamo\.[EW]\d{3}) ", texts, re.MULTILINE)

    assert len(listed) == len({*listed}) > 15


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("DYNAMODB_TABEL_PREFIX", "Did you mean DYNAMODB_TABLE_PREFIX?"),
        ("DYNAMO_TABLE_PREFIX", "Did you mean DYNAMODB_TABLE_PREFIX?"),
        ("DYNAMODB_TIMEOUT", "There are DYNAMODB_TABLE_PREFIX, "),
        ("AWS_REGIONS", "Did you mean AWS_REGION?"),
    ],
)
def test_a_setting_that_would_be_ignored_is_reported(settings: Any, name: str, said: str) -> None:
    assert checks.check_settings() == []
    setattr(settings, name, "x")

    [warning] = checks.check_settings()

    assert warning.msg.startswith(f"There is no setting {name}. {said}")


def test_without_time_zones_a_model_with_times_is_an_error(settings: Any) -> None:
    assert checks.check_time_zones() == []
    settings.USE_TZ = False

    messages = [finding.msg for finding in checks.check_time_zones()]

    assert any("outbox.TaskItem has times: " in text for text in messages)
    assert not any("sequences.Counter" in text for text in messages)


def few_tables() -> list[Table]:
    """Three of the site's. Those of all models of the suite take long to create."""
    return [table for table in all_tables() if table.base_name in {"cache", "counters", "locks"}]


def make_bare() -> None:
    """Create the tables with no more than keys."""
    for table in few_tables():
        send("CreateTable", {"TableName": table.name, **table.schema, **ON_DEMAND})


@pytest.fixture(autouse=True)
def _few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (checks, createtables):
        monkeypatch.setattr(module, "all_tables", few_tables)


@pytest.fixture
def prefix(engine: str, settings: Any) -> str:
    """A prefix without tables."""
    settings.DYNAMODB_TABLE_PREFIX = f"{uuid.uuid4().hex}-"
    return str(settings.DYNAMODB_TABLE_PREFIX)


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    with engines.running("moto") as url:
        yield url


@pytest.mark.fault_of("moto", "ignores client request tokens")
@pytest.mark.usefixtures("engine")
def test_our_tables_have_no_findings_and_the_check_leaves_nothing_behind() -> None:
    assert found() == []
    assert scanned("cache") == []


@pytest.mark.fault_of("moto", "ignores client request tokens, so the check fails")
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ("", 0),
        ("--tag security --deploy", 0),
        ("--tag dynamodb", 1),
        ("--deploy", 1),
        ("--deploy --tag dynamodb", 1),
    ],
)
def test_the_check_runs_once_if_asked_for(requests_sent: Requests, options: str, runs: int) -> None:
    call_command("check", *options.split())

    assert requests_sent.operations.count("TransactWriteItems") == 2 * runs
    assert requests_sent.operations.count("DeleteItem") == runs
    assert bool(requests_sent.operations) == bool(runs)


@pytest.mark.usefixtures("prefix")
def test_a_missing_table_is_found_with_the_command_that_creates_it() -> None:
    assert [(item.id, item.msg, item.hint) for item in found()] == [
        ("dynamo.E001", f"The table {table.name} is missing.", "Run manage.py createtables.")
        for table in few_tables()
    ]
    with pytest.raises(SystemCheckError, match=r"dynamo\.E001"):
        call_command("check", "--tag", "dynamodb")


def test_a_table_without_ttl_is_found_until_createtables_completes_it(prefix: str) -> None:
    make_bare()
    assert [item.msg for item in found() if item.id == "dynamo.W001"] == [
        f"The table {prefix}cache has no time to live."
    ]

    call_command("createtables")

    assert "dynamo.W001" not in ids()


@pytest.mark.site
def test_a_table_without_recovery_is_found_until_createtables_completes_it(
    prefix: str, moto_url: str
) -> None:
    with through(moto_url):
        make_bare()
        without = {item.msg for item in found() if item.id == "dynamo.W002"}
        assert f"The table {prefix}locks has no point-in-time recovery." in without

        call_command("createtables")

        assert "dynamo.W002" not in ids()


def test_an_app_that_comes_first_and_replaces_our_commands_is_found() -> None:
    def found(*apps: str) -> list[CheckMessage]:
        with override_settings(INSTALLED_APPS=apps):
            get_commands.cache_clear()
            # It needs no connection, so a plain `check` runs it as well.
            return run_checks(tags=["dynamodb"])

    try:
        assert found("dynamo", STATICFILES) == []
        [finding] = found(STATICFILES, "dynamo")
    finally:
        get_commands.cache_clear()

    assert (finding.id, finding.msg, finding.hint) == (
        "dynamo.W003",
        "The app django.contrib.staticfiles comes before dynamo in INSTALLED_APPS and replaces "
        "its command runserver.",
        "Put dynamo first.",
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        *(
            ({"LOCATION": location}, f"letters, digits and _.- .*, not {re.escape(repr(location))}")
            for location in ("redis://127.0.0.1:6379", "/site/cache", "two words", "x" * 41)
        ),
        *(
            ({"LOCATION": location}, f"letters, digits and _.- .*, not {re.escape(repr(location))}")
            for location in (["a"], None, "é", "a\n", "a@sessions")
        ),
        *(
            ({"TIMEOUT": timeout}, f"TIMEOUT must be .*, not {timeout!r}")
            for timeout in ("5 minutes", 0.5, True, "")
        ),
        ({"OPTIONS": {"MAX_ENTRIES": 1000}}, "MAX_ENTRIES would do nothing"),
        ({"TIMEOUTS": 300, "NAME": "x"}, "NAME, TIMEOUTS would do nothing"),
    ],
    ids=str,
)
def test_a_wrong_option_of_a_cache_is_found(
    options: dict[str, Any], text: str, settings: Any
) -> None:
    settings.CACHES = settings.CACHES | {"other": DYNAMO_CACHE | options}

    [finding] = run_checks(tags=["caches"])

    assert finding.id == "dynamo.E008"
    assert re.match(rf"CACHES\['other'\]: .*{text}", finding.msg)
    for call in (caches["other"].clear, lambda: caches["other"].get("key")):
        with pytest.raises(ImproperlyConfigured, match=text):
            call()


@pytest.mark.parametrize(
    "options",
    [
        {"LOCATION": "a_table.of-2"},
        *({"TIMEOUT": timeout} for timeout in (None, 0, -1, 300, "300")),
        {"KEY_PREFIX": "site", "VERSION": 2, "KEY_FUNCTION": "os.path.join", "OPTIONS": {}},
    ],
    ids=str,
)
def test_a_right_option_of_a_cache_is_not(options: dict[str, Any], settings: Any) -> None:
    settings.CACHES = {"default": DYNAMO_CACHE | options}

    assert run_checks(tags=["caches"]) == []


@pytest.mark.parametrize("alias", ["local", "absent"])
def test_sessions_in_another_cache_are_found(alias: str, settings: Any) -> None:
    local = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    settings.CACHES = {"default": DYNAMO_CACHE, "local": local}
    settings.SESSION_CACHE_ALIAS = alias

    [finding] = run_checks(tags=["caches"])

    assert finding.id == "dynamo.E008"
    assert alias in finding.msg
    with pytest.raises(ImproperlyConfigured, match=alias):
        SessionStore()


def test_an_engine_without_transactions_is_found(proxy: FaultProxy) -> None:
    proxy.plan("TransactWriteItems", Answer(400, "UnknownOperationException"), ALWAYS)

    assert ids() == {"dynamo.E003"}


@pytest.mark.site
def test_an_engine_that_ignores_tokens_is_found(prefix: str, moto_url: str) -> None:
    with through(moto_url):
        for table in few_tables():
            create(table)
        assert ids() == {"dynamo.E004"}
        assert scanned(f"{prefix}cache") == []


def test_an_unreachable_engine_is_one_finding_of_one_line() -> None:
    with through(NOWHERE), deadline.within(0.1):
        findings = found()

    assert [finding.id for finding in findings] == ["dynamo.E005"]
    assert "\n" not in findings[0].msg


def test_an_engine_that_is_not_aws_names_what_no_check_verifies() -> None:
    with through("http://engine.invalid:8000"), deadline.within(0.1):
        foreign = found()
    with through("https://dynamodb.invalid.amazonaws.com"), deadline.within(0.1):
        of_aws = found()

    assert [finding.id for finding in foreign] == ["dynamo.I001", "dynamo.E005"]
    assert "isolated" in foreign[0].msg
    assert [finding.id for finding in of_aws] == ["dynamo.E005"]


@pytest.mark.usefixtures("prefix")
def test_findings_before_a_failure_are_kept(proxy: FaultProxy) -> None:
    first, *others = few_tables()
    create(others[0])
    proxy.plan("DescribeContinuousBackups", Answer(400, "AccessDeniedException"), ALWAYS)

    findings = found()

    assert first.name in findings[0].msg
    assert [finding.id for finding in findings] == ["dynamo.E001", "dynamo.E005"]
    assert "DescribeContinuousBackups: AccessDeniedException" in findings[1].msg
