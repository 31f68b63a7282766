"""`dumpdata`, `loaddata` and `flush`: what is dumped and loaded again is what was stored."""

import gzip
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pynamodb.attributes import BinaryAttribute, UnicodeSetAttribute

from dynamo import DateTimeAttribute, IntegerAttribute, Model, TextAttribute, Unique, test
from dynamo.client import bulk
from dynamo.client.sending import send
from dynamo.management.commands import loaddata
from dynamo.test import Tables
from dynamo.wire.values import canonical, digest_of, encoded
from locks import claim_once
from locks.models import LockItem
from sequences import last_value, next_values, start_series
from sequences.check import check_series
from sequences.models import Counter
from tests.commands import run
from tests.dynamo.bands import Band, Singer
from tests.dynamo.test_references import Appointment, Patient
from tests.faults.kinds import Answer, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.items import Item
from tests.numbered import Entry, Ticket, entry, ticket
from tests.requests import limit_pages, told

pytestmark = pytest.mark.usefixtures("engine")


class Room(Model):
    """It has a key of its own, values of many types, and request ids."""

    class Meta:
        table_name = "tests-dumped-rooms"

    house = TextAttribute(hash_key=True)
    number = IntegerAttribute(range_key=True)
    keys = UnicodeSetAttribute(null=True)
    plan = BinaryAttribute(legacy_encoding=False, null=True)
    built = DateTimeAttribute(null=True)
    guests = IntegerAttribute(default=0)

    unique_plan = Unique("plan")


MODELS = (Band, Singer, Room, Ticket, Entry)
LABELS = [*(model._meta.label for model in MODELS), "sequences.Counter"]


@pytest.fixture(autouse=True)
def _little_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_pages(monkeypatch, 2)
    monkeypatch.setattr(loaddata, "BATCH", 3)


@pytest.fixture
def stored(dynamodb_tables: Tables) -> Callable[[], dict[str, list[Item]]]:
    """All that is stored, without what each write replaces."""

    def read() -> dict[str, list[Item]]:
        return {
            table: sorted(map(lasting, items), key=digest_of)
            for table, items in dynamodb_tables.items().items()
            if table != LockItem.table()
        }

    def lasting(item: Item) -> Item:
        return {
            name: canonical(typed)
            for name, typed in item.items()
            if name not in {"version", "writeId"}
        }

    return read


def make_items() -> None:
    for number in range(5):
        Band.create(pk=f"b{number}", name=f"Ärzte {number}", site=f"s{number}", label="X" * number)
        Singer.create(number=str(number), name=f"Nena {number}", site=f"s{number}")
        Room.create(
            house="red",
            number=number,
            plan=bytes([number, 255]),
            keys={"a", "b"},
            request_id=f"r{number}",
        )
        ticket("one", request_id=f"t{number}", photo=b"\0\xff", tags={"x"}, details={"y": "z"})
        entry("days", f"2026-01-0{number + 1}")
    start_series(Ticket, "two", at=31)
    ticket("two")
    Ticket.get("one", 2).change(subject="Mended")
    next_values(7, "visits")
    claim_once("nightly")


def dump(file: Path, *options: str) -> list[dict[str, Any]]:
    out, err, code = run("dumpdata", *LABELS, "-o", str(file), *options)
    assert (out, err, code) == ("", "", 0)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def load(*arguments: object) -> tuple[int, int, int, str]:
    """How many items were read, stored and rejected, and what was said of these."""
    out, err, code = run("loaddata", *map(str, arguments))
    read, done, rejected = map(int, re.findall(r"\d+", out))
    assert code == bool(rejected)
    return read, done, rejected, err


def empty_tables() -> None:
    """As `flush`, which looks at each table of the suite in several segments."""
    test.tables_of_process().empty()


def test_what_was_dumped_flushed_and_loaded_is_as_it_was(
    tmp_path: Path, stored: Callable[[], dict[str, list[Item]]]
) -> None:
    make_items()
    before, file = stored(), tmp_path / "all.jsonl"
    kept = Room.get("red", 1)

    lines = dump(file)
    assert run("flush", "--no-input")[2] == 0
    assert not any(stored().values())
    read, done, rejected, _said = load(file)

    assert (read, rejected) == (len(lines), 0)
    # An item may be loaded before the counter of its series, and brings it then.
    assert len(lines) - 3 <= done <= len(lines)
    assert stored() == before
    # The version is new, so a copy that was read before cannot be written.
    with pytest.raises(Room.Stale):
        kept.change(guests=9)
    assert load(file)[1:3] == (0, 0)
    assert stored() == before
    assert [report.is_sound for report in check_series(Ticket)] == [True, True]
    assert run("checkunique", Singer._meta.label)[2] == 0
    # Numbers go on, and request ids are remembered, with the contents that they had.
    assert ticket("one").number == 6
    assert (
        ticket("one", request_id="t1", photo=b"\0\xff", tags={"x"}, details={"y": "z"}).number == 2
    )
    assert next(iter(next_values(1, "visits"))) == 8
    assert Room.create(
        house="red", number=2, plan=bytes([2, 255]), keys={"a", "b"}, request_id="r2"
    ) == Room.get("red", 2)


