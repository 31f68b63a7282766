"""Items are built and read as PynamoDB does it, in fewer steps."""

from typing import Any

import pytest
from pynamodb.attributes import (
    BinaryAttribute,
    BooleanAttribute,
    DiscriminatorAttribute,
    JSONAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
)

from dynamo import DamagedItem, Model, TextAttribute
from dynamo._internal.items import PlainModel, item_bytes
from dynamo.transactions import Write
from tests.requests import Requests


class Kinds(PlainModel):
    """An item with each kind of attribute."""

    class Meta:
        table_name = "tests-kinds"

    pk = UnicodeAttribute(hash_key=True)
    sk = NumberAttribute(range_key=True)
    text = UnicodeAttribute(attr_name="storedText")
    flag = BooleanAttribute(null=True)
    data = BinaryAttribute(legacy_encoding=False, null=True)
    names = UnicodeSetAttribute(null=True)
    document = JSONAttribute(null=True)
    parts: Any = MapAttribute(null=True)  # type: ignore[no-untyped-call]  # PynamoDB's
    rows: Any = ListAttribute(null=True)


ABSENT: Any = Kinds.pk.does_not_exist()


@pytest.mark.parametrize(
    "values",
    [
        {"text": ""},
        {"flag": False, "data": b"\x00", "names": {"a", "b"}, "document": {"x": [1, None]}},
        {"names": set()},
        {"parts": {"x": "1"}, "rows": ["a", 2]},
        {"parts": {}, "rows": [], "names": set()},
    ],
)
@pytest.mark.parametrize(
    "condition",
    [ABSENT, ABSENT | (Kinds.text == "x") & (Kinds.flag == True)],  # noqa: E712
    ids=["names", "values"],
)
def test_a_put_is_what_pynamodb_would_send(values: dict[str, Any], condition: Any) -> None:
    item = Kinds("key", 1.5, **{"text": "a", **values})

    put = Write.put(item, condition, otherwise=ValueError())

    assert put.request == item.get_save_kwargs_from_instance(condition, "ALL_OLD")
    assert item.serialize() == item._container_serialize()


# Reads ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_reads_of_a_plain_model_are_consistent_in_any_case(requests_sent: Requests) -> None:
    for options in ({}, {"consistent_read": False}):
        with pytest.raises(Kinds.DoesNotExist):
            Kinds.get("a", 1, **options)

    assert [each["ConsistentRead"] for each in requests_sent.requests] == [True, True]


def test_a_value_that_another_program_stored_as_null_is_absent() -> None:
    stored = {"pk": {"S": "a"}, "sk": {"N": "1"}, "data": {"NULL": True}}

    assert Kinds.from_raw_data(stored).data is None


# Sizes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "é"}, 2),
        ({"N": "12345"}, 5),
        ({"B": b"abc"}, 3),
        ({"BOOL": True}, 1),
        ({"L": [{"S": "ab"}, {"N": "1"}]}, 3 + (1 + 2) + (1 + 3)),
        ({"M": {"key": {"S": "a"}}}, 3 + 1 + (3 + 1)),
        ({"SS": ["a", "bc"]}, 3),
        ({"NS": ["1", "23"]}, 3 + 4),
    ],
    ids=str,
)
def test_the_size_of_an_item_is_that_of_its_names_and_values(
    value: dict[str, Any], size: int
) -> None:
    assert item_bytes({"name": value}) == len("name") + size


# A table of several models ------------------------------------------------------------------------


class Pet(Model):
    class Meta:
        table_name = "tests-pets"

    kind = DiscriminatorAttribute()
    name = TextAttribute()


class Dog(Pet, discriminator="dog"):
    trick = TextAttribute(null=True)


@pytest.mark.usefixtures("engine")
def test_items_of_a_model_with_a_discriminator_have_the_class_that_it_tells() -> None:
    Dog.create(name="Rex", trick="sit")

    [rex] = Pet.scan()
    rex.change(trick="roll")
    rex.refresh()

    assert (type(rex), rex.trick) == (Dog, "roll")
    with pytest.raises(DamagedItem):
        Pet.from_raw_data(rex.stored | {"kind": {"S": "cat"}})
