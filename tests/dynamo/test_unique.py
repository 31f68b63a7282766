"""Unique attributes of any model: guards in its own table or in a second one, two, three, more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pynamodb.attributes import UnicodeAttribute

from dynamo.client.sending import send
from dynamo.exceptions import Refused
from dynamo.models import Model
from dynamo.tables import all_tables
from dynamo.transactions import Transaction
from dynamo.unique.attributes import UniqueAttributes
from tests.factories import stored_items
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


class Band(Model):
    """Its guards stand beside it: three attributes, of which the third may be absent."""

    class Meta:
        table_name = "tests-bands"

    pk = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(attr_name="bandName")
    site = UnicodeAttribute()
    label = UnicodeAttribute(null=True)

    unique: UniqueAttributes[Band] = UniqueAttributes(
        name=str.casefold, site=str.casefold, label=str.upper
    )


class Singer(Model):
    """Its guards stand in a second table, whose key has another name than its own."""

    class Meta:
        table_name = "tests-singers"

    number = UnicodeAttribute(hash_key=True, attr_name="singerNumber")
    name = UnicodeAttribute(attr_name="singerName")
    site = UnicodeAttribute()
    label = UnicodeAttribute(null=True)

    unique: UniqueAttributes[Singer] = UniqueAttributes(
        table="tests-singer-guards", name=str.casefold, site=str.casefold, label=str.upper
    )


class Record(Model):
    """Two declarations: its title stands beside it, its code in a second table."""

    class Meta:
        table_name = "tests-records"

    pk = UnicodeAttribute(hash_key=True)
    title = UnicodeAttribute()
    code = UnicodeAttribute()

    titles: UniqueAttributes[Record] = UniqueAttributes(title=str.casefold)
    codes: UniqueAttributes[Record] = UniqueAttributes(table="tests-record-codes", code=str.upper)


class Taken(Exception):
    """Another item holds the value."""


class Stale(Exception):
    """The item is not there."""


both_forms = pytest.mark.parametrize("model", [Band, Singer])


def key_of(item: Any) -> Any:
    return type(item)._hash_key_attribute()


def taken(name: str, value: str) -> Taken:
    return Taken(name, value)


def insert(item: Any) -> Any:
    with Transaction() as write:
        write.put(item, key_of(item).does_not_exist(), otherwise=Stale())
        type(item).unique.claim(write, item, taken)
    return item


def change(item: Any, **values: Any) -> None:
    with Transaction() as write:
        changes = item.set_or_remove(values)
        write.update(item, changes, key_of(item).exists(), otherwise=Stale())
        type(item).unique.move(write, item, values, taken)
    for name, value in values.items():
        setattr(item, name, value)


def remove(item: Any) -> None:
    with Transaction() as write:
        write.delete(item, key_of(item).exists(), otherwise=Stale())
        type(item).unique.free(write, item)


def guards(model: Any) -> dict[str, str]:
    """Whom each guard of a model's belongs to."""
    items = stored_items(model.unique.guard_model.table()) if model is Singer else stored_of(Band)
    return {key: item["owner"]["S"] for key, item in items.items() if "#" in key}


def stored_of(model: Any) -> dict[str, dict[str, Any]]:
    """Every item of a model's table by its key, guards included where they stand there."""
    (key_name,) = model.key_attribute_names()
    items = send("Scan", {"TableName": model.table()})["Items"]
    return {item[key_name]["S"]: item for item in items}


def put_guard(model: Any, key: str, owner: str, **more: str) -> None:
    """Write a guard past all rules, as a hand would."""
    item = {name: {"S": value} for name, value in {"pk": key, "owner": owner, **more}.items()}
    send("PutItem", {"TableName": model.unique.guard_model.table(), "Item": item})


def drop_guard(model: Any, key: str) -> None:
    table = model.unique.guard_model.table()
    send("DeleteItem", {"TableName": table, "Key": {"pk": {"S": key}}})


@both_forms
def test_an_item_gets_one_guard_for_each_value_in_one_transaction(
    model: Any, requests_sent: Requests
) -> None:
    insert(model("1", name="The Who", site="Who.example", label="Emi"))

    assert requests_sent.operations == ["TransactWriteItems"]
    kind = "bandName" if model is Band else "singerName"
    assert guards(model) == {f"{kind}#the who": "1", "site#who.example": "1", "label#EMI": "1"}


@both_forms
def test_a_value_that_is_absent_needs_no_guard(model: Any) -> None:
    insert(model("1", name="The Who", site="who.example"))
    insert(model("2", name="The Band", site="band.example"))

    assert not [key for key in guards(model) if key.startswith("label#")]


