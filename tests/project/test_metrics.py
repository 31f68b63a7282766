"""What `/metrics` shows, to whom, and that the docs list the same metrics."""

import os
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from accounts.exceptions import EmailTaken, UsernameTaken
from accounts.services import change_username
from dynamo.client.sending import send
from dynamo.exceptions import DynamoError, Refused
from locks.exceptions import LeaseLost
from locks.lock import Lock
from outbox.test import run_tasks
from project import metrics
from sequences.counters import next_value, next_values
from tests.commands import ROOT
from tests.factories import make_user
from tests.faults.kinds import Answer, CloseBefore
from tests.faults.proxy import FaultProxy
from tests.fork_server import fork_server
from tests.invoice_factories import issued, new_account
from tests.outbox import functions
from tests.requests import Requests
from uploads.run import upload_files
from uploads.sources import Destination, Result

TOKEN = "a-token-of-the-tests-and-of-nobody-else"
BEARER = {"authorization": f"Bearer {TOKEN}"}

Rise = Callable[..., float]


@pytest.fixture
def rise() -> Iterator[Rise]:
    """By how much a sample has risen since the test began."""
    before = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in REGISTRY.collect()
        for sample in family.samples
    }

    def risen(name: str, **labels: str) -> float:
        now = REGISTRY.get_sample_value(name, labels) or 0.0
        return now - before.get((name, tuple(sorted(labels.items()))), 0.0)

    metrics.listen()
    yield risen
    for signal, receiver in metrics.RECEIVERS.items():
        signal.disconnect(receiver)


def defined() -> dict[str, tuple[str, set[str]]]:
    """The type and the labels of each of our metrics, by name."""
    found = {}
    for file in ROOT.glob("*/metrics.py"):
        for value in vars(import_module(f"{file.parent.name}.metrics")).values():
            if hasattr(value, "_labelnames") and hasattr(value, "_type"):
                suffix = "_total" if value._type == "counter" else ""
                found[value._name + suffix] = (value._type, set(value._labelnames))
    return found


@pytest.mark.parametrize(
    ("token", "authorization"),
    [
        *(("", "Bearer "), (TOKEN, None)),
        *((TOKEN, "Bearer wrong"), (TOKEN, TOKEN), (TOKEN, "Bearer \u00e9")),
    ],
)
def test_without_the_token_the_page_is_a_404(
    settings: Any, token: str, authorization: str | None
) -> None:
    settings.METRICS_TOKEN = token
    headers = {"authorization": authorization} if authorization is not None else {}

    answer = Client().get("/metrics", headers=headers)

    assert (answer.status_code, answer.content) == (404, Client().get("/nowhere").content)


def test_the_page_is_also_answered_by_ip_address_and_without_tls(
    production: None, settings: Any, requests_sent: Requests
) -> None:
    settings.METRICS_TOKEN = TOKEN

    answer = Client(headers=BEARER).get("/metrics", headers={"host": "10.0.0.7:8000"})

    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    assert "no-store" in answer["Cache-Control"]
    families = {family.name for family in text_string_to_metric_families(answer.content.decode())}
    assert {name.removesuffix("_total") for name in defined()} <= families
    assert b"_created" not in answer.content
    assert requests_sent.operations == []


@pytest.mark.usefixtures("engine")
def test_pages_are_counted_by_the_names_of_their_urls(rise: Rise) -> None:
    client = Client()
    client.get("/accounts/confirm/a-token-of-a-link/")
    client.get("/made-up/by-a-client")
    client.generic("BREW", "/livez")

    confirmed = {"url": "email_confirm", "method": "GET"}
    assert rise("http_requests_total", **confirmed, status="410") == 1
    assert rise("http_request_seconds_count", **confirmed) == 1
    assert rise("http_requests_total", url="none", method="GET", status="404") == 1
    assert rise("http_requests_total", url="livez", method="other", status="200") == 1


@pytest.mark.usefixtures("engine")
@pytest.mark.fault_of("ministack", "counts no units of an index")
@pytest.mark.fault_of("moto", "names no units of a transaction")
def test_requests_to_dynamodb_are_counted_by_operation_table_and_outcome(rise: Rise) -> None:
    make_user(username="ann", email="ann@example.org")
    with pytest.raises(Refused):
        make_user(username="ann", email="ann@example.org")
    issued(new_account())

    write = {"operation": "TransactWriteItems", "table": "users"}
    assert rise("dynamodb_requests_total", **write, outcome="ok") == 1
    assert rise("dynamodb_requests_total", **write, outcome="refused") == 1
    both = write | {"table": "counters+invoices"}
    assert rise("dynamodb_requests_total", **both, outcome="ok") == 1
    assert rise("dynamodb_units_total", table="users", kind="write") == 8
    assert rise("dynamodb_units_total", table="invoices", kind="write") == 4
    assert rise("dynamodb_units_total", table="counters", kind="read") == 1
    reasons = "dynamodb_cancellation_reasons_total"
    assert rise(reasons, reason="ConditionalCheckFailed") == 2
    assert rise("dynamodb_request_seconds_count", operation="TransactWriteItems") == 3


