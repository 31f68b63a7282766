"""`rewrite`: back-fills, renames, other types, conflicts; and guard items of a removed Unique."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dynamo import IntegerAttribute, Model, Reference, TextAttribute, Unique, casefolded
from dynamo.test import Tables
from sequences import check_series
from tests.commands import run
from tests.dynamo.bands import Singer
from tests.dynamo.test_references import Patient
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy
from tests.items import put_item, scanned
from tests.numbered import Ticket, ticket
from tests.requests import limit_pages

pytestmark = pytest.mark.usefixtures("engine")


class Guest(Model):
    class Meta:
        table_name = "tests-guests"

    email = TextAttribute()
    old_phone = TextAttribute(null=True, attr_name="tel")
    phone = TextAttribute(null=True)
    old_size = TextAttribute(null=True, attr_name="size")
    size = IntegerAttribute(null=True, attr_name="sizeNumber")
    country = TextAttribute(default="DE")
    visits = IntegerAttribute(default=0)
    host = Reference(f"{__name__}.Guest", null=True)
    doctor = Reference(Patient, null=True)

    unique_email = Unique("email", normalize=casefolded)


LABEL = Guest._meta.label


def complete(guest: Guest) -> dict[str, object]:
    """A rename, another type, and a default that is stored from now on."""
    guest.phone, guest.old_phone = guest.phone or guest.old_phone, None
    guest.size, guest.old_size = int(guest.old_size or guest.size or 0), None
    return {"country": guest.country}


def lowercase(guest: Guest) -> None:
    guest.email = guest.email.lower()


def same_email(guest: Guest) -> None:
    guest.email = "one@example.org"


def other_key(guest: Guest) -> None:
    guest.pk = "other"


_others: dict[str, list[Any]] = {}


def unknown_host(guest: Guest) -> None:
    guest.host = "nobody"


def unknown_both(guest: Guest) -> dict[str, object]:
    return {"host": "nobody", "doctor": "nowhere"}


def unknown_guest(_guest: Guest) -> None:
    Guest.get("nobody")


def count(guest: Guest) -> None:
    """Another call changes the item before it is saved, and perhaps deletes one."""
    if acts := _others.get(guest.pk):
        acts.pop()(Guest.get(guest.pk))
    guest.size = (guest.size or 0) + 1


@pytest.fixture(autouse=True)
def _little_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_pages(monkeypatch, 2)


def meanwhile(monkeypatch: pytest.MonkeyPatch, **acts: list[Any]) -> None:
    """Let other calls do these acts, by the item's key, before an item is saved."""
    monkeypatch.setattr(sys.modules[__name__], "_others", acts)


def make_guests(number: int = 7) -> None:
    for count in range(number):
        Guest.create(pk=str(count), email=f"G{count}@example.org", old_phone="1", old_size="7")
    for item in scanned(Guest.table()):
        if "country" in item:
            item.pop("country")
            put_item(Guest.table(), **item)


def rewrite(function: Any, *options: str) -> tuple[list[int], str, int]:
    """How many items were read, changed, unchanged, rejected; what was said; the exit code."""
    out, err, code = run("rewrite", LABEL, f"{__name__}.{function.__name__}", *options)
    return [*map(int, re.findall(r"\d+", out.splitlines()[-1] if out else ""))], err, code


def test_items_are_changed_once_with_their_guard_items() -> None:
    make_guests()

    assert rewrite(complete) == ([7, 7, 0, 0], "", 0)
    assert rewrite(complete) == ([7, 0, 7, 0], "", 0)
    assert rewrite(lowercase) == ([7, 7, 0, 0], "", 0)

    stored = Guest.find(email="G3@EXAMPLE.org").stored
    assert {name: stored.get(name) for name in ("email", "tel", "phone", "size", "sizeNumber")} == {
        "email": {"S": "g3@example.org"},
        "tel": None,
        "phone": {"S": "1"},
        "size": None,
        "sizeNumber": {"N": "7"},
    }
    assert stored["country"] == {"S": "DE"}
    assert run("checkunique", LABEL)[2] == 0


def test_a_dry_run_names_what_would_change_and_writes_nothing(dynamodb_tables: Tables) -> None:
    make_guests(2)
    before = dynamodb_tables.items()

    out, _err, code = run("rewrite", LABEL, f"{__name__}.complete", "--dry-run")

    assert sorted(out.splitlines()) == [
        "0  old_phone, old_size, phone, size, country",
        "1  old_phone, old_size, phone, size, country",
        "2 items read: 2 changed, 0 unchanged, 0 rejected (not saved).",
    ]
    assert (code, dynamodb_tables.items()) == (0, before)


