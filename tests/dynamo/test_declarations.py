"""Declarations of models: wrong ones are refused, and subclasses inherit the others."""

import gc
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, cast
from uuid import UUID

import pytest
from django import forms
from django.contrib.auth.models import UserManager as DjangosUserManager
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
from django.db import models as djangos
from django.db.models.constraints import BaseConstraint
from django.db.models.manager import BaseManager
from pynamodb.attributes import (
    BinaryAttribute,
    ListAttribute,
    TTLAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    VersionAttribute,
)
from pynamodb.indexes import AllProjection, IncludeProjection, LocalSecondaryIndex
from pynamodb.models import Model as PynamoModel

from dynamo import (
    BooleanAttribute,
    DateAttribute,
    DateTimeAttribute,
    DecimalAttribute,
    GlobalSecondaryIndex,
    IntegerAttribute,
    JSONAttribute,
    Model,
    Taken,
    TextAttribute,
    Unique,
    casefolded,
)
from dynamo.auth import AbstractUser
from dynamo.client.plain import all_models
from dynamo.tables.definitions import merged, tables_of
from dynamo.wire.attributes import FormAttribute
from sequences import NumberedItem
from tests.items import stored_items

pytestmark = pytest.mark.usefixtures("cheap_collections")

TABLE = "declared-things"


@pytest.fixture(autouse=True)
def _no_declaration_is_left_behind() -> Iterator[None]:
    """Otherwise other tests would miss its table."""
    yield
    if TABLE in tables_declared():
        gc.collect()
    assert TABLE not in tables_declared()


def tables_declared() -> set[str]:
    return {model.Meta.table_name for model in all_models()}


def declared(*bases: type, **names: Any) -> Any:
    """A model of TABLE with the attributes `names`."""
    meta = {"table_name": TABLE, **names.pop("Meta", {})}
    namespace = {"Meta": type("Meta", (), meta), "__module__": __name__, "__qualname__": "Thing"}
    return type(Model)("Thing", bases or (Model,), names | namespace)


def index_on(
    *attributes: Any, name: str = "by_this", projection: Any = None, **options: Any
) -> Any:
    """A global index with these key attributes."""
    options |= {"projection": projection or AllProjection(), "index_name": name}
    meta = type("Meta", (), options)
    names = {str(attribute.attr_name): attribute for attribute in attributes}
    return type("ByThis", (GlobalSecondaryIndex,), {"Meta": meta, **names})()


def hash_on(name: str) -> Any:
    return TextAttribute(hash_key=True, attr_name=name)


def range_on(name: str) -> Any:
    return TextAttribute(range_key=True, attr_name=name)


class Local(LocalSecondaryIndex[Any]):
    class Meta:
        projection = AllProjection()

    pk = TextAttribute(hash_key=True)
    city = TextAttribute(range_key=True)


T, UNSHOWN = TextAttribute, TextAttribute(editable=False)


@pytest.mark.parametrize(
    ("attributes", "values", "shown"),
    [
        ({"title": T()}, {"title": "Chess"}, "Chess"),
        ({"title": UnicodeAttribute()}, {"title": "Chess"}, "Chess"),
        ({"n": IntegerAttribute(), "b": T(), "a": T()}, {"n": 1, "b": "B", "a": "A"}, "B"),
        ({"b": T(null=True), "a": T()}, {"a": " a \n b "}, "a b"),
        ({"note": T()}, {"note": "x" * 101}, "x" * 99 + "…"),
        ({"code": T(hash_key=True), "a": T()}, {"code": "c", "a": "A"}, "A"),
        (
            {"code": T(hash_key=True), "n": IntegerAttribute(range_key=True)},
            {"code": "c", "n": 7},
            "thing c, 7",
        ),
        (
            {"code": BinaryAttribute(hash_key=True, legacy_encoding=False)},
            {"code": b"z"},
            "thing 7a",
        ),
        ({"owner": UNSHOWN, "a": T()}, {"owner": "o", "a": "A"}, "A"),
        ({"plan": TextAttribute(choices=[("f", "Free")]), "a": T()}, {"plan": "f", "a": "A"}, "A"),
        ({"code": T(sensitive=True), "a": T()}, {"code": "c", "a": "A"}, "A"),
        *(
            ({name: T(), "author": T()}, {name: "of-ann-alone", "author": "A"}, "A")
            for name in (
                *(
                    "password",
                    "passphrase",
                    "passwd",
                    "secret",
                    "client_secret",
                    "token",
                    "accessToken",
                ),
                *("api_key", "apikey", "auth_code", "cookie", "hash", "salt", "pin", "otp_seed"),
                *("signature", "credentials", "private_key"),
            )
        ),
    ],
)
def test_an_item_is_called_by_its_first_text_that_is_neither_secret_nor_its_key(
    attributes: dict[str, Any], values: dict[str, Any], shown: str
) -> None:
    item = declared(**attributes)(**values)

    assert (str(item), str(type(item)(**values))) == (shown, shown)
    assert "of-ann-alone" not in repr(item)