@both_forms
@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"name": "THE WHO"}, ["name"]),
        ({"label": "emi"}, ["label"]),
        ({"name": "the who", "site": "WHO.example", "label": "eMi"}, ["name", "site", "label"]),
    ],
)
def test_values_that_are_held_are_refused_each_with_its_error(
    model: Any, values: dict[str, str], names: list[str]
) -> None:
    insert(model("1", name="The Who", site="who.example", label="EMI"))
    before = stored_of(model), guards(model)

    with pytest.raises((Taken, Refused)) as refused:
        insert(model("2", **({"name": "Other", "site": "other.example"} | values)))

    error = refused.value
    errors = error.exceptions if isinstance(error, Refused) else (error,)
    assert sorted(each.args for each in errors) == sorted((name, values[name]) for name in names)
    assert (stored_of(model), guards(model)) == before


@both_forms
def test_a_change_moves_the_guards_of_what_changed_and_no_other(model: Any) -> None:
    band = insert(model("1", name="The Who", site="who.example", label="EMI"))
    before = guards(model)

    change(band, site="new.example", label="Decca")

    moved = {"site#new.example": "1", "label#DECCA": "1"}
    kept = {key: owner for key, owner in before.items() if "ame#" in key}
    assert guards(model) == kept | moved


@both_forms
def test_a_value_that_comes_and_goes_brings_and_takes_its_guard(model: Any) -> None:
    band = insert(model("1", name="The Who", site="who.example"))

    change(band, label="EMI")
    assert guards(model)["label#EMI"] == "1"
    change(band, label=None)

    assert "label#EMI" not in guards(model)
    assert "label" not in stored_of(model)["1"]


@both_forms
def test_a_change_is_refused_whole_where_one_value_is_held(model: Any) -> None:
    insert(model("1", name="The Who", site="who.example"))
    band = insert(model("2", name="The Band", site="band.example"))
    before = stored_of(model), guards(model)

    with pytest.raises(Taken) as refused:
        change(band, name="Free", site="WHO.example")

    assert refused.value.args == ("site", "WHO.example")
    assert (stored_of(model), guards(model)) == before


@both_forms
def test_another_spelling_moves_nothing(model: Any) -> None:
    band = insert(model("1", name="The Who", site="who.example"))
    before = guards(model)

    assert model.unique.moves(band, {"name": "THE WHO", "site": "Who.Example"}) == {}
    change(band, name="THE WHO")

    assert guards(model) == before


@both_forms
def test_a_removed_item_frees_its_values(model: Any) -> None:
    remove(insert(model("1", name="The Who", site="who.example", label="EMI")))

    assert guards(model) == {}
    insert(model("2", name="The Who", site="who.example", label="EMI"))


@both_forms
def test_an_item_is_found_by_each_value_in_whatever_spelling(model: Any) -> None:
    band = insert(model("1", name="The Who", site="who.example", label="EMI"))

    found = [
        model.unique.get("name", "the WHO"),
        model.unique.get("site", "WHO.EXAMPLE"),
        model.unique.get("label", "emi"),
    ]

    assert [model.unique.owner_of(each) for each in found] == [model.unique.owner_of(band)] * 3


@pytest.mark.fault_of("moto", "does not isolate transactions")
@both_forms
def test_of_many_at_once_one_gets_the_value(model: Any, at_once: Callable[..., list[Any]]) -> None:
    def attempt(n: int) -> bool:
        try:
            insert(model(str(n), name="The Who", site=f"{n}.example"))
        except Taken:
            return False
        return True

    assert sorted(at_once(attempt)) == [False] * 7 + [True]
    assert len(guards(model)) == 2


# Keys ---------------------------------------------------------------------------------------------


@both_forms
def test_a_key_of_2048_bytes_is_stored_and_found(model: Any) -> None:
    site = "é" * 1021 + "x"
    assert len(f"site#{site}".encode()) == 2048
    insert(model("1", name="Long", site=site))

    assert model.unique.get("site", site).name == "Long"


@both_forms
def test_a_key_over_2048_bytes_is_refused_before_anything_is_sent(
    model: Any, requests_sent: Requests
) -> None:
    with pytest.raises(ValueError, match="The value of site is too long to be kept unique"):
        insert(model("1", name="Long", site="é" * 1022))

    assert requests_sent.operations == []


def test_a_value_that_has_no_key_is_held_by_nobody(requests_sent: Requests) -> None:
    with pytest.raises(Band.DoesNotExist):
        Band.unique.get("site", "x" * 3000)

    assert requests_sent.operations == []


