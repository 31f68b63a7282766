"""Runs: one of a kind at a time, what they find, and what is shown of those that end badly."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from dynamo.client import send
from dynamo.exceptions import Unavailable
from locks.models import LockItem
from locks.registry import break_lock, look
from staff import runs
from staff.audit_log import Actor
from staff.exceptions import NotStaff
from staff.models import Report
from staff.reports import ReportView, Standing, reports_of
from staff.runs import KINDS, Kind
from tests.factories import make_user, stored_items
from tests.faults.kinds import Answer, DropReply
from tests.faults.proxy import FaultProxy
from tests.forks import in_a_child
from tests.invoice_factories import issued
from tests.pages import Page
from tests.staff.scenes import (
    acting,
    again,
    let_in,
    make_staff,
    recorded_actions,
    run_to_its_end,
    runs_under_way,
    stored_record,
    take_rights,
)
from tests.waiting import wait_until


class Work:
    """Work that goes on until it is told to end, or to say how far it is."""

    def __init__(self) -> None:
        self.begun = 0
        self.steps = threading.Semaphore(0)
        self.ended = threading.Event()

    def __call__(self, progress: Callable[[int], None]) -> dict[str, Any]:
        self.begun += 1
        while not self.ended.is_set():
            if self.steps.acquire(timeout=0.01):
                progress(7)
        progress(1)
        return {"answer": 42}


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    """A kind of run of this test's own, `waiting`; all its runs have ended afterwards."""
    doing = Work()
    monkeypatch.setitem(KINDS, "waiting", Kind("waiting", "Waiting", "Waits.", doing))
    monkeypatch.setattr(runs, "SAY_EVERY_SECONDS", 0)
    yield doing
    doing.ended.set()
    wait_until(lambda: not runs_under_way())


def started(actor: Actor | None = None) -> bool:
    return runs.start(KINDS["waiting"], actor or acting())


def shown(name: str = "waiting") -> ReportView:
    [view] = reports_of(name)
    return view


def standing() -> Standing:
    return shown().standing


def renewed(name: str, at: datetime) -> None:
    """Let the lock say that it was renewed then, as if nobody had done so since."""
    send(
        "UpdateItem",
        {
            "TableName": LockItem.table(),
            "Key": {"key": {"S": name}},
            "UpdateExpression": "SET renewedAt = :at",
            "ExpressionAttributeValues": {":at": {"S": at.isoformat()}},
        },
    )


def found_by(name: str) -> dict[str, Any]:
    """The result of a run of a kind, which is waited for."""
    view = run_to_its_end(name)
    assert view.standing is Standing.DONE
    assert view.result is not None
    return view.result


# One at a time ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_a_run_is_shown_while_it_runs_and_its_result_afterwards(work: Work) -> None:
    assert standing() is Standing.NEVER
    actor = acting()

    assert started(actor)
    assert standing() is Standing.RUNNING
    work.steps.release()
    wait_until(lambda: shown().report.seen == 7)
    work.ended.set()
    wait_until(lambda: standing() is Standing.DONE)

    view = shown()
    assert view.result == {"answer": 42}
    assert view.report is not None
    assert (view.report.seen, view.report.result_by_name) == (8, "grace")
    assert view.result_seconds > 0
    [entry] = stored_record()
    assert (entry["action"]["S"], entry["what"]["S"]) == ("startRun", "waiting")
    wait_until(lambda: look("staff#waiting").state.value == "released")


@pytest.mark.usefixtures("engine")
def test_of_many_starts_at_once_one_runs(work: Work, at_once: Callable[..., list[Any]]) -> None:
    actors = [acting(make_staff()) for _ in range(4)]

    outcomes = at_once(lambda n: started(actors[n]), 4)

    assert sorted(outcomes) == [False, False, False, True]
    assert not started(acting())
    wait_until(lambda: work.begun)
    assert work.begun == 1
    assert recorded_actions() == ["startRun"]


@pytest.mark.usefixtures("engine")
def test_the_result_before_stays_while_another_run_is_under_way(work: Work) -> None:
    work.ended.set()
    started()
    wait_until(lambda: standing() is Standing.DONE and not runs_under_way())
    work.ended.clear()

    started(acting(make_staff()))

    assert standing() is Standing.RUNNING
    assert shown().result == {"answer": 42}