ONE = {"name": TextAttribute(), "unique": Unique("name", normalize=casefolded)}
#: The two ways to declare that items expire.
EXPIRING = {
    "PynamoDB's attribute": {"until": TTLAttribute()},
    "ttl_attribute": {"until": IntegerAttribute(null=True), "ttl_attribute": "until"},
}

#: Single attributes, by name.
A = {"a": TextAttribute()}
B = {"b": TextAttribute()}
N = {"n": IntegerAttribute()}

#: Declarations that cannot be right, each with a part of the error.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a Unique of an unknown name": ({"unique": Unique("emial")}, "'emial'.*no attribute"),
    "two of the same": (A | {"one": Unique("a"), "two": Unique("a")}, "twice"),
    "a Unique of the version": ({"unique": Unique("version")}, "version"),
    "a Unique with a comma": (
        {"a": TextAttribute(attr_name="a,b"), "unique": Unique("a")},
        "stored name",
    ),
    "a normalizer of numbers": (N | {"unique": Unique("n", normalize=casefolded)}, "texts"),
    "searches by two texts": (A | B | {"unique": Unique("a", "b", searchable=True)}, "search"),
    "searches by a number": (N | {"unique": Unique("n", searchable=True)}, "search"),
    "a stored name of searches": (
        A | {"b": TextAttribute(attr_name="searchValue"), "unique": Unique("a", searchable=True)},
        "search",
    ),
    **{
        f"a Unique of {kind.__name__}": (
            {"value": kind(), "unique": Unique("value")},
            f"{kind.__name__} cannot be unique",
        )
        for kind in (BooleanAttribute, JSONAttribute, ListAttribute, UnicodeSetAttribute)
    },
    **{
        f"an attribute called {name}": ({name: TextAttribute()}, f"cannot be called {name}")
        for name in ("write", "request_id", "add", "condition", "hash_key", "save", "count", "page")
    },
    "a version of another type": ({"version": TextAttribute()}, "version"),
    "PynamoDB's version": ({"counter": VersionAttribute()}, "version"),
    "one stored name twice": (A | {"b": TextAttribute(attr_name="a")}, "stored name a"),
    "a stored name of Model's own": (
        {"a": TextAttribute(attr_name="requestDigest")},
        "requestDigest",
    ),
    "a key that is not a value": ({"a": BooleanAttribute(hash_key=True)}, "key a"),
    "a TTL attribute that does not exist": ({"ttl_attribute": "until"}, "ttl_attribute"),
    "a TTL attribute that is not a number": (A | {"ttl_attribute": "a"}, "ttl_attribute"),
    "two TTL attributes": (N | {"one": TTLAttribute(), "ttl_attribute": "n"}, "ttl_attribute"),
    **{
        f"unique values of items that expire, by {kind}": (ONE | names, "expire.*unique")
        for kind, names in EXPIRING.items()
    },
    "an index of an unknown name": ({"i": index_on(hash_on("city"))}, "named? city"),
    "an index of another type": (N | {"i": index_on(hash_on("n"))}, "name n"),
    "an index with an unknown attribute": (
        A | {"i": index_on(hash_on("a"), projection=IncludeProjection(["note"]))},
        "name note",
    ),
    "an index without a partition": (A | {"i": index_on(range_on("a"))}, "hash_key"),
    "an index whose name is too short": (A | {"i": index_on(hash_on("a"), name="by")}, "3 to 255"),
    "a local index": ({"city": TextAttribute(), "i": Local()}, "GlobalSecondaryIndex"),
    **{
        f"an index of {name}": (
            {"a": TextAttribute(attr_name=name), "i": index_on(hash_on(name))},
            "guard items",
        )
        for name in ("owner", "digest", "searchPrefix", "searchValue")
    },
    "an index of the key": ({"i": index_on(hash_on("pk"))}, "guard items"),
    "an index of which there is only the class": (A | {"ByA": type(index_on(hash_on("a")))}, "ByA"),
    "a misspelled option of an index": (
        A | {"i": index_on(hash_on("a"), projecton=AllProjection())},
        "the index by_this: Meta.projecton .*Use projection",
    ),
    "a class of an attribute": ({"a": TextAttribute}, r"Write a = TextAttribute\("),
    "the class of uniques": (A | {"unique": Unique}, r"Write unique = Unique\("),
    "a declaration before a comma": (A | {"unique": (Unique("a"),)}, "unique is a tuple"),
    "a list of declarations": (A | {"unique": [Unique("a")]}, "unique is a list"),
    "a pk that is not the key": ({"pk": IntegerAttribute()}, "pk is the name of the key"),
    "a pk next to another key": (
        {"a": TextAttribute(hash_key=True), "pk": TextAttribute()},
        "pk is the name of the key",
    ),
    "a Unique called as a method": (A | {"find": Unique("a")}, "cannot be called find"),
    **{
        f"a key of {kind} with {default}": ({"a": key} | names, "key a, .* cannot be ''")
        for default in ({"default": ""}, {"default": "", "null": True}, {"default_for_new": ""})
        for kind, key, names in (
            ("an index", TextAttribute(**default), {"i": index_on(hash_on("a"))}),
            ("the table", TextAttribute(hash_key=True, **default), {}),
        )
    },
    "a default that is too long for a sort key of an index": (
        A | {"b": TextAttribute(default="x" * 1025), "i": index_on(hash_on("a"), range_on("b"))},
        "key b",
    ),
    "a default that is not a number of DynamoDB": (
        {"n": IntegerAttribute(default=10**126)},
        "default of n.*38 digits",
    ),
    "a default of another type": ({"n": IntegerAttribute(default="0")}, "default of n.*int"),
}