# Two declarations ---------------------------------------------------------------------------------


def insert_record(record: Record) -> None:
    with Transaction() as write:
        write.put(record, Record.pk.does_not_exist(), otherwise=Stale())
        Record.titles.claim(write, record, taken)
        Record.codes.claim(write, record, taken)


def test_two_declarations_of_one_model_keep_each_their_own_guards() -> None:
    insert_record(Record("1", title="Tommy", code="ab-1"))

    assert stored_items(Record.table()).keys() == {"1", "title#tommy"}
    assert stored_items("tests-record-codes").keys() == {"code#AB-1"}
    assert Record.titles.get("title", "TOMMY").pk == "1"
    assert Record.codes.get("code", "AB-1").pk == "1"


def test_two_declarations_refuse_in_one_transaction() -> None:
    insert_record(Record("1", title="Tommy", code="ab-1"))

    with pytest.raises(Refused) as refused:
        insert_record(Record("2", title="TOMMY", code="AB-1"))

    assert [error.args[0] for error in refused.value.exceptions] == ["title", "code"]


def test_models_do_not_share_their_values() -> None:
    insert(Band("1", name="Prince", site="prince.example"))

    insert(Singer("1", name="Prince", site="prince.example"))

    assert Band.unique.get("site", "prince.example").name == "Prince"
    assert Singer.unique.get("site", "prince.example").name == "Prince"


def test_the_tables_of_all_declarations_are_known() -> None:
    names = {table.name for table in all_tables()}

    assert names >= {"tests-bands", "tests-singers", "tests-singer-guards", "tests-record-codes"}


# Guards that were damaged from outside ------------------------------------------------------------


@both_forms
def test_an_item_whose_guard_is_gone_is_not_found_by_that_value(model: Any) -> None:
    insert(model("1", name="The Who", site="who.example"))
    drop_guard(model, "site#who.example")

    with pytest.raises(model.DoesNotExist):
        model.unique.get("site", "who.example")

    assert model.unique.get("name", "The Who")


@both_forms
@pytest.mark.parametrize("leave", [remove, lambda band: change(band, site="new.example")])
def test_a_guard_that_is_gone_does_not_hold_its_owner(
    model: Any, leave: Callable[[Any], None]
) -> None:
    band = insert(model("1", name="The Who", site="who.example"))
    drop_guard(model, "site#who.example")

    leave(band)

    assert "site#who.example" not in guards(model)


@both_forms
@pytest.mark.parametrize("leave", [remove, lambda band: change(band, site="new.example")])
def test_a_stolen_guard_is_left_to_the_thief_and_does_not_hold_its_owner(
    model: Any, leave: Callable[[Any], None]
) -> None:
    band = insert(model("1", name="The Who", site="who.example"))
    put_guard(model, "site#who.example", "thief")

    leave(band)

    assert guards(model)["site#who.example"] == "thief"


@both_forms
def test_a_stolen_guard_finds_nobody(model: Any) -> None:
    insert(model("1", name="The Who", site="who.example"))
    insert(model("2", name="Thief", site="thief.example"))
    put_guard(model, "site#who.example", "2")

    with pytest.raises(model.DoesNotExist):
        model.unique.get("site", "who.example")


@both_forms
def test_a_guard_that_names_nobody_finds_nobody(model: Any) -> None:
    insert(model("1", name="The Who", site="who.example"))
    put_guard(model, "site#who.example", "")

    with pytest.raises(model.DoesNotExist):
        model.unique.get("site", "who.example")


@both_forms
def test_a_guard_without_its_item_finds_nobody_and_keeps_the_value(model: Any) -> None:
    put_guard(model, "site#who.example", "gone")

    with pytest.raises(model.DoesNotExist):
        model.unique.get("site", "who.example")
    with pytest.raises(Taken):
        insert(model("1", name="The Who", site="who.example"))


@both_forms
def test_a_guard_that_is_ours_already_lets_us_take_the_value(model: Any) -> None:
    band = insert(model("1", name="The Who", site="who.example"))
    put_guard(model, "site#new.example", "1")

    change(band, site="new.example")

    assert guards(model)["site#new.example"] == "1"


@both_forms
def test_a_reserved_value_finds_nobody_and_is_held(model: Any) -> None:
    insert(model("1", name="The Who", site="who.example"))
    put_guard(model, "label#EMI", "1", reservation="token")

    with pytest.raises(model.DoesNotExist):
        model.unique.get("label", "EMI")
    with pytest.raises(Taken):
        insert(model("2", name="Other", site="other.example", label="EMI"))