def test_an_item_that_contradicts_a_stored_one_is_rejected_and_named(tmp_path: Path) -> None:
    make_items()
    file = tmp_path / "all.jsonl"
    dump(file)
    Band.get("b1").delete()
    Band.create(pk="other", name="ÄRZTE 1", site="o")
    Room.get("red", 3).change(guests=2)
    next_values(2, "visits")
    flush_guard = Ticket.get("one", 1)
    flush_guard.change(subject="Later")

    _read, done, rejected, said = load(file)

    assert (done, rejected) == (0, 4)
    for text in ("name Ärzte 1", "a room with this key", "a ticket with this key", "counter"):
        assert text in said
    assert (Room.get("red", 3).guests, last_value("visits")) == (2, 9)


def test_items_are_loaded_before_those_that_they_refer_to_and_without_them(tmp_path: Path) -> None:
    ann, bob = (Patient.create(name=name) for name in ("Ann", "Bob"))
    ann.change(parent=bob)
    visits = [Appointment.create(patient=ann, payer=bob), Appointment.create(patient=bob)]
    bob.delete()
    file = tmp_path / "all.jsonl"
    labels = [Appointment._meta.label, Patient._meta.label]
    assert run("dumpdata", *labels, "-o", str(file))[2] == 0
    empty_tables()

    assert load(file) == (3, 3, 0, "")
    assert load(file) == (3, 0, 0, "")
    assert {visit.pk: visit.patient for visit in Appointment.scan()} == {
        visit.pk: visit.patient for visit in visits
    }
    assert Patient.get(ann.pk).parent == bob.pk


def test_a_series_is_dumped_up_to_the_number_of_the_beginning(tmp_path: Path) -> None:
    ticket("one")
    ticket("one")

    def meanwhile(operation: str, request: dict[str, Any], **_signal: object) -> None:
        scans.append(operation == "Scan" and request["TableName"] == Counter.table())
        # When all segments of the counters are read, and nothing of the tickets.
        if scans[-1] and sum(scans) == bulk.SEGMENTS:
            ticket("one")
            ticket("new")

    scans: list[bool] = []
    with told(meanwhile):
        _out, err, code = run("dumpdata", *LABELS, "-o", str(tmp_path / "all.jsonl"))
    # Two tickets, each with its guard item.
    assert (code, err.startswith("4 items of tests.numbered.Ticket are left out: ")) == (0, True)
    empty_tables()
    load(tmp_path / "all.jsonl")

    assert [(report.series, report.last, report.is_sound) for report in check_series(Ticket)] == [
        ("one", 2, True)
    ]


@pytest.mark.parametrize("compressed", [False, True])
def test_an_export_of_dynamodb_to_s3_is_loaded(
    tmp_path: Path, stored: Callable[[], dict[str, list[Item]]], *, compressed: bool
) -> None:
    make_items()
    before = stored()
    files = {}
    for model in (*MODELS, "Counter"):
        label = "sequences.Counter" if isinstance(model, str) else model._meta.label
        table = "counters" if isinstance(model, str) else model.table()
        answer = send("Scan", {"TableName": table})
        # As DynamoDB writes it: whole tables, with guard items.
        text = "".join(f'{{"Item":{encoded(item)}}}\n' for item in answer["Items"])
        files[label] = tmp_path / f"{label}.json{'.gz' * compressed}"
        with (gzip.open if compressed else open)(files[label], "wt", encoding="utf-8") as file:
            file.write(text)  # type: ignore[arg-type]
    empty_tables()

    for label, file in files.items():
        assert load("--model", label, file)[2] == 0

    assert stored() == before
    assert "names no model: give --model" in run("loaddata", str(files["sequences.Counter"]))[1]


@pytest.mark.parametrize("after", [0, 4, 14])
def test_an_interrupted_dump_and_load_continue(
    tmp_path: Path, proxy: FaultProxy, stored: Callable[[], dict[str, list[Item]]], after: int
) -> None:
    make_items()
    before, file, state = stored(), tmp_path / "all.jsonl", str(tmp_path / "state")
    options = ("-o", str(file), "--state", state)

    def fails(operation: str) -> None:
        count = itertools.count()
        fault = Answer(400, "AccessDeniedException")
        proxy.plan(operation, fault, times=1_000, when=lambda _body: next(count) >= after)

    for _time in range(2):
        fails("Scan")
        assert run("dumpdata", *LABELS, *options)[2] == 1
        proxy.forget()
        with file.open("a") as torn:
            torn.write('{"model": ')
        # What is issued once the counters are written is left out.
        if Path(state).exists():
            ticket("one")
            ticket("three")
    assert run("dumpdata", *LABELS, *options)[2] == 0
    empty_tables()
    fails("PutItem")
    assert run("loaddata", str(file), "--state", state)[2] == 1
    proxy.forget()
    assert "is of another call" in run("loaddata", str(file), str(file), "--state", state)[1]
    _out, err, code = run("loaddata", str(file), "--state", state)

    assert (err, code, Path(state).exists()) == ("", 0, False)
    assert stored() == before