@pytest.mark.parametrize(("names", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_declaration_that_cannot_be_right_is_refused_when_the_class_is_made(
    names: dict[str, Any], reason: str
) -> None:
    with pytest.raises(TypeError, match=reason) as refused:
        declared(**names)
    # `refused` keeps the class.
    assert TABLE not in tables_declared(), refused


@pytest.mark.parametrize("names", [[], ["a", "a"], [TextAttribute()]], ids=["none", "twice", "no"])
def test_a_unique_takes_names_of_different_attributes(names: list[Any]) -> None:
    with pytest.raises(TypeError, match="names of different attributes"):
        Unique(*names)
    with pytest.raises(TypeError, match="normalize is a function, such as casefolded"):
        Unique("a", normalize=cast(Any, "lower"))


class Color(str, Enum):  # noqa: UP042 - its str is "Color.RED"
    RED = "red"


#: By the attribute, constants that can be its default.
CONSTANTS: dict[type[FormAttribute[Any]], list[Any]] = {
    TextAttribute: ["", "red", Color.RED],
    IntegerAttribute: [0, 7],
    DecimalAttribute: [Decimal(0), Decimal("1.5"), 2],
    BooleanAttribute: [False, True],
    DateAttribute: [date(2026, 11, 21)],
    DateTimeAttribute: [datetime(2026, 11, 21, tzinfo=UTC)],
    JSONAttribute: [
        "a",
        1.5,
        (),
        ("a",),
        Decimal(1),
        date(2026, 1, 1),
        time(8),
        timedelta(1),
        UUID(int=1),
    ],
}


@pytest.mark.parametrize(
    ("kind", "default"), [(kind, constant) for kind in CONSTANTS for constant in CONSTANTS[kind]]
)
def test_a_constant_default_is_the_value_of_new_items_and_of_stored_ones_that_lack_it(
    kind: Any, default: Any
) -> None:
    thing = declared(value=kind(default=default))

    assert thing().value == thing.from_raw_data({"pk": {"S": "a"}}).value == default
    # JSON has fewer types.
    again = thing.from_raw_data(thing().serialize()).value
    assert again == default or kind is JSONAttribute


@pytest.mark.parametrize("default", [[], {}, set(), bytearray(), ([],)], ids=repr)
def test_a_default_that_can_change_is_refused(default: Any) -> None:
    for kind in CONSTANTS:
        for option in ("default", "default_for_new"):
            with pytest.raises(ValueError, match=re.escape(f"default=lambda: {default!r}")):
                kind(**{option: default})


def test_an_attribute_has_one_default() -> None:
    with pytest.raises(ValueError, match="one default"):
        TextAttribute(default=str, default_for_new=str)


def test_an_index_of_an_attribute_that_guard_items_have_needs_a_table_for_them() -> None:
    model = declared(
        owner=TextAttribute(), i=index_on(hash_on("owner")), Meta={"guard_table": "declared-guards"}
    )

    items, _guards = tables_of(model)
    assert [index.name for index in items.indexes] == ["by_this"]


def test_a_request_id_of_items_that_expire_needs_the_default_key() -> None:
    model = declared(id=TextAttribute(hash_key=True), until=TTLAttribute(null=True))

    with pytest.raises(TypeError, match="default key"):
        model.create(id="1", request_id="form-1")


# Declarations of Django and of PynamoDB -----------------------------------------------------------


# Each option of Django: `tests.dynamo.test_habit_tables`.
@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("gaurd_table", "guard_table"),
        ("nonsense", "one of its options: table_name, guard_table, verbose_name"),
        ("index_together", "GlobalSecondaryIndex"),
    ],
)
@pytest.mark.parametrize("is_in_base", [False, True])
def test_an_option_of_meta_that_has_no_effect_is_refused(
    option: str, instead: str, is_in_base: bool
) -> None:
    meta = type("Mixin", (), {option: ()})
    if is_in_base:
        meta = type("Meta", (meta,), {})

    with pytest.raises(TypeError, match=rf"^Thing: Meta\.{option} has no effect\. Use {instead}"):
        type(Model)("Thing", (Model,), {"Meta": meta, "__module__": __name__})