@pytest.mark.parametrize(
    ("function", "said", "counts"),
    [
        (same_email, "Another guest has the email one@example.org.", [3, 1, 0, 2]),
        (other_key, "The pk of an item cannot be changed.", [3, 0, 0, 3]),
        (unknown_host, "host: there is no guest nobody.", [3, 0, 0, 3]),
        (unknown_both, "doctor: there is no patient nowhere.", [3, 0, 0, 3]),
        (unknown_guest, "There is no such item.", [3, 0, 0, 3]),
    ],
)
def test_a_change_that_breaks_a_rule_is_rejected_and_named(
    function: Any, said: str, counts: list[int]
) -> None:
    make_guests(3)

    found, err, code = rewrite(function)

    assert (found, code, err.count(said)) == (counts, 1, counts[3])
    assert "items could not be changed" in err


def test_items_that_others_change_meanwhile_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    make_guests(3)
    changes, deletes = lambda guest: guest.change(size=10), lambda guest: guest.delete()
    meanwhile(monkeypatch, **{"0": [changes], "1": [deletes]})

    assert rewrite(count) == ([3, 2, 1, 0], "", 0)
    assert sorted(guest.size or 0 for guest in Guest.scan()) == [1, 11]


def test_an_item_that_never_rests_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    make_guests(1)
    meanwhile(monkeypatch, **{"0": [lambda guest: guest.change(add={"visits": 1})] * 99})

    found, err, code = rewrite(count)

    assert (found, code) == ([1, 0, 0, 1], 1)
    assert "changed since it was read" in err


@pytest.mark.parametrize("after", [4, 5, 6])
def test_it_continues_where_it_ended(tmp_path: Path, proxy: FaultProxy, after: int) -> None:
    make_guests()
    left = iter(range(after))
    proxy.plan(
        "Scan",
        Answer(400, "AccessDeniedException"),
        times=99,
        when=lambda _body: next(left, None) is None,
    )
    state = tmp_path / "state"

    assert rewrite(complete, "--state", str(state))[2] == 1
    proxy.forget()
    assert "of another call" in rewrite(lowercase, "--state", str(state))[1]
    found, err, code = rewrite(complete, "--state", str(state))

    assert (err, code, state.exists()) == ("", 0, False)
    assert found[0] <= 7
    assert all(guest.phone == "1" for guest in Guest.scan())


@pytest.mark.fault_of("moto", "counts half a unit for an update")
def test_the_rate_limits_write_units(monkeypatch: pytest.MonkeyPatch) -> None:
    make_guests(4)
    slept: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=slept.append)
    monkeypatch.setattr("dynamo.management.commands.rewrite.time", clock)

    rewrite(complete, "--rate", "2")

    # 4 changes of 1 unit take two seconds from the beginning.
    assert max(slept) == 2


@pytest.mark.parametrize("function", ["absent.function", "tests.dynamo.test_rewrite.absent", "x"])
def test_a_function_that_does_not_exist_is_named(function: str) -> None:
    out, err, code = run("rewrite", LABEL, function)

    assert (out, err.count("\n"), code) == ("", 1, 1)


@pytest.mark.parametrize("model", [Guest, Singer], ids=["own table", "guard table"])
def test_the_guard_items_of_a_removed_unique_are_deleted(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_guests(2)
    Singer.create(number="1", name="Ann", site="s")
    name = model._unique_keys[0].names[0]
    label = model._meta.label
    assert f"declares Unique({name})" in run("checkunique", label, "--removed", name)[1]
    kept = model._unique_keys[1:]
    guards = 2 if model is Guest else 1

    with monkeypatch.context() as patch:
        patch.setattr(model, "_unique_keys", kept)
        out, _err, code = run("checkunique", label, "--removed", name)

    assert (out, code) == (f"{guards} guard{'s' * (guards > 1)} deleted.\n", 0)
    assert f"{guards} missing" in run("checkunique", label)[0]
    assert len(list(model.scan())) == guards


def close(item: Ticket) -> None:
    item.subject = "Closed"


def test_numbered_items_are_changed_and_their_guard_items_are_not() -> None:
    for number in range(3):
        ticket("one", request_id=f"r{number}")

    out, err, code = run("rewrite", Ticket._meta.label, f"{__name__}.close")

    assert (out, err, code) == ("3 items read: 3 changed, 0 unchanged, 0 rejected.\n", "", 0)
    assert [item.subject for item in Ticket.query("one")] == ["Closed"] * 3
    assert [report.is_sound for report in check_series(Ticket)] == [True]
