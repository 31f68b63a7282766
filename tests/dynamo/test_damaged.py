"""Damaged items: lists leave out or mark them, `checkitems` deletes them, `check` warns."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.test import Client

from dynamo import DamagedItem, GlobalSecondaryIndex, IntegerAttribute, Model, TextAttribute, Unique
from dynamo.admin import LogEntry, list_entries
from dynamo.client.plain import PlainModel, all_models
from dynamo.tables.definitions import Table, all_tables
from tests.commands import run
from tests.dynamo.desk.models import Badge, Customer, Locker, Seat
from tests.faults.kinds import Answer, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.items import insert, overwrite, scanned, stored_items
from tests.numbered import Ticket
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

#: A value that no attribute of a form has.
BROKEN: dict[str, Any] = {"L": []}


class Meter(Model):
    class ByPlace(GlobalSecondaryIndex["Meter"]):
        place = TextAttribute(hash_key=True)
        number = IntegerAttribute(range_key=True)

    class Meta:
        table_name = "tests-meters"

    street = TextAttribute(hash_key=True)
    number = IntegerAttribute(range_key=True)
    place = TextAttribute(default="Rome")
    name = TextAttribute()
    level = IntegerAttribute(default=0)

    by_place = ByPlace()
    unique_name = Unique("name", searchable=True)


#: What reads several items, and whether its result names those that it leaves out.
READS: dict[str, tuple[bool, Callable[..., Any]]] = {
    "page": (True, lambda **options: Meter.page("a", **options)),
    "page of an index": (True, lambda **options: Meter.by_place.page("Rome", **options)),
    "search": (True, lambda **options: Meter.search("name", "no", **options)),
    "query": (False, lambda **options: Meter.query("a", **options)),
    "a part": (False, lambda **options: Meter.query("a", attributes_to_get=["level"], **options)),
    "query of an index": (False, lambda **options: Meter.by_place.query("Rome", **options)),
    "scan": (False, lambda **options: Meter.scan(**options)),
    "scan of an index": (False, lambda **options: Meter.by_place.scan(**options)),
    "batch_get": (
        False,
        lambda **options: Meter.batch_get([("a", n) for n in (1, 2, 3)], **options),
    ),
}


@pytest.fixture
def meters(engine: str) -> None:
    """Three meters, of which the second is damaged."""
    for number in (1, 2, 3):
        Meter.create(street="a", number=number, name=f"no {number}")
    overwrite(Meter.get("a", 2), level=BROKEN)


def numbers(items: Iterable[Any]) -> list[Any]:
    return sorted(item if isinstance(item, str) else str(item.number) for item in items)


@pytest.mark.usefixtures("meters")
@pytest.mark.parametrize(("names_them", "read"), READS.values(), ids=READS)
def test_a_read_of_several_items_names_the_damaged_ones_and_returns_the_others(
    names_them: bool, read: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    if names_them:
        page = read()
        assert numbers(page) == ["1", "3"]
        assert [(item.key, item.attribute) for item in page.damaged] == [("a#2", "level")]
        assert "'a#2' of tests-meters is damaged: level" in caplog.text
    else:
        with pytest.raises(DamagedItem, match=r"'a#2' of tests-meters is damaged: level"):
            list(read())

    marked = read(damaged=lambda stored, error: f"{stored['number']['N']} {error.attribute}")
    assert numbers(marked) == ["1", "2 level", "3"]
    assert numbers(read(damaged=lambda _stored, _error: None)) == ["1", "3"]


@pytest.mark.usefixtures("meters")
def test_results_are_read_on_after_a_damaged_item() -> None:
    results = Meter.query("a")
    assert next(results).number == 1
    with pytest.raises(DamagedItem):
        next(results)
    assert [result.number for result in results] == [3]

    left_out = Meter.query("a", limit=2, damaged=lambda _stored, _error: None)
    assert [item.number for item in left_out] == [1]
    assert left_out.last_evaluated_key == {"street": {"S": "a"}, "number": {"N": "2"}}


@pytest.mark.usefixtures("project")
def test_a_list_shows_the_others_and_names_the_damaged_item(client: Client) -> None:
    for name in ("ann", "bob"):
        Customer.create(email=f"{name}@example.org", club="chess")
    ann = Customer.find(email="ann@example.org")
    overwrite(ann, visits=BROKEN)

    shown = client.get("/clubs/chess/")

    assert (shown.status_code, "bob@example.org" in shown.text) == (200, True)
    assert f"cannot be shown: {ann.pk}" in shown.text


def test_a_damaged_entry_of_the_audit_log_is_listed_as_such() -> None:
    for number in (1, 2):
        entry = LogEntry("2026-11", f"2026-11-2{number}#x", action="add", by="1", by_name="Ann")
        insert(entry)
    overwrite(entry, reason=BROKEN)

    entries = list_entries("2026-11", limit=1)

    assert "is damaged: reason" in str(entries[0].label)
    assert [action.label for action in list_entries("2026-11", before=entries.next).items] == [
        "Added"
    ]


#: Of all apps, and of tests.
MODELS = list(dict.fromkeys(all_models()))


def damage_of(model: type[PlainModel], item: dict[str, Any]) -> str | None:
    """The attribute by which the stored item is damaged."""
    with suppress(model.DoesNotExist):
        try:
            model.from_raw_data(item)
        except DamagedItem as error:
            return error.attribute
    return None


@pytest.mark.parametrize("kind", ["S", "N", "B", "SS", "NS", "BS", "BOOL", "NULL", "L", "M"])
def test_a_value_of_any_type_is_read_or_is_damage(kind: str) -> None:
    values = {"S": "x", "N": "1.5", "B": b"x", "BOOL": True, "NULL": True, "M": {"x": {"S": "y"}}}
    typed = {kind: values.get(kind, [values.get(kind[0], {"S": "x"})])}
    for model in MODELS:
        for _name, stored_name, _attribute in model._named_attributes():
            assert damage_of(model, {stored_name: typed}) in {None, stored_name}


# checkitems ---------------------------------------------------------------------------------------

#: A stored item of each kind of key, and how the command shows this key.
KEYS: dict[str, tuple[Callable[[], Model], list[str]]] = {
    "text": (lambda: Badge.create(code="-a b", email="ann@example.org"), ["-a b"]),
    "text and number": (lambda: Seat.create(hall="red", row=-1), ["red", "-1"]),
    "decimal and binary": (
        lambda: Locker.create(floor=Decimal("1.50"), code=b"\x00\xff", owner="Ann"),
        ["1.5", "00ff"],
    ),
}


def damage(item: Model) -> None:
    """Give one attribute, which is not unique, a value that it cannot have."""
    taken = {name for unique in item._unique_keys for name in unique.stored_names}
    others = {str(attribute.attr_name) for attribute in item.get_attributes().values()} - taken
    overwrite(item, **{min(others - item._fixed, default="version"): BROKEN})


@pytest.mark.parametrize(("make", "key"), KEYS.values(), ids=KEYS)
@pytest.mark.usefixtures("project")
def test_checkitems_lists_damaged_items_and_deletes_one_with_its_guard_items(
    make: Callable[[], Model], key: list[str]
) -> None:
    item = make()
    model = item._meta.label
    assert run("checkitems", model) == ("", "", 0)
    damage(item)

    out, err, code = run("checkitems", model, "--json")
    [found] = map(json.loads, out.splitlines())
    assert (found["key"], code) == (key, 1)
    assert err == f"CommandError: 1 item of {item.table()} cannot be read.\n"
    assert found["attribute"] in run("checkitems", model.lower())[0]
    listed = ["checkitems", model, f"--delete={key[0]}", *key[1:]]
    if len(key) > 1:
        listed = ["checkitems", model, "--delete", *key]
    assert run(*listed, stdin="no\n")[1:] == ("CommandError: Nothing was deleted.\n", 1)
    assert run(*listed, "--no-input") == ("The item was deleted.\n", "", 0)

    assert run(*listed, "--no-input")[1] == "CommandError: There is no such item.\n"
    assert run("checkitems", model) == ("", "", 0)
    assert scanned(item.table()) == []
    assert item.create(**{name: getattr(item, name) for name in item._given})


@pytest.mark.usefixtures("project")
def test_a_unique_value_that_cannot_be_read_stays_taken_and_the_command_says_how_to_free_it() -> (
    None
):
    customer = Customer.create(email="ann@example.org", club="chess", card="A")
    overwrite(customer, email=BROKEN)

    out, _err, code = run("checkitems", "desk.Customer", "--delete", customer.pk, "--no-input")

    assert (code, "run manage.py checkunique desk.Customer --repair" in out) == (0, True)
    assert list(stored_items(Customer.table())) == ["email#ann@example.org"]
    assert run("checkunique", "desk.Customer", "--repair")[2] == 0
    assert stored_items(Customer.table()) == {}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", ["visits", "notes", "version", "added", "email"])
def test_an_item_that_changed_since_it_was_shown_is_not_deleted(
    name: str, proxy: FaultProxy
) -> None:
    customer = Customer.create(email="ann@example.org", club="chess")
    overwrite(customer, visits=BROKEN)
    value = {"N": "7"} if name in {"visits", "version"} else {"S": "bob@example.org"}
    proxy.plan("TransactWriteItems", Meanwhile(lambda: overwrite(customer, **{name: value})))

    _out, err, code = run("checkitems", "desk.Customer", "--delete", customer.pk, "--no-input")

    assert code == (1 if name != "added" else 0)
    if code:
        assert "changed since it was read. Nothing was written." in err
        assert {customer.pk, "email#ann@example.org"} <= stored_items(Customer.table()).keys()


REFUSED = {
    ("desk.Customer", "1"): "not damaged",
    ("desk.Customer", "email#ann@example.org"): "not damaged",
    ("desk.Customer", "2"): "no such item",
    ("desk.Customer", "1", "2"): "not a key (pk)",
    ("desk.Seat", "red", "first"): "not a key (hall, row)",
    ("desk.Locker", "1", "zz"): "not a key (floor, code)",
    ("desk.Shift", "1"): "Only its app knows",
    (Ticket._meta.label, "2026", "1"): "never deleted",
}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_checkitems_refuses_to_delete_what_it_does_not_list(arguments: tuple[str, ...]) -> None:
    Customer.create(pk="1", email="ann@example.org", club="chess")
    before = stored_items(Customer.table())
    model, *key = arguments

    _out, err, code = run("checkitems", model, "--delete", *key, "--no-input")

    assert (code, REFUSED[arguments] in err) == (1, True)
    assert stored_items(Customer.table()) == before


# check --tag dynamodb -----------------------------------------------------------------------------


@pytest.fixture
def few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_badges() -> list[Table]:
        return [table for table in all_tables() if table.name == Badge.table()]

    monkeypatch.setattr("dynamo.tables.checks.all_tables", of_badges)


def warnings() -> Iterator[CheckMessage]:
    found = run_checks(tags=["dynamodb"], include_deployment_checks=True)
    return (item for item in found if item.id == "dynamo.W004")


@pytest.mark.usefixtures("few_tables")
def test_check_reads_one_page_of_a_table_and_warns_of_damaged_items(
    requests_sent: Requests,
) -> None:
    Badge.create(code="good", email="ann@example.org")
    assert list(warnings()) == []
    assert requests_sent.operations.count("Scan") == 1
    overwrite(Badge.create(code="bad"), version=BROKEN)

    [warning] = warnings()

    assert "The item 'bad' of tests-desk-badges is damaged: version." in warning.msg
    assert "checkitems" in str(warning.hint)


@pytest.mark.usefixtures("few_tables")
def test_check_warns_if_it_may_not_read_the_items(proxy: FaultProxy) -> None:
    proxy.plan("Scan", Answer(400, "AccessDeniedException"))

    [warning] = warnings()

    assert "were not checked: DynamoDB refused Scan: AccessDeniedException" in warning.msg