@pytest.mark.parametrize("permissions", ["x", ["ab"], [("a", "b", "c")]])
def test_permissions_that_are_not_pairs_are_refused(permissions: object) -> None:
    meta = type("Meta", (), {"permissions": permissions})

    with pytest.raises(TypeError, match=r"^Thing: Meta\.permissions has pairs of a code name and"):
        type(Model)("Thing", (Model,), {"Meta": meta, "__module__": __name__})


def test_an_option_of_pynamodb_is_a_warning_that_names_what_to_use() -> None:
    meta = type("Meta", (), {"table_name": TABLE})
    type(PynamoModel)("Thing", (PynamoModel,), {"Meta": meta})
    options = {name for name in vars(meta) if not name.startswith("_")} - {"table_name"}
    capacity = {"read_capacity_units", "write_capacity_units", "billing_mode", "stream_view_type"}

    for option in options | capacity | {"tags"}:
        with pytest.warns(UserWarning, match=rf"Meta\.{option} has no effect. Use "):
            declared(Meta={option: 5})
    assert len(options) > 8
    # What PynamoDB itself adds to the Meta of a base is not among a subclass's own.
    base = declared()
    declared(base, Meta={"verbose_name": "thing"})
    type(Model)("Sub", (base,), {"Meta": type("Meta", (base.Meta,), {}), "__module__": __name__})