def test_a_dump_that_fails_leaves_the_earlier_file_as_it_was(
    tmp_path: Path, proxy: FaultProxy
) -> None:
    make_items()
    file, link = tmp_path / "all.jsonl", tmp_path / "latest"
    file.write_text("before")
    link.symlink_to(file)
    count = itertools.count()
    fault = Answer(400, "AccessDeniedException")
    proxy.plan("Scan", fault, times=1_000, when=lambda _body: next(count) >= 14)

    assert run("dumpdata", *LABELS, "-o", str(link))[2] == 1

    assert (file.read_text(), {*tmp_path.iterdir()}) == ("before", {file, link})
    proxy.forget()
    assert run("dumpdata", *LABELS, "-o", str(link))[2] == 0
    assert (file.read_text().count("\n") > 14, link.is_symlink()) == (True, True)
    assert run("dumpdata", *LABELS, "-o", "/dev/null")[2] == 0


def items_in(dump: str) -> list[str]:
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in dump.splitlines())


def test_of_two_dumps_into_one_file_at_once_the_later_one_is_whole(
    tmp_path: Path, proxy: FaultProxy
) -> None:
    make_items()
    file, ended = tmp_path / "all.jsonl", []

    def dump() -> None:
        ended.append(run("dumpdata", *LABELS, "-o", str(file))[2])

    proxy.plan("Scan", Meanwhile(dump))
    dump()

    assert ended == [0, 0]
    assert {*tmp_path.iterdir()} == {file}
    whole = run("dumpdata", *LABELS)[0]
    assert items_in(file.read_text()) == items_in(whole)


def test_a_dump_continues_only_in_its_own_file(tmp_path: Path, proxy: FaultProxy) -> None:
    make_items()
    file, state = tmp_path / "all.jsonl", str(tmp_path / "state")
    count = itertools.count()
    fault = Answer(400, "AccessDeniedException")
    proxy.plan("Scan", fault, times=1_000, when=lambda _body: next(count) >= 14)
    assert run("dumpdata", *LABELS, "-o", str(file), "--state", state)[2] == 1
    proxy.forget()
    before = file.read_text()

    other = run("dumpdata", *LABELS, "-o", str(tmp_path / "other"), "--state", state)
    file.write_text("")
    lost = run("dumpdata", *LABELS, "-o", str(file), "--state", state)

    assert before
    assert ("is of another call" in other[1], other[2]) == (True, 1)
    assert ("has lost a part. Delete" in lost[1], lost[2], file.read_text()) == (True, 1, "")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("dumpdata locks", "A dump of DynamoDB cannot have locks."),
        ("dumpdata no.Model", "A dump of DynamoDB cannot have no.Model."),
        ("dumpdata sequences --indent 2", "written whole, as JSON lines"),
        ("dumpdata sequences --natural-primary", "written whole, as JSON lines"),
        ("dumpdata sequences --format xml", "written whole, as JSON lines"),
        ("dumpdata sequences --state x", "--state needs --output"),
        ("loaddata absent.json", "There is no file absent.json."),
        ("loaddata {}", "is not a file of items"),
        ("loaddata {}/items.jsonl --exclude a.B", "loaded from the files that are named"),
        ("loaddata {}/items.jsonl", "items.jsonl:2: "),
        ("loaddata {}/changes.json", "changes.json:1: 'Item'"),
        ("flush", "Nothing was deleted"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(command: str, said: str, tmp_path: Path) -> None:
    ticket("one")
    (tmp_path / "items.jsonl").write_text(
        '{"model": "sequences.counter", "Item": {"counterName": {"S": "a"}}}\nno JSON\n'
    )
    (tmp_path / "changes.json").write_text('{"Keys": {}, "NewImage": {}}\n')

    _out, err, code = run(*command.replace("{}", str(tmp_path)).split())

    assert (code, said in err, err.count("\n")) == (1, True, 1), err
    assert last_value("a") is None
    assert Ticket.get("one", 1).subject == "Broken door"


@pytest.mark.site
def test_accounts_and_invoices_are_loaded_with_what_happened_to_them(
    tmp_path: Path, stored: Callable[[], dict[str, list[Item]]]
) -> None:
    from invoices.store.settlement import mark_paid, void
    from tests.factories import make_user
    from tests.invoice_factories import DAY, issued

    user = make_user(username="ann", email="ann@example.org", phone_number="+49 30 1")
    for _number in range(3):
        invoice = issued(user.pk)
    void(user.pk, "2026-000001", "wrong")
    mark_paid(user.pk, "2026-000002", DAY)
    before, file = stored(), str(tmp_path / "site.jsonl")
    apps = ("accounts", "invoices", "staff", "admin", "uploads")

    assert run("dumpdata", *apps, "-o", file)[1:] == ("", 0)
    empty_tables()
    load(file)

    assert stored() == before
    assert run("checkguards")[2] == run("checkinvoices")[2] == 0
    assert issued(user.pk).number == invoice.number + 1
