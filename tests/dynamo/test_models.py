"""Items are built and read as PynamoDB does it, in fewer steps."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import models as djangos
from django.http import Http404
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

from dynamo import DamagedItem, GlobalSecondaryIndex, Model, RequestIdReused, TextAttribute, Unique
from dynamo.client.plain import PlainModel
from dynamo.client.writes import Write
from dynamo.views import get_object_or_404
from dynamo.wire.values import is_same_value, item_bytes
from sequences import NumberedItem, issue
from tests.items import overwrite
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
    assert is_same_value({"M": item.serialize()}, {"M": item._container_serialize()})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("text", value) for value in ("\ud800", "a\udfff", 5)),
        *(("names", value) for value in ({"a", "\ud800"}, {1})),
        *(("document", value) for value in ({1}, float("nan"))),
        *(("rows", value) for value in (["\ud800"], [{"x": "\ud800"}], [10**40 + 1])),
        *(("sk", value) for value in ("1", float("inf"), 10**40 + 1)),
    ],
)
def test_a_value_that_cannot_be_stored_is_refused_by_the_name_of_its_attribute(
    name: str, value: object
) -> None:
    item = Kinds("key", 1.5, text="a")
    setattr(item, name, value)

    with pytest.raises(
        (TypeError, ValueError), match=rf"\b{Kinds.get_attributes()[name].attr_name}\b"
    ):
        item.serialize()


# Reads ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_reads_of_a_plain_model_are_consistent_in_any_case(requests_sent: Requests) -> None:
    for options in ({}, {"consistent_read": False}):
        with pytest.raises(Kinds.DoesNotExist):
            Kinds.get("a", 1, **options)

    assert [request["ConsistentRead"] for request in requests_sent.requests] == [True, True]


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
    class ByOwner(GlobalSecondaryIndex["Pet"]):
        owner_name = TextAttribute(hash_key=True)

    class Meta:
        table_name = "tests-pets"

    kind = DiscriminatorAttribute(attr_name="class")
    name = TextAttribute()
    owner_name = TextAttribute(default="Eve")

    by_owner = ByOwner()
    unique_name = Unique("name", searchable=True)


class Dog(Pet, discriminator="dog"):
    trick = TextAttribute(null=True)


class Puppy(Dog, discriminator="puppy"):
    pass


class Cat(Pet, discriminator="cat"):
    pass


def test_a_class_that_is_refused_is_unknown_to_its_base() -> None:
    def declare(name: str, **names: Any) -> Any:
        place = {"__module__": __name__, **names}
        return type(Pet)(name, (Pet,), place, discriminator="fish")

    with pytest.raises(TypeError, match="Shark: "):
        declare("Shark", weight=djangos.IntegerField())
    with pytest.raises(TypeError, match="no attribute of this name"):
        declare("Shark", unique_weight=Unique("weight"))
    item = {"pk": {"S": "1"}, "class": {"S": "fish"}, "name": {"S": "Moby"}}
    with pytest.raises(DamagedItem):
        Pet.from_raw_data(item)

    whale = declare("Whale")
    assert type(Pet.from_raw_data(item)) is whale


class Page(Model):
    """Its key does not follow from a request id."""

    class Meta:
        table_name = "tests-pages-of-kinds"

    path = TextAttribute(hash_key=True)
    kind = DiscriminatorAttribute()
    name = TextAttribute()


class Article(Page, discriminator="article"):
    pass


class Gallery(Page, discriminator="gallery"):
    pass


@pytest.mark.usefixtures("engine")
def test_items_of_a_model_with_a_discriminator_have_the_class_that_it_tells() -> None:
    Dog.create(name="Rex", trick="sit")

    [rex] = Pet.scan()
    rex.change(trick="roll")
    rex.refresh()

    assert (type(rex), rex.trick) == (Dog, "roll")
    with pytest.raises(DamagedItem):
        Pet.from_raw_data(rex.stored | {"class": {"S": "cow"}})


class Contact(NumberedItem):
    class Meta:
        table_name = "tests-contacts"

    kind = DiscriminatorAttribute()
    name = TextAttribute()


class Visit(Contact, discriminator="visit"):
    pass


class Call(Contact, discriminator="call"):
    pass


#: Reads of a model, of the item with a key and a name. Each returns or raises what it found.
READS: dict[str, Callable[[Any, str, str], Any]] = {
    "get": lambda model, pk, _name: model.get(pk),
    "a part": lambda model, pk, _name: model.get(pk, attributes_to_get=["name"]),
    "get_or_none": lambda model, pk, _name: model.get_or_none(pk),
    "find": lambda model, _pk, name: model.find(name=name),
    "get_object_or_404": lambda model, pk, _name: get_object_or_404(model, pk),
    "a slug": lambda model, _pk, name: get_object_or_404(model, name=name),
    "batch_get": lambda model, pk, _name: next(model.batch_get([pk])),
    "query": lambda model, pk, _name: next(model.query(pk)),
    "scan": lambda model, _pk, _name: next(model.scan()),
    "page": lambda model, pk, _name: next(iter(model.page(pk))),
    "page of an index": lambda model, _pk, _name: next(iter(model.by_owner.page("Eve"))),
    "search": lambda model, _pk, name: next(iter(model.search("name", name[:2]))),
    "refresh": lambda model, pk, _name: model(pk=pk).refresh(),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_an_item_of_another_class_of_the_table_does_not_exist(read: Callable[..., Any]) -> None:
    stored = Cat.create(name="Tom")

    for model in (Dog, Puppy):
        found = None
        with suppress(model.DoesNotExist, Http404, StopIteration):
            found = read(model, stored.pk, stored.name)
        assert found is None
    assert Cat.get(stored.pk).name == "Tom"


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", READS.keys() - {"refresh"})
def test_an_item_is_read_by_its_class_and_by_the_classes_above(name: str) -> None:
    stored = Puppy.create(name="Rex")

    for model in (Puppy, Dog, Pet):
        found = READS[name](model, stored.pk, stored.name)
        assert (type(found), found.name) == (Puppy, "Rex")


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (
            lambda: Cat.create(name="x", request_id="r"),
            lambda: Dog.create(name="x", request_id="r"),
        ),
        (
            lambda: Article.create(path="a", name="x", request_id="r"),
            lambda: Gallery.create(path="b", name="x", request_id="r"),
        ),
        (
            lambda: issue(Visit(name="x"), series="a", request_id="r"),
            lambda: issue(Call(name="x"), series="a", request_id="r"),
        ),
    ],
    ids=["default key", "own key", "numbered"],
)
def test_a_request_id_of_another_class_of_the_table_is_reused(
    first: Callable[[], Any], then: Callable[[], Any]
) -> None:
    made = first()
    assert first() == made

    with pytest.raises(RequestIdReused):
        then()


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", ["kind", "name"])
def test_a_damaged_item_with_a_discriminator_is_an_error_of_every_read(name: str) -> None:
    dog = Dog.create(name="Rex")
    stored_name = str(Dog.get_attributes()[name].attr_name)
    overwrite(dog, **{stored_name: {"M": {}}})

    for read in (lambda: Dog.get(dog.pk), lambda: Pet.get(dog.pk), dog.refresh):
        with pytest.raises(DamagedItem, match=f"damaged: {stored_name}"):
            read()