def subclasses(kind: type) -> set[type]:
    """All classes of Django that derive from `kind`."""
    below = {subclass for base in kind.__subclasses__() for subclass in {base} | subclasses(base)}
    return {item for item in below if item.__module__.startswith("django.")}


@pytest.mark.parametrize(
    "kind", [djangos.Field, forms.Field, BaseManager, djangos.Index, BaseConstraint]
)
@pytest.mark.parametrize("is_in_base", [False, True])
def test_an_object_of_django_in_the_body_of_a_class_is_refused(
    kind: type, is_in_base: bool
) -> None:
    for subclass in {kind} | subclasses(kind):
        for value in (subclass, subclass.__new__(subclass)):
            names = {"thing": value}
            bases = (Model, type("Mixin", (), names)) if is_in_base else (Model,)
            with pytest.raises(
                TypeError, match=f"^Thing: thing is Django's {subclass.__name__}. Use [A-Za-z]"
            ):
                declared(*bases, **({} if is_in_base else names))


#: What the error of a declaration names.
NAMED: list[tuple[Any, str]] = [
    (djangos.CharField(), "TextAttribute"),
    (djangos.EmailField(), "TextAttribute"),
    (djangos.UUIDField(), "TextAttribute"),
    (djangos.TextField(), "TextAttribute"),
    (djangos.AutoField(), "the key pk, which comes with Model"),
    (djangos.BigAutoField(), "the key pk, which comes with Model"),
    (djangos.PositiveSmallIntegerField(), "IntegerAttribute"),
    (djangos.DateField(), "DateAttribute"),
    (djangos.DateTimeField(), "DateTimeAttribute"),
    (djangos.DecimalField(), "DecimalAttribute"),
    (djangos.BooleanField(), "BooleanAttribute"),
    (djangos.JSONField(), "JSONAttribute"),
    (djangos.ForeignKey("x.X", djangos.CASCADE), "Reference"),
    (djangos.OneToOneField("x.X", djangos.CASCADE), "Reference.*unique=True"),
    (djangos.ManyToManyField("x.X"), "UnicodeSetAttribute"),
    (forms.CharField(), "ModelForm"),
    (djangos.Manager(), "find, get, page and query"),
    (djangos.Index(fields=["a"]), "GlobalSecondaryIndex"),
    (djangos.UniqueConstraint(fields=["a"], name="a"), "Unique"),
]


@pytest.mark.parametrize(
    ("value", "instead"), NAMED, ids=[type(value).__name__ for value, _instead in NAMED]
)
def test_the_error_of_an_object_of_django_names_what_to_use(value: Any, instead: str) -> None:
    with pytest.raises(TypeError, match=rf"Use .*{instead}"):
        declared(thing=value)


# Two models of one table --------------------------------------------------------------------------

#: A declaration with two indexes.
FULL = ONE | {
    "city": TextAttribute(null=True),
    "i": index_on(hash_on("name")),
    "j": index_on(hash_on("city"), name="by_town"),
}
CITY = IntegerAttribute(hash_key=True, attr_name="city")
#: Declarations that do not agree with FULL.
DISAGREEING: dict[str, tuple[dict[str, Any], str]] = {
    "another key": (ONE | {"id": TextAttribute(hash_key=True)}, "the key"),
    "another normalizer": (ONE | {"unique": Unique("name")}, "the unique values"),
    "another Unique": (ONE | A | {"other": Unique("a")}, "the unique values"),
    "no Unique": ({"name": TextAttribute()}, "the unique values"),
    "another table for guard items": (
        ONE | {"Meta": {"guard_table": "declared-guards"}},
        "guard items",
    ),
    "another index": (
        ONE | {"i": index_on(hash_on("name"), projection=IncludeProjection(["version"]))},
        "an index",
    ),
    "another type of an index": (
        ONE | {"city": IntegerAttribute(), "i": index_on(CITY, name="by_city")},
        "the type of an attribute",
    ),
}