@pytest.mark.usefixtures("engine")
def test_who_is_no_longer_staff_starts_nothing(work: Work) -> None:
    actor = acting()
    take_rights(actor.user)

    with pytest.raises(NotStaff):
        started(actor)

    assert standing() is Standing.NEVER
    assert (work.begun, stored_record()) == (0, [])
    assert started(acting(make_staff()))


def test_a_start_whose_reply_is_lost_is_one_start(work: Work, proxy: FaultProxy) -> None:
    actor = acting()
    proxy.plan("TransactWriteItems", DropReply())

    assert started(actor)

    wait_until(lambda: work.begun)
    assert recorded_actions() == ["startRun"]


def test_without_an_answer_nothing_is_started_and_the_lock_is_free(
    work: Work, proxy: FaultProxy, impatient: float
) -> None:
    actor = acting()
    proxy.plan("TransactWriteItems", Answer(500, "InternalServerError"), times=99)
    with pytest.raises(Unavailable):
        started(actor)
    proxy.forget()

    assert (work.begun, recorded_actions()) == (0, [])
    assert standing() is Standing.NEVER
    assert started(actor)


# Ends -------------------------------------------------------------------------------------------


def test_a_run_that_gets_no_answer_says_that_it_failed(proxy: FaultProxy, impatient: float) -> None:
    proxy.plan("Scan", Answer(500, "InternalServerError"), times=99)

    runs.start(KINDS["checkguards"], acting())
    wait_until(lambda: shown("checkguards").standing is Standing.FAILED)

    view = shown("checkguards")
    assert "DynamoDB gave no answer to Scan in time" in str(view.report and view.report.error)
    assert view.result is None
    client = let_in(make_staff())
    assert "The latest run failed." in Page(client.get("/staff/runs/checkguards/")).text
    wait_until(lambda: not runs_under_way())
    proxy.forget()
    assert found_by("checkguards")["wrong"] == 0


def test_the_end_is_written_once_dynamodb_answers_again(
    work: Work, proxy: FaultProxy, impatient: float
) -> None:
    started()
    wait_until(lambda: work.begun)
    refused = Answer(500, "InternalServerError")
    proxy.plan("UpdateItem", refused, times=5, when=lambda body: body["TableName"] == "reports")

    work.ended.set()

    wait_until(lambda: standing() is Standing.DONE)


