"""The command `storereport`, what it finds, and the pages that show the last report."""

import json
import socket
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils.module_loading import import_string

from locks.lock import Lock, claim_once
from project import settings as site_settings
from sequences.counters import next_values
from staff.models import Report
from staff.reports import KINDS, LastReport, NewerReport, last_reports, make_report, store
from tests.commands import run
from tests.factories import make_user, set_stored, stored_items
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import issued, put_state, remove_invoice
from tests.items import put_item, remove_item
from tests.pages import Page
from tests.requests import OF_EVERY_PAGE, Requests
from tests.staff.scenes import let_in, make_staff, stored_entries, stored_report

pytestmark = pytest.mark.usefixtures("engine")

GUARDS = KINDS["guards"]


def made(by: str = "test") -> Report:
    return make_report(GUARDS, by=by, progress=lambda _what, _count: None)


def last() -> LastReport:
    [view] = last_reports(GUARDS)
    return view


def put_report(**values: str) -> None:
    """Store a guard report with these attributes, as another version or clock would."""
    put_item(Report.table(), kind="guards", **values)


def orphan(name: str) -> None:
    put_item("users", pk=f"userName#{name}", owner="gone")


def found_by(name: str) -> Any:
    """What a stored report says."""
    return stored_report(name).result


# The command --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_a_report_is_stored_and_its_page_shows_when_and_by_whom(name: str) -> None:
    client = let_in(make_staff())
    page = Page(client.get(f"/admin/runs/{name}/"))
    assert "No report is stored yet." in page.text
    assert f"manage.py storereport {name}" in page.text

    out, err, code = run("storereport", name)

    assert (out.startswith("The report is stored."), err, code) == (True, "", 0)
    text = Page(client.get(f"/admin/runs/{name}/")).text
    assert "Stored 0\xa0minutes ago by" in text
    assert f"@{socket.gethostname()}" in text
    assert "Check that a worker runs." not in text
    assert stored_entries() == []