def assert_disagree(one: dict[str, Any], other: dict[str, Any], what: str) -> None:
    pair = [declared(**one), declared(**other)]
    for models in (pair, pair[::-1]):
        with pytest.raises(ImproperlyConfigured, match=f"disagree on .*{what}.*{TABLE}"):
            merged(table for model in models for table in tables_of(model))


@pytest.mark.parametrize(("other", "what"), DISAGREEING.values(), ids=DISAGREEING)
def test_two_models_of_one_table_must_agree(other: dict[str, Any], what: str) -> None:
    assert_disagree(FULL, other, what)


def test_two_models_of_one_table_must_agree_on_its_ttl_attribute() -> None:
    assert_disagree({"until": TTLAttribute()}, {"other": TTLAttribute()}, "the TTL attribute")


@pytest.mark.parametrize(
    ("full", "brief"), [(FULL, ONE), *((names, {}) for names in EXPIRING.values())]
)
def test_a_model_may_leave_indexes_and_ttl_to_another_one_of_its_table(
    full: dict[str, Any], brief: dict[str, Any]
) -> None:
    pair = [declared(**full), declared(**brief)]
    complete = tables_of(pair[0])

    assert complete[0].indexes or complete[0].ttl_attribute == "until"
    for models in (pair, pair[::-1]):
        assert merged(t for model in models for t in tables_of(model)) == complete


def test_guard_items_cannot_stand_in_the_table_of_another_model() -> None:
    with pytest.raises(ImproperlyConfigured, match="guard items"):
        merged(tables_of(declared(Meta={"guard_table": TABLE}, **ONE)))


def test_a_disagreement_fails_every_check_and_createtables() -> None:
    models = [declared(**FULL), declared(name=TextAttribute())]

    for command in (["check"], ["check", "--tag=dynamodb"], ["check", "--deploy"]):
        with pytest.raises(SystemCheckError, match=r"dynamo\.E007.*declared-things") as refused:
            call_command(*command)
        assert str(refused.value).count("E007") == 1
    with pytest.raises(CommandError, match="disagree"):
        call_command("createtables")
    del models, refused


# Inheritance --------------------------------------------------------------------------------------


class Named(Model):
    """A base without a table: what several models have in common."""

    class ByOwner(GlobalSecondaryIndex["Named"]):
        owned_by = TextAttribute(hash_key=True)

    name = TextAttribute()
    owned_by = TextAttribute(null=True)

    by_owner = ByOwner()
    unique_name = Unique("name", normalize=casefolded)
    unique_code = Unique("code")


class Cat(Named):
    class Meta:
        table_name = "tests-cats"

    code = TextAttribute(null=True)


class Dog(Named):
    """A model with its own key of two attributes, and without one inherited Unique."""

    class Meta:
        table_name = "tests-dogs"

    kennel = TextAttribute(hash_key=True)
    number = IntegerAttribute(range_key=True)
    unique_code = None  # type: ignore[assignment]


class Kitten(Cat):
    """A model of the same table as its base."""

    weeks = IntegerAttribute(default=0)


@pytest.mark.usefixtures("engine")
def test_subclasses_of_a_model_without_a_table_keep_what_they_inherit_apart() -> None:
    tom = Cat.create(name="Tom", code="1", owned_by="Ann")
    rex = Dog.create(kennel="red", number=1, name="Tom", owned_by="Ann")

    with pytest.raises(Cat.Taken) as refused:
        Cat.create(name="TOM", code="1")
    assert refused.value.uniques == [("name",), ("code",)]
    assert not isinstance(refused.value, Dog.Taken)
    with pytest.raises(Named.Taken):
        Dog.create(kennel="blue", number=1, name="TOM")
    assert Cat.find(name="tom") == tom
    assert Dog.find(name="tom") == rex
    assert Cat.by_owner.page("Ann").items == [tom]
    assert Dog.by_owner.page("Ann").items == [rex]
    with pytest.raises(TypeError, match="name"):
        Dog.find(code="1")