def test_faults_retries_and_reasons_are_counted(proxy: FaultProxy, rise: Rise) -> None:
    get = {"TableName": "users", "Key": {"pk": {"S": "nobody"}}}
    put = {"TableName": "users", "Item": {"pk": {"S": "a"}}}
    for fault in (
        Answer(400, "ThrottlingException"),
        Answer(500, "InternalServerError"),
        CloseBefore(),
    ):
        proxy.plan("GetItem", fault)
        send("GetItem", get)
    proxy.plan("PutItem", Answer(400, "TransactionConflictException"))
    send("PutItem", put)
    proxy.plan("PutItem", Answer(400, "AccessDeniedException"))
    with pytest.raises(DynamoError):
        send("PutItem", put)
    reasons = ["None", "SomethingNew", "TransactionConflict"]
    proxy.plan("TransactWriteItems", Answer(400, "TransactionCanceledException", reasons=reasons))
    make_user(username="ann")

    def of(operation: str, outcome: str) -> float:
        return rise("dynamodb_requests_total", operation=operation, table="users", outcome=outcome)

    outcomes = ("throttled", "failed", "unanswered", "ok", "rejected")
    assert [of("GetItem", outcome) for outcome in outcomes] == [1, 1, 1, 3, 0]
    assert [of("PutItem", outcome) for outcome in ("conflict", "ok", "rejected")] == [1, 1, 1]
    assert rise("dynamodb_retries_total", operation="GetItem") == 3
    assert rise("dynamodb_retries_total", operation="PutItem") == 1
    name = "dynamodb_cancellation_reasons_total"
    assert rise(name, reason="TransactionConflict") == 1
    assert rise(name, reason="SomethingNew") == 1
    assert rise(name, reason="None") == 0


_PRINT_RECEIVERS = """
import django
django.setup()
from accounts.signals import value_taken
from dynamo.signals import request_sent
from locks.signals import lease_lost, lock_awaited
from project.access import page_answered
from sequences.signals import numbers_given
signals = page_answered, value_taken, request_sent, numbers_given, lock_awaited, lease_lost
print([each.has_listeners() for each in signals])
"""

_COUNT_AND_ASK = f"""
from django.test import Client
from project.metrics import FILES
FILES.labels("uploaded").inc(2)
print(Client(headers={BEARER}).get("/metrics").content.decode())
"""


def printed_by(program: str, **environment: str) -> str:
    """What a new process prints."""
    return fork_server.run("-c", program, env=os.environ | environment).stdout


def test_without_a_token_no_signal_has_a_receiver() -> None:
    assert printed_by(_PRINT_RECEIVERS, DJANGO_METRICS_TOKEN="") == f"{[False] * 6}\n"


def test_with_a_token_the_processes_of_a_server_add_up_their_metrics(tmp_path: Path) -> None:
    environment = {"DJANGO_METRICS_TOKEN": TOKEN, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}

    first, second = (
        printed_by(_PRINT_RECEIVERS + _COUNT_AND_ASK, **environment) for _process in range(2)
    )

    assert first.startswith(f"{[True] * 6}\n")
    assert 'uploads_files_total{outcome="uploaded"} 2.0' in first
    assert 'uploads_files_total{outcome="uploaded"} 4.0' in second


@pytest.mark.usefixtures("engine")
def test_each_app_counts_what_it_does(rise: Rise) -> None:
    make_user(username="ann", email="ann@example.org")
    with pytest.raises(EmailTaken):
        make_user(email="ann@example.org")
    with pytest.raises(UsernameTaken):
        change_username(make_user(username="bob"), "ann")
    assert rise("accounts_taken_total", attribute="userName") == 1
    assert rise("accounts_taken_total", attribute="email") == 1

    next_value("tickets")
    next_values(10, "tickets")
    next_value("seconds", 0, reset_value=60)
    account = new_account()
    issued(account, request_id="one")
    issued(account, request_id="one")
    assert rise("sequences_numbers_total", kind="counter") == 12
    assert rise("sequences_group_size_count", kind="counter") == 3
    assert rise("sequences_group_size_sum", kind="counter") == 3
    # Requested twice, issued once.
    assert rise("sequences_numbers_total", kind="invoice") == 1
    assert rise("sequences_group_size_count", kind="invoice") == 1

    lease = Lock("report").acquire()
    assert Lock("report").try_acquire() is None
    lease._lose("it was not renewed in time")
    with pytest.raises(LeaseLost):
        lease.check()
    assert rise("locks_wait_seconds_count", outcome="acquired") == 1
    assert rise("locks_wait_seconds_count", outcome="taken") == 1
    assert rise("locks_lost_total", reason="late") == 1

    unusable = Result("a", "", "failed", 0, "it is a loop of links")
    upload_files([unusable], Destination.parse("s3://bucket/logs"), on_result=print)
    assert rise("uploads_files_total", outcome="failed") == 1
    assert rise("uploads_bytes_total") == 0


@pytest.mark.usefixtures("engine")
def test_workers_count_their_attempts(rise: Rise, settings: Any) -> None:
    # The repetition waits at random, from 0 on, and here never runs in the same call.
    later = {"RETRY": {"*": {"delay": 10**6, "longest": 10**6}}}
    settings.TASKS = {"default": {"BACKEND": "outbox.TaskBackend", "OPTIONS": later}}
    functions.note.enqueue()
    functions.fail.enqueue()
    run_tasks(raise_errors=False)

    assert rise("outbox_attempt_seconds_count", outcome="successful") == 1
    assert rise("outbox_attempt_seconds_count", outcome="repeated") == 1
    assert metrics.OLDEST.collect()


def test_the_docs_list_exactly_these_metrics() -> None:
    text = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `([a-z_]+)` \| (counter|gauge|histogram) \|([^|]*)\|", text, re.MULTILINE
    )

    told = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}

    assert len(rows) == len(told)
    assert told == defined()


def test_an_app_defines_its_metrics_in_one_module() -> None:
    ours = [Path(config.path) for config in apps.get_app_configs()]
    for app in [ROOT / "project", *(path for path in ours if path.parent == ROOT)]:
        for file in app.rglob("*.py"):
            made = re.findall(r"\b(?:Counter|Histogram|Gauge|Summary)\(\s*\"", file.read_text())
            assert not made or file == app / "metrics.py", file