def test_a_worker_stores_a_report_of_each_kind_every_night() -> None:
    schedule = site_settings.TASKS["default"]["OPTIONS"]["SCHEDULE"]
    assert [options["args"] for options in schedule.values()] == [[kind] for kind in KINDS]

    for options in schedule.values():
        import_string(options["task"]).enqueue(*options["args"])

    stored = last_reports(*KINDS.values())
    assert [report.stored_by for report in stored] == ["runtasks"] * len(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_report_is_sent_only_what_it_compares_or_counts(
    name: str, requests_sent: Requests
) -> None:
    run("storereport", name)

    scans = requests_sent.of("Scan")
    assert scans
    assert all(scan["ProjectionExpression"] for scan in scans)
    asked = {name for scan in scans for name in scan["ExpressionAttributeNames"].values()}
    assert asked.isdisjoint({"password", "fullName", "lines", "customerName", "note"})


def test_the_command_prints_the_report_with_its_problems() -> None:
    make_user()
    orphan("nobody")

    assert run("storereport", "guards") == ("The report is stored. Problems found: 1.\n", "", 0)
    out, err, code = run("storereport", "guards", "--json")

    assert (out.count("\n"), err, code) == (1, "", 0)
    answer = json.loads(out)
    assert answer["report"] == "guards"
    assert answer["startedAt"] < answer["endedAt"]
    assert answer["storedBy"].endswith(f"@{socket.gethostname()}")
    assert answer["result"] == last().result
    assert (answer["result"]["users"], last().is_wrong) == (1, True)
    assert run("checkguards")[2] == 1


def test_if_dynamodb_does_not_answer_the_last_report_stays(
    proxy: FaultProxy, impatient: float
) -> None:
    store(made("before"))
    proxy.plan("Scan", Answer(500, "InternalServerError"), times=99)

    out, err, code = run("storereport", "guards", "--json")

    assert (out, code, last().stored_by) == ("", 1, "before")
    assert "DynamoDB gave no answer to Scan in time" in err


def test_a_check_that_cannot_write_to_disk_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    make_user()
    connect = sqlite3.connect

    def connect_to_full_disk(file: str) -> sqlite3.Connection:
        connection = connect(file)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr("sqlite3.connect", connect_to_full_disk)

    out, err, code = run("storereport", "guards")

    assert (out, code, last().result) == ("", 1, None)
    assert "database or disk is full" in err


# Concurrent commands and crashes ------------------------------------------------------------------


def test_an_older_report_does_not_replace_a_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    older = made("older")
    store(made("newer"))
    # The report that began earlier is stored later.
    monkeypatch.setattr("staff.management.commands.storereport.make_report", lambda *_, **__: older)

    out, err, code = run("storereport", "guards")

    assert (out, code) == ("", 1)
    assert "Guard check: a newer report is already stored, so this one was not stored." in err
    assert last().stored_by == "newer"


def test_a_report_from_the_far_future_is_replaced() -> None:
    def put_ahead(**ahead: int) -> None:
        at = (datetime.now(UTC) + timedelta(**ahead)).isoformat()
        put_report(result="{}", startedAt=at, endedAt=at, storedBy="future")

    put_ahead(hours=1)
    with pytest.raises(NewerReport):
        store(made("now"))
    put_ahead(days=400)
    store(made("now"))

    assert last().stored_by == "now"


def test_a_report_says_its_age_and_how_long_it_took() -> None:
    put_report(
        result=str(made().result),
        startedAt="2026-01-02T03:04:05+00:00",
        endedAt="2026-01-02T03:04:15+00:00",
        storedBy="fay",
    )

    text = Page(let_in(make_staff()).get("/admin/runs/guards/")).text

    assert "ago by fay" in text
    assert "It took 10\xa0s." in text
    assert "Check that a worker runs." in text


# Contents of the reports --------------------------------------------------------------------------


def test_the_report_of_guards_has_what_checkguards_finds() -> None:
    bob = make_user(username="bob")
    remove_item("users", pk="userName#bob")
    orphan("nobody")
    set_stored(bob, email={"N": "1"})
    before = stored_items()

    found = found_by("guards")

    missing, orphaned = (
        {"pk": bob.pk, "key": "userName#bob"},
        {"pk": "gone", "key": "userName#nobody"},
    )
    assert found["findings"]["missing"] == {"shown": [missing], "more": 0}
    assert orphaned in found["findings"]["orphaned"]["shown"]
    assert found["unusable_example"] == {"pk": bob.pk, "attribute": "email"}
    assert (found["users"], last().is_wrong) == (1, True)
    assert stored_items() == before
    text = Page(let_in(make_staff()).get("/admin/runs/guards/")).text
    assert "userName#nobody" in text
    assert "manage.py checkguards --repair" in text


def test_the_first_of_many_findings_are_shown_and_the_others_counted() -> None:
    for number in range(55):
        orphan(f"nobody{number:02}")

    found = found_by("guards")

    orphaned = found["findings"]["orphaned"]
    assert (len(orphaned["shown"]), orphaned["more"], found["wrong"]) == (50, 5, 55)
    page = Page(let_in(make_staff()).get("/admin/runs/guards/"))
    assert "And 5 more." in page.text


def test_the_report_of_invoices_has_a_gap_and_a_state_without_its_credit_note() -> None:
    bob = make_user()
    first = issued(bob.pk)
    second = issued(bob.pk)
    remove_invoice(first.series, 1)
    put_state(bob.pk, second.label, creditedBy={"S": f"credit#{second.label}"})

    found = found_by("invoices")

    assert (found["series"], found["issued"], found["wrong"]) == (1, 1, 1)
    [damage] = found["damaged"]["shown"]
    assert damage["gaps"] == {"shown": ["1"], "more": 0}
    assert damage["credits"] == {"shown": [second.label], "more": 0}
    shown = Page(let_in(make_staff()).get("/admin/runs/invoices/")).text
    assert first.series in shown
    assert f"do not name each other: {second.label}" in shown


def test_statistics_count_accounts_counters_locks_and_uploads(requests_sent: Requests) -> None:
    client = let_in(make_staff())
    let_in(make_staff())
    bob = make_user()
    issued(bob.pk)
    for user in (bob, make_user()):
        confirmed_at = "2026-01-02T03:04:05.000000+0000"
        set_stored(user, isActive={"BOOL": False}, emailConfirmedAt=confirmed_at)
    next_values(2, "tickets")
    Lock("nightly", lease_seconds=600, owner="worker-7").acquire()
    claim_once("import")
    put_item("uploads", key="s3://b/a", state="done", size=1024)
    late = {"key": "s3://b/late", "updatedAt": "2026-01-02T03:04:05+00:00"}
    put_item("uploads", **late, state="uploading", size=5)

    found = found_by("statistics")

    assert [len(found["accounts"].pop(name)) for name in ("newest", "days")] == [4, 30]
    counts = {"all": 4, "inactive": 2, "staff": 2, "confirmed": 2, "present": 2}
    assert found["accounts"] == counts
    assert found["counters"]["shown"] == [{"name": "tickets", "value": 2}]
    assert [name["name"] for name in found["locks"]["shown"]] == ["nightly", "import"]
    requests_sent.clear()
    response = client.get("/admin/runs/statistics/")
    assert requests_sent.operations == [*OF_EVERY_PAGE, "TransactGetItems"]
    text = " ".join(Page(response).text.split()).replace("\xa0", " ")
    for part in (
        *("Series of invoices1", "Numbers given out1", "tickets2", "nightly worker-7", "import"),
        *("Stored 1 1.0 KB", "s3://b/late"),
        "Sign-ups per day, the last 30 days (UTC): 4 in total",
    ):
        assert part in text, part
    chart = response.content.decode()
    assert ('viewBox="0 0 30 4"' in chart, chart.count("<rect ")) == (True, 1)
    assert '<rect x="29.15" width="0.7" height="4"' in chart


def test_statistics_say_whether_a_process_works_on_the_oldest_unfinished_upload() -> None:
    client = let_in(make_staff())
    put_item("uploads", key="s3://b/done", state="done", updatedAt="2026-01-01T00:00:00+00:00")
    put_item("uploads", key="s3://b/new", state="uploading", updatedAt="2026-01-03T00:00:00+00:00")
    old = {"state": "uploading", "updatedAt": "2026-01-02T00:00:00+00:00"}

    for lease, text in (
        ({}, "no process works on it"),
        ({"lease": "w", "fence": 7}, "a process works on it, or died while it did"),
    ):
        put_item("uploads", key="s3://b/old", **old, **lease)
        assert found_by("statistics")["uploads"]["oldest_unfinished"]["url"] == "s3://b/old"
        assert text in Page(client.get("/admin/runs/statistics/")).text
    put_item("uploads", key="s3://b/damaged", state="uploading", updatedAt="2025 or so")
    found_by("statistics")
    assert "s3://b/damaged" in Page(client.get("/admin/runs/statistics/")).text


def test_statistics_have_the_largest_counters_and_the_locks_longest_without_renewal() -> None:
    for number in range(55):
        name = f"c{number:02}"
        put_item("counters", counterName=name, currentValue=number)
        lock = {"key": name, "ownerName": "we", "leaseDuration": "20000"}
        put_item("locks", **lock, renewedAt=f"2026-01-01T00:00:{number:02}+00:00")

    found = found_by("statistics")

    counters = found["counters"]
    locks = found["locks"]
    assert counters["shown"][0] == {"name": "c54", "value": 54}
    assert (len(counters["shown"]), counters["more"]) == (50, 5)
    assert locks["shown"][0]["name"] == "c00"
    assert (len(locks["shown"]), locks["more"]) == (50, locks["held"] - 50)