@pytest.mark.usefixtures("engine")
def test_a_subclass_in_the_table_of_its_base_shares_its_unique_values() -> None:
    tom = Kitten.create(name="Tom", weeks=3)

    with pytest.raises(Taken):
        Cat.create(name="tom")
    assert Cat.get(tom.pk).name == "Tom"
    assert Kitten.find(name="tom").weeks == 3
    assert (Cat.get(tom.pk) == tom, tom == Cat.get(tom.pk)) == (True, True)
    assert hash(Cat.get(tom.pk)) == hash(tom)
    assert stored_items("tests-cats").keys() == {tom.pk, "name#tom"}


def test_the_key_of_an_index_has_the_names_of_the_attributes_of_its_model() -> None:
    day = TextAttribute(range_key=True, attr_name="day")
    thing = declared(
        town=TextAttribute(attr_name="city"),
        day=TextAttribute(),
        by_this=index_on(day, hash_on("city")),
    )

    assert thing._key_names(thing.by_this) == ["town", "day"]


OTHERS: dict[str, Any] = {
    "name": TextAttribute(),
    "unique_name": Unique("name"),
    "by_owner": index_on(hash_on("owned_by")),
}

#: Subclasses that cannot be right: the base, what they declare, and a part of the error.
REFUSED_SUBCLASSES: dict[str, tuple[type, dict[str, Any], str]] = {
    **{
        f"{kind} instead of {name}": (Cat, {name: value}, f"declares {name} as")
        for name in OTHERS
        for kind, value in [
            ("a text", "Tom"),
            ("a method", lambda _cat: "Tom"),
            ("a property", property(lambda _cat: "Tom")),
            *((other, value) for other, value in OTHERS.items() if other != name),
        ]
    },
    "a key that is removed": (Cat, {"pk": None}, "declares pk as"),
    "a version that is removed": (Cat, {"version": None}, "declares version as"),
    "users with an attribute called as a method": (
        AbstractUser,
        {"end_sessions": TextAttribute()},
        "called end_sessions",
    ),
    "users with Django's manager": (AbstractUser, {"objects": DjangosUserManager()}, "UserManager"),
    **{
        f"{what} of a numbered item": (NumberedItem, names, reason)
        for what, names, reason in [
            ("a table for guard items", {"Meta": {"guard_table": "guards"}}, "guard_table"),
            ("an attribute called as a method", {"digest": TextAttribute()}, "called digest"),
            ("an attribute as the order", {"ordered_by": TextAttribute()}, "called ordered_by"),
            ("another type", {"number": TextAttribute(range_key=True)}, "come with NumberedItem"),
            ("another name", {"request_id": TextAttribute(attr_name="id")}, "come with Numbered"),
        ]
    },
}


@pytest.mark.parametrize(
    ("base", "names", "reason"), REFUSED_SUBCLASSES.values(), ids=REFUSED_SUBCLASSES
)
def test_a_subclass_that_cannot_be_right_is_refused_when_it_is_made(
    base: type, names: dict[str, Any], reason: str
) -> None:
    with pytest.raises(TypeError, match=f"Thing: .*{reason}") as refused:
        declared(base, **names)
    assert TABLE not in tables_declared(), refused


def test_a_meta_without_a_table_does_not_replace_that_of_a_base() -> None:
    meta = type("Meta", (), {"verbose_name": "kitten"})

    with pytest.raises(TypeError, match=r"Derive it: class Meta\(Base\.Meta\)"):
        type(Model)("Kitten", (Cat,), {"Meta": meta, "__module__": __name__})


def test_a_subclass_can_replace_and_remove_what_a_base_declares() -> None:
    model = declared(Cat, name=TextAttribute(max_length=9), code=None, unique_code=None)
    again = declared(model, code=TextAttribute(), unique_name=Unique("name", "code"))

    assert "code" not in model.get_attributes()
    assert model.get_attributes()["name"].max_length == 9
    assert [key.names for key in again._unique_keys] == [("name", "code")]