@pytest.mark.usefixtures("engine")
def test_a_result_that_no_item_holds_is_a_failure(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(_progress: Any) -> dict[str, Any]:
        return {"much": "x" * 410_000}

    monkeypatch.setitem(KINDS, "waiting", Kind("waiting", "Waiting", "Waits.", too_much))

    started()

    wait_until(lambda: standing() is Standing.FAILED)


@pytest.mark.usefixtures("engine")
def test_a_run_whose_lock_is_broken_ends_without_a_result_and_another_can_be_started(
    work: Work,
) -> None:
    started()
    wait_until(lambda: work.begun)

    break_lock("staff#waiting")
    assert standing() is Standing.ENDED
    assert started(acting(make_staff()))
    wait_until(lambda: work.begun == 2)

    later = shown().report
    work.ended.set()
    wait_until(lambda: standing() is Standing.DONE)
    assert later is not None
    assert shown().report.run_id == later.run_id


@pytest.mark.usefixtures("engine")
def test_a_lease_that_is_given_back_at_the_end_of_the_process_ends_the_run(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = []
    lease_on = runs._lease_on

    def noted(kind: Kind) -> Any:
        leases.append(lease_on(kind))
        return leases[-1]

    monkeypatch.setattr(runs, "_lease_on", noted)
    started()
    wait_until(lambda: work.begun)

    leases[0].release()
    work.steps.release()

    wait_until(lambda: not runs_under_way())
    assert standing() is Standing.ENDED
    assert shown().result is None


@pytest.mark.usefixtures("engine")
def test_a_run_whose_process_was_killed_is_shown_as_silent_and_replaced(work: Work) -> None:
    actor = acting()

    def be_killed() -> None:
        assert started(actor)
        os._exit(9)

    assert in_a_child(be_killed) == 9
    assert standing() is Standing.RUNNING
    renewed("staff#waiting", datetime.now(UTC) - timedelta(minutes=1))
    assert standing() is Standing.SILENT
    page = Page(let_in(make_staff()).get("/staff/runs/waiting/"))
    assert "gives no sign of life" in page.text
    assert "Run now" in page.text

    assert started(acting(make_staff()))
    work.ended.set()
    wait_until(lambda: standing() is Standing.DONE)
    assert recorded_actions() == ["startRun"] * 2


@pytest.mark.usefixtures("engine")
def test_a_run_that_comes_back_from_the_dead_writes_nothing(work: Work) -> None:
    started()
    wait_until(lambda: work.begun)
    send(
        "UpdateItem",
        {
            "TableName": Report.table(),
            "Key": {"kind": {"S": "waiting"}},
            "UpdateExpression": "SET runId = :later",
            "ExpressionAttributeValues": {":later": {"S": "later"}},
        },
    )

    work.ended.set()

    wait_until(lambda: not runs_under_way())
    report = shown().report
    assert report is not None
    assert (report.run_id, report.state, report.result) == ("later", "running", None)


# What they find ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_the_check_of_guards_finds_what_the_command_finds() -> None:
    bob = make_user(username="bob")
    send("DeleteItem", {"TableName": "users", "Key": {"pk": {"S": "userName#bob"}}})
    orphan = {"pk": {"S": "userName#nobody"}, "owner": {"S": "gone"}}
    send("PutItem", {"TableName": "users", "Item": orphan})
    before = stored_items()

    found = found_by("checkguards")

    assert found["findings"]["missing"] == {
        "shown": [{"pk": bob.pk, "key": "userName#bob"}],
        "more": 0,
    }
    assert found["findings"]["orphaned"]["shown"] == [{"pk": "gone", "key": "userName#nobody"}]
    assert (found["users"], found["wrong"]) == (2, 2)
    after = stored_items()
    assert {key: after[key] for key in before} == before
    page = Page(let_in(again(bob)).get("/staff/runs/checkguards/"))
    assert "userName#nobody" not in page.text
    page = Page(let_in(make_staff()).get("/staff/runs/checkguards/"))
    assert "userName#nobody" in page.text
    assert "manage.py checkguards --repair" in page.text


@pytest.mark.usefixtures("engine")
def test_of_many_findings_the_first_are_shown_and_the_others_counted() -> None:
    for number in range(55):
        orphan = {"pk": {"S": f"userName#nobody{number:02}"}, "owner": {"S": "gone"}}
        send("PutItem", {"TableName": "users", "Item": orphan})

    found = found_by("checkguards")["findings"]["orphaned"]

    assert (len(found["shown"]), found["more"]) == (50, 5)
    page = Page(let_in(make_staff()).get("/staff/runs/checkguards/"))
    assert "And 5 more." in page.text


@pytest.mark.usefixtures("engine")
def test_the_check_of_invoices_finds_a_gap() -> None:
    bob = make_user()
    first, _second = issued(bob.pk), issued(bob.pk)
    key = {"series": {"S": first.series}, "number": {"N": "1"}}
    send("DeleteItem", {"TableName": "invoices", "Key": key})

    found = found_by("checkinvoices")

    assert (found["series"], found["issued"], found["wrong"]) == (1, 1, 1)
    [damage] = found["damaged"]["shown"]
    assert damage["gaps"] == {"shown": ["1"], "more": 0}
    assert first.series in Page(let_in(make_staff()).get("/staff/runs/checkinvoices/")).text


# Pages ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_the_page_asks_again_by_itself_only_while_a_run_is_under_way(work: Work) -> None:
    client: Client = let_in(make_staff())
    assert "Refresh" not in client.get("/staff/runs/waiting/")

    page = Page(client.post("/staff/runs/waiting/", follow=True))
    assert page.messages == ["The run has begun."]
    assert client.get("/staff/runs/waiting/")["Refresh"] == "5"
    assert "Refresh" not in client.get("/staff/runs/waiting/?still")
    page = Page(client.post("/staff/runs/waiting/", follow=True))
    assert page.messages == ["A run is under way already."]

    work.ended.set()
    wait_until(lambda: standing() is Standing.DONE)
    assert "Refresh" not in client.get("/staff/runs/waiting/")


@pytest.mark.usefixtures("engine")
def test_there_are_no_other_kinds() -> None:
    client = let_in(make_staff())

    assert client.get("/staff/runs/format-disks/").status_code == 404
    assert client.post("/staff/runs/format-disks/").status_code == 404
