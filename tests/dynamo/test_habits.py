"""What a Django developer types from habit works, or is refused with the right call."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django import forms
from django.core import serializers
from django.core.exceptions import FieldError, ObjectDoesNotExist, ValidationError
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.template import Context, Engine
from django.test import RequestFactory
from django.utils.translation import gettext_lazy
from django.views import generic

from dynamo import (
    BooleanAttribute,
    DamagedItem,
    DateAttribute,
    DateTimeAttribute,
    DecimalAttribute,
    DynamoError,
    IntegerAttribute,
    Model,
    Refused,
    Rejected,
    TextAttribute,
    Transaction,
    Unavailable,
    Unique,
    casefolded,
)
from dynamo.client.plain import all_models
from dynamo.forms import modelform_factory
from dynamo.model.managers import Manager
from dynamo.tables.checks import check_overrides
from tests.dynamo.desk.models import Customer
from tests.faults.kinds import DropReply
from tests.faults.proxy import FaultProxy
from tests.items import overwrite
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

OLD = datetime(2026, 1, 1, tzinfo=UTC)


class Pet(Model):
    class Meta:
        table_name = "tests-habits-pets"

    name = TextAttribute(max_length=20, error_messages={"required": "Which pet?"})
    chip = TextAttribute(null=True, unique=True, error_messages={"unique": "This chip is used."})
    note = TextAttribute(blank=True)
    owner = TextAttribute(null=True, blank=False)
    weight = IntegerAttribute(null=True, min_value=1, max_value=90)
    price = DecimalAttribute(null=True, min_value=0)
    visits = IntegerAttribute(default=0, editable=False)
    kind = TextAttribute(default="cat", choices=[("cat", "Cat"), ("dog", "Dog of any size")])
    born = DateAttribute(null=True)
    since = DateAttribute(auto_now_add=True)
    changed_at = DateTimeAttribute(auto_now=True)


PetForm = modelform_factory(Pet, fields="__all__")


def typed(instance: Pet | None = None, **values: object) -> Any:
    """A bound form with these values."""
    blank = PetForm(instance=instance)
    shown = {name: blank[name].value() for name in blank.fields}
    return PetForm({**shown, "name": "Tom", "owner": "Ann", **values}, instance=instance)


# Options of attributes ----------------------------------------------------------------------------


def test_forms_apply_the_options_of_djangos_fields() -> None:
    form = PetForm()
    assert {"since", "changed_at", "visits"}.isdisjoint(form.fields)
    required = {name for name, field in form.fields.items() if field.required}
    assert required == {"name", "owner", "kind"}
    assert 'min="1" max="90"' in str(form["weight"])
    assert 'min="0"' in str(form["price"])

    wrong = typed(name="", weight="0", price="-1", owner="")
    assert {name: len(errors) for name, errors in wrong.errors.items()} == dict.fromkeys(
        ("name", "weight", "price", "owner"), 1
    )
    assert wrong.errors["name"] == ["Which pet?"]

    before = DateAttribute.now()
    pet = typed(weight="90", chip="A1").save()
    assert (pet.note, pet.weight) == ("", 90)
    assert before <= pet.since <= DateAttribute.now()
    taken = typed(chip="A1")
    assert taken.is_valid()
    assert taken.try_save() is None
    assert taken.errors == {"chip": ["This chip is used."]}


def test_a_text_that_may_be_blank_needs_no_value() -> None:
    assert Pet.create(name="Tom").note == ""
    with pytest.raises(ValueError, match="name"):
        Pet.create(note="without a name")


def test_unique_is_short_for_a_unique_that_compares_values_as_they_are() -> None:
    tom = Pet.create(name="Tom", chip="A1")

    with pytest.raises(Pet.Taken) as caught:
        Pet.create(name="Kit", chip="A1")
    assert caught.value.uniques == [("chip",)]
    assert Pet.create(name="Kit", chip="a1") != tom
    assert Pet.find(chip="A1") == tom
    assert Pet.unique_chip.names == ("chip",)  # type: ignore[attr-defined]


def test_a_unique_of_ones_own_takes_the_place_of_the_short_form() -> None:
    class Base(Model):
        email = TextAttribute(unique=True)
        card = TextAttribute(unique=True)

        unique_email = Unique("email", normalize=casefolded)

    assert Base.unique_email.normalize is casefolded
    for names in ({"unique_card": Unique("card", "email")}, {"unique_card": "card"}):
        with pytest.raises(TypeError, match=r"unique=True of card .* another name"):
            type(Model)("Thing", (Model,), {**vars(Base), **names})


def test_auto_now_is_the_time_of_the_last_write_that_changed_something() -> None:
    pet = Pet.create(name="Tom", changed_at=OLD)
    assert pet.changed_at == OLD
    stale = Pet.get(pet.pk)

    pet.change(name="Tom")
    assert Pet.get(pet.pk).changed_at == OLD
    for change in (
        lambda: pet.change(name="Kit"),
        lambda: (setattr(pet, "name", "Max"), pet.save()),
        lambda: typed(pet, name="Leo").save(),
        # Also from an outdated copy, whose other values are not written.
        lambda: stale.change(add={"visits": 1}),
    ):
        before = datetime.now(UTC)
        change()
        assert before <= Pet.get(pet.pk).changed_at <= datetime.now(UTC)
    now = Pet.get(pet.pk)
    assert (now.name, now.visits, now.since) == ("Leo", 1, pet.since)
    now.change(changed_at=OLD)
    assert Pet.get(pet.pk).changed_at == OLD


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        (TextAttribute, {"max_lenght": 3}, "Use max_length"),
        (IntegerAttribute, {"upload_to": ""}, "Use one of its options: attr_name, blank, .*max_va"),
        (DecimalAttribute, {"max_digit": 3}, "Use max_digits"),
        (TextAttribute, {"choices": ["S", "M"]}, "pairs of a value and its label"),
        (TextAttribute, {"choices": "SM"}, "pairs of a value and its label"),
        (TextAttribute, {"max_length": "3"}, "a number of characters, not '3'"),
        (TextAttribute, {"validators": len}, "validators is a list of functions"),
        (TextAttribute, {"validators": ["len"]}, "validators is a list of functions"),
        (IntegerAttribute, {"label": 3}, "The label is a text, not 3"),
        (TextAttribute, {"on_delete": None}, "a deletion does not look for references"),
        (TextAttribute, {"related_name": "pets"}, "Use a GlobalSecondaryIndex"),
        (IntegerAttribute, {"max_length": 3}, "max_length is an option of TextAttribute"),
        (TextAttribute, {"min_value": 0}, "min_value is an option of IntegerAttribute and Dec"),
        (BooleanAttribute, {"auto_now": True}, "auto_now is an option of DateAttribute and Date"),
        (DateAttribute, {"auto_now": True, "hash_key": True}, "not for keys"),
        (DateAttribute, {"auto_now_add": True, "default": OLD.date()}, "with a default"),
    ],
)
def test_an_option_that_an_attribute_does_not_know_is_refused_with_a_clear_error(
    kind: Any, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(TypeError, match=reason):
        kind(**options)


def test_a_value_that_each_write_changes_cannot_be_unique() -> None:
    names = {"Meta": type("Meta", (), {"table_name": "tests-habits"}), "__module__": __name__}
    with pytest.raises(TypeError, match="auto_now changes it"):
        type(Model)("Thing", (Model,), {**names, "at": DateAttribute(auto_now=True, unique=True)})


# Transactions -------------------------------------------------------------------------------------


def test_refused_is_an_error_of_the_library_and_a_group() -> None:
    tom, kit = (Pet.create(name=name, chip=name) for name in ("Tom", "Kit"))

    def swap() -> None:
        with Transaction() as write:
            Pet.create(name="Leo", chip="Tom", write=write)
            Pet.create(name="Max", chip="Kit", write=write)

    with pytest.raises(DynamoError) as refused:
        swap()
    error = refused.value
    assert isinstance(error, Refused)
    assert str(error) == "Another pet has the chip Tom. Another pet has the chip Kit."
    assert isinstance(error.derive([KeyError()]), Refused)
    found = []
    try:
        swap()
    except* Pet.Taken as taken:
        found = [item.values for item in taken.exceptions]
    assert found == [{"chip": tom.chip}, {"chip": kit.chip}]


async def _await(call: Callable[[], Any]) -> None:
    async with Transaction() as write:
        await Pet.acreate(name="Leo", write=write)
        call()


def _in_block(call: Callable[[], Any]) -> None:
    with Transaction() as write:
        Pet.create(name="Leo", write=write)
        call()


def _nested() -> None:
    with Transaction():
        pass


INSIDE = (
    r"inside of .* Pass write=write to each call\. If it is wanted in any case, open `with "
    r"Transaction\(independent=True\) as own` and pass write=own\.$"
)


@pytest.mark.parametrize(
    "block", [_in_block, lambda call: asyncio.run(_await(call))], ids=["with", "async with"]
)
@pytest.mark.parametrize("call", [_nested, lambda: Pet.create(name="Kit")], ids=["with", "create"])
def test_what_would_be_committed_although_the_transaction_around_it_fails_is_refused(
    block: Callable[[Any], None], call: Callable[[], Any]
) -> None:
    for _again in range(2):
        with pytest.raises(TypeError, match=INSIDE):
            block(call)
    assert list(Pet.scan()) == []

    block(lambda: None)
    assert [pet.name for pet in Pet.scan()] == ["Leo"]
    # Neither block is open any more.
    call()


def test_an_independent_transaction_is_committed_even_if_the_one_around_it_fails() -> None:
    with suppress(KeyError), Transaction() as write:
        Pet.create(name="Leo", write=write)
        with Transaction(independent=True) as own:
            Pet.create(name="Kit", write=own)
        raise KeyError

    assert [pet.name for pet in Pet.scan()] == ["Kit"]


# Methods of models --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values", [{"chip": "A1"}, {"pk": "tom"}], ids=["by a Unique", "by the key"]
)
def test_calls_at_once_get_or_create_one_item(
    values: dict[str, Any], at_once: Callable[..., list[Any]]
) -> None:
    found = at_once(
        lambda number: Pet.get_or_create({"name": "Tom", "note": lambda: f"{number}"}, **values), 16
    )

    assert sorted(is_new for _pet, is_new in found) == [False] * 15 + [True]
    [tom] = Pet.scan()
    assert {(pet.pk, pet.note) for pet, _is_new in found} == {(tom.pk, tom.note)}
    assert Pet.get_or_create(**values) == (tom, False)


@pytest.mark.parametrize(
    "values", [{"chip": "A1"}, {"pk": "tom"}], ids=["by a Unique", "by the key"]
)
def test_calls_at_once_update_or_create_one_item_and_undo_nothing(
    values: dict[str, Any], at_once: Callable[..., list[Any]]
) -> None:
    def call(number: int) -> tuple[Pet, bool]:
        which = "note" if number % 2 else "owner"
        return Pet.update_or_create({which: f"{number}", "name": "Tom"}, **values)

    found = at_once(call, 16)

    assert sorted(is_new for _pet, is_new in found) == [False] * 15 + [True]
    [tom] = Pet.scan()
    assert int(tom.note) % 2 == 1
    assert int(tom.owner) % 2 == 0
    new = {"name": "Kit", "note": "new"}
    assert Pet.update_or_create({"note": "old"}, new, **values)[0].note == "old"
    tom.refresh()
    tom.delete()
    kit, is_new = Pet.update_or_create({"note": "old"}, new, **values)
    assert (is_new, kit.note) == (True, "new")


@pytest.mark.parametrize("values", [{"chip": "A1"}, {"pk": "tom"}])
def test_an_item_that_is_deleted_meanwhile_is_created_again(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    create, others = Pet.create, [Pet.create(name="Kit", **values)]
    others[0].delete()

    def create_late(**new: Any) -> Pet:
        # Another caller creates the item first, and deletes it before this one can read it.
        if len(others) > 3:
            return create(**new)
        others.append(create(name="Leo", **values))
        try:
            return create(**new)
        finally:
            others[-1].delete()

    monkeypatch.setattr(Pet, "create", create_late)
    tom, is_new = Pet.get_or_create({"name": "Tom"}, **values)

    assert (tom.name, is_new, len(others)) == ("Tom", True, 4)
    assert [*Pet.scan()] == [tom]


@pytest.mark.parametrize("values", [{"chip": "A1"}, {"pk": "tom"}])
def test_a_lost_reply_changes_no_answer(values: dict[str, Any], proxy: FaultProxy) -> None:
    for operation in ("PutItem", "TransactWriteItems"):
        proxy.plan(operation, DropReply())
    tom, is_new = Pet.get_or_create({"name": "Tom"}, **values)
    assert is_new

    proxy.forget()
    proxy.plan("UpdateItem", DropReply())
    assert Pet.update_or_create({"name": "Kit"}, **values) == (tom, False)
    assert Pet.get(tom.pk).name == "Kit"


def test_get_or_create_says_what_it_cannot_do() -> None:
    Pet.create(name="Tom", chip="A1")

    with pytest.raises(Pet.Taken):
        Pet.get_or_create({"name": "Kit", "chip": "A1"}, pk="kit")
    with pytest.raises(TypeError, match=r"the key .* or the attributes of one Unique"):
        Pet.get_or_create(name="Tom")
    for empty in (None, ""):
        with pytest.raises(ValueError, match="by an empty chip"):
            Pet.get_or_create({"name": "Tom"}, chip=empty)
    assert len([*Pet.scan()]) == 1


def test_many_items_are_created_with_one_report() -> None:
    Pet.create(name="Tom", chip="7")
    pets = [Pet(name=f"{number}", chip=f"{number}") for number in range(300)]
    wrong = [Pet(name="A", chip="7"), Pet(), Pet(name=1), Pet(name="x" * 500_000)]
    progress: list[int] = []

    report = Pet.create_many(iter(pets + wrong), workers=4, progress=progress.append)

    assert report.stored == 299
    assert [item for item, _error in report.refused] == [pets[7], *wrong]
    kinds = [type(error) for _item, error in report.refused]
    assert kinds[:2] == [Pet.Taken, Pet.Taken]
    assert issubclass(kinds[2], ValueError)
    assert kinds[3:] == [TypeError, Rejected]
    assert sum(progress) == 304
    assert pets[8].stored
    assert len([*Pet.scan()]) == 300
    # What was stored is left as it is.
    assert Pet.create_many(pets).stored == 299
    pets[9].name = "set since"
    assert [str(error) for _item, error in Pet.create_many([pets[9]]).refused] == [
        "This object is stored already: save() stores what was set."
    ]
    with pytest.raises(TypeError, match="inside of"), Transaction():
        Pet.create_many(pets)
    for other in ({"name": "Tom"}, Shelf(number=1)):
        with pytest.raises(TypeError, match="takes objects of Pet"):
            Pet.create_many([other])  # type: ignore[list-item]
    assert [*Shelf.scan()] == []


def test_what_was_not_stored_while_dynamodb_was_down_is_stored_by_the_same_call(
    proxy: FaultProxy, impatient: None
) -> None:
    pets = [Pet(name=f"{number}") for number in range(8)]
    proxy.plan("PutItem", DropReply(), times=100)
    with pytest.raises(Unavailable):
        Pet.create_many(pets)
    proxy.forget()

    assert Pet.create_many(pets).refused == []
    assert len([*Pet.scan()]) == 8


def test_save_has_djangos_options() -> None:
    tom, new = Pet.create(name="Tom"), Pet(name=gettext_lazy("Kit"))

    for item, options, error, said in (
        (tom, {"force_insert": True}, Pet.AlreadyExists, "this key already"),
        (new, {"force_update": True}, TypeError, "neither read nor stored"),
        (new, {"update_fields": ["name"]}, TypeError, "neither read nor stored"),
        (new, {"force_insert": True, "update_fields": ["name"]}, ValueError, "force_insert"),
        (new, {"using": "other"}, TypeError, "leave out using='other'"),
    ):
        call: Any = item.save
        with pytest.raises(error, match=said):
            call(**options)
    assert [*Pet.scan()] == [tom]

    new.save(force_insert=True, using="default")
    tom.delete()
    tom.save(force_insert=True)
    tom.name = "Max"
    tom.save(force_update=True)
    assert sorted(pet.name for pet in Pet.scan()) == ["Kit", "Max"]


def test_refresh_from_db_is_refresh() -> None:
    pet = Pet.create(name="Tom")
    Pet.get(pet.pk).change(name="Kit")

    pet.refresh_from_db()

    assert pet.name == "Kit"
    with pytest.raises(TypeError, match="the whole item"):
        pet.refresh_from_db(fields=["name"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="leave out using='other'"):
        pet.refresh_from_db(using="other")


def test_async_for_reads_page_by_page(requests_sent: Requests) -> None:
    pets = [Pet.create(name=f"{number}") for number in range(5)]
    overwrite(pets[0], visits={"S": "damaged"})
    requests_sent.operations.clear()

    async def read(found: Any) -> list[Any]:
        return [item async for item in found]

    async def names() -> None:
        errors: list[Any] = []
        scanned = await read(Pet.scan(page_size=2, damaged=lambda *args: errors.append(args)))
        assert {pet.name for pet in scanned} == {"1", "2", "3", "4"}
        assert len(errors) == 1
        assert len(requests_sent.operations) >= 3
        assert await read(Pet.query(pets[1].pk)) == [pets[1]]
        found = Pet.scan(page_size=2)
        seen = []
        for _part in range(2):
            with suppress(DamagedItem):
                async for pet in found:
                    seen.append(pet.name)
        assert sorted(seen) == ["1", "2", "3", "4"]

    asyncio.run(names())


def test_a_choice_is_shown_by_its_label() -> None:
    pet: Any = Pet(name="Rex", kind="dog")

    assert pet.get_kind_display() == "Dog of any size"
    pet.kind = "cow"
    assert pet.get_kind_display() == "cow"
    assert not hasattr(pet, "get_name_display")


class Visit(Model):
    class Meta:
        table_name = "tests-habits-visits"

    pet = TextAttribute(max_length=10)
    begins = DateAttribute()
    ends = DateAttribute()
    room = IntegerAttribute(null=True, max_value=9)

    unique_place = Unique("begins", "room")

    def clean(self) -> None:
        self.pet = self.pet.title()
        if self.ends < self.begins:
            raise ValidationError({"ends": "It ends before it begins."})


class Hour(Model):
    class Meta:
        table_name = "tests-hours"

    room = TextAttribute()
    begins = IntegerAttribute(error_messages={"unique_together": "This hour is taken."})

    unique_place = Unique("room", "begins")


def test_several_taken_values_are_an_error_at_the_attribute_that_has_its_text() -> None:
    Hour.create(room="red", begins=9)
    form_class = modelform_factory(Hour, fields=["room", "begins"])
    hidden = form_class()["request_id"].value()
    form = form_class({"room": "red", "begins": "9", "request_id": hidden})

    assert form.is_valid()
    assert form.try_save() is None
    assert form.errors == {"begins": ["This hour is taken."]}
    with pytest.raises(ValidationError) as refused:
        Hour(room="red", begins=9).full_clean()
    assert refused.value.message_dict == {"begins": ["This hour is taken."]}
    form_class = modelform_factory(Hour, fields=["room"])
    form = form_class({"room": "red", "request_id": form_class()["request_id"].value()})
    form.instance.begins = 9
    assert form.is_valid()
    assert form.try_save() is None
    assert form.errors == {"__all__": ["This hour is taken."]}


class Fee(Model):
    class Meta:
        table_name = "tests-fees"

    amount = DecimalAttribute(max_digits=3, decimal_places=2, default=0)


def test_clean_of_a_model_checks_its_forms_and_full_clean() -> None:
    form_class = modelform_factory(Visit, fields="__all__")

    def form(instance: Visit | None = None, **values: object) -> Any:
        blank = form_class(instance=instance)
        shown = {name: blank[name].value() for name in blank.fields}
        day = {"pet": "tom", "begins": "2026-11-21", "ends": "2026-11-22", "room": "1"}
        return form_class({**shown, **day, **values}, instance=instance)

    assert form(ends="2026-11-20").errors == {"ends": ["It ends before it begins."]}
    assert form(ends="2026-11-20", room="10").errors.keys() == {"ends", "room"}
    visit = form().save()
    assert visit.pet == "Tom"
    edited = form(visit, pet="kit")
    assert edited.save().pet == "Kit"

    day = {"begins": visit.begins, "ends": visit.begins}
    new = Visit(pet="a name that is too long", room=10, **day)
    with pytest.raises(ValidationError) as refused:
        new.full_clean()
    assert refused.value.message_dict.keys() == {"pet", "room"}
    new = Visit(pet="leo", room=1, **day)
    with pytest.raises(ValidationError, match="already exists"):
        new.full_clean()
    new.full_clean(validate_unique=False)
    assert new.pet == "Leo"
    new.full_clean(exclude=["room"])
    visit.full_clean()
    assert (new._state.adding, visit._state.adding) == (True, False)
    typed: Any = Visit(pet="leo", room="2", begins="2026-11-21", ends="x")
    with pytest.raises(ValidationError) as refused:
        typed.clean_fields()
    assert refused.value.message_dict.keys() == {"ends"}
    typed.ends = "2026-11-22"
    typed.full_clean()
    assert (typed.room, typed.begins) == (2, visit.begins)
    Fee(amount=2).full_clean()
    with pytest.raises(ValidationError, match="no more than 1 digit before"):
        Fee(amount=20).full_clean()
    typed.room = "two"
    with pytest.raises(ValidationError) as refused:
        typed.full_clean()
    assert refused.value.message_dict.keys() == {"room"}


# Managers -----------------------------------------------------------------------------------------


class Basket(Model):
    """A key of two parts, and a searchable value."""

    class Meta:
        table_name = "tests-habits-baskets"
        verbose_name = "basket"

    shop = TextAttribute(hash_key=True)
    number = IntegerAttribute(range_key=True)
    label = TextAttribute(null=True)
    unique_label = Unique("label", searchable=True)


class OfNorth(Manager[Any]):
    def get_queryset(self) -> Any:
        return self.page("north")


class Shelf(Model):
    class Meta:
        table_name = "tests-habits-shelves"

    number = IntegerAttribute(hash_key=True)


def test_shortcuts_and_managers_read_by_key_and_unique() -> None:
    tom = Pet.objects.create(name="Tom", chip="A1")
    basket = Basket.create(shop="north", number=7)
    shelf = Shelf.create(number=3)

    assert get_object_or_404(Pet, pk=tom.pk) == get_object_or_404(Pet, chip="A1") == tom
    assert get_object_or_404(Pet.objects, chip="A1") == tom
    assert get_object_or_404(Basket, shop="north", number=7) == basket
    assert (basket.pk, shelf.pk) == (("north", 7), 3)
    assert Basket.objects.get(pk=("north", "7")) == basket
    assert get_object_or_404(Shelf, pk="3") == Shelf.objects.get(number=3) == shelf
    with pytest.raises(ObjectDoesNotExist):
        Pet.objects.get(pk="nobody")
    for model, values in (
        (Pet, {"pk": "nobody"}),
        (Pet, {"chip": "A2"}),
        (Shelf, {"pk": "x"}),
        (Basket, {"pk": ("north", "x")}),
        (Basket, {"pk": ("north",)}),
    ):
        with pytest.raises(Http404):
            get_object_or_404(model, **values)
    assert Basket.objects.get_or_create(pk=("north", "7")) == (basket, False)
    assert Basket.objects.get_or_create(pk=("north", 8))[1]
    assert Shelf.objects.update_or_create(pk="4") == (Shelf(number=4), True)
    assert Pet.objects.get_or_create(chip="A1") == (tom, False)
    assert Pet.objects.update_or_create({"name": "Kit"}, chip="A1") == (tom, False)
    assert [*Pet.objects.all()] == [tom]
    assert Pet.objects.all().exists()
    assert not Pet.objects.none().exists()
    assert (bool(Pet.objects.all()), bool(Pet.objects.none())) == (True, False)
    with pytest.raises(TypeError, match=r"page\(…\)"):
        Pet.objects.all()[:10]
    for call in (lambda: len(Pet.objects), Pet.objects.all().count):
        with pytest.raises(TypeError, match="sum"):
            call()
    for find in (Pet.objects.get, Pet.objects.all().get):
        with pytest.raises(TypeError, match=r"Use Pet.objects.get\(pk=…\) or Pet.get\(…\)"):
            find(tom.pk)
    with pytest.raises(AttributeError, match=r"One item: objects.get\(pk=…\)"):
        Pet.objects.filter(pk=tom.pk)
    assert Pet.objects.using("default").get(chip="A1") == tom
    with pytest.raises(TypeError, match="leave out using='other'"):
        Pet.objects.using("other")
    with pytest.raises(AttributeError, match=r"has no 'create_many'. Use Pet.create_many"):
        _ = Pet.objects.create_many
    with pytest.raises(TypeError, match=r"a list of names: \['name'\]"):
        Pet.get(tom.pk, attributes_to_get="name")
    with pytest.raises(AttributeError, match=r"Pet.objects has no 'order_by'. Use Pet.page"):
        generic.UpdateView(model=Pet).get_queryset().order_by("x")

    async def read() -> None:
        assert await Pet.objects.aget(chip="A1") == tom
        assert await Pet.objects.acreate(name="Leo") != tom
        assert not (await Pet.objects.aget_or_create(chip="A1"))[1]
        assert not (await Pet.objects.aupdate_or_create(chip="A1"))[1]
        assert len([item async for item in Pet.objects.all()]) == 2
        assert await Pet.objects.all().aexists()

    asyncio.run(read())


def test_items_are_read_once_and_templates_show_their_number(requests_sent: Requests) -> None:
    for number in range(3):
        Basket.create(shop="north", number=number)
    requests_sent.operations.clear()
    text = "{% if found %}{{ found|length }}:{% for one in found %}{{ one.number }}{% endfor %}"
    found = Basket.objects.page("north")

    shown = Engine().from_string(text + "{% endif %}").render(Context({"found": found}))

    assert shown == "3:012"
    assert requests_sent.operations == ["Query"] * 2  # `if` reads as little as it can
    assert [*found] == [*found.all()]
    assert requests_sent.operations == ["Query"] * 3
    new = Basket.create(shop="north", number=3)
    assert found.get(pk=new.pk) == new


def test_a_custom_manager_finds_the_items_of_its_get_queryset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Basket, "objects", OfNorth())
    north, south = (Basket.create(shop=shop, number=1) for shop in ("north", "south"))

    assert (
        [*Basket.objects.all()] == [*Basket.objects.get_queryset()] == [*Basket.objects] == [north]
    )
    assert Basket.objects.exists()
    assert Basket.objects.get(pk=north.pk) == north
    for found in (Basket, Basket.objects):
        with pytest.raises(Http404):
            get_object_or_404(found, pk=south.pk)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Pet.filter(name="Tom"), r"'filter'\. Use Pet\.page\(…\)"),
        (lambda: Pet.all(), r"'all'\. Use Pet\.objects\.all\(…\)"),
        (lambda: Pet.first(), r"'first'\. Use Pet\.by_….page.*with an index by_… of"),
        (lambda: Basket.objects.last(), r"'last'\. Use Basket\.page\(partition, .*\)\.items\.$"),
        (lambda: Customer.first(), r"'first'\. Use Customer\.by_club\.page\(partition, "),
        (lambda: Pet.bulk_create([]), r"'bulk_create'\. Use Pet\.create_many"),
        (lambda: Pet.nonsense, "has no attribute 'nonsense'$"),
        (lambda: Pet.scan().filter(name="Tom"), r"no 'filter'\. Give conditions"),
        (lambda: Pet.query("1").first(), r"no 'first'\. Give conditions"),
    ],
)
def test_calls_of_querysets_on_a_model_or_its_results_name_the_right_one(
    call: Callable[[], Any], said: str
) -> None:
    with pytest.raises(AttributeError, match=said):
        call()


def test_generic_views_of_django_name_those_of_the_library() -> None:
    for view in (generic.DetailView, generic.UpdateView, generic.DeleteView):
        with pytest.raises(AttributeError, match=r"Generic views are those of dynamo\.views"):
            view.as_view(model=Pet)(RequestFactory().get("/"), pk="1")


def test_a_field_of_a_form_has_the_items_of_a_page_or_a_search() -> None:
    north, south = (Basket.create(shop="north", number=n, label=f"ba{n}") for n in (1, 2))
    shelf = Shelf.create(number=3)
    Shelf.create(number=4)

    class MoveForm(forms.Form):
        near = forms.ModelChoiceField(Shelf.objects.all())
        page = forms.ModelChoiceField(Basket.objects.page("north", limit=1), to_field_name="label")
        found = forms.ModelChoiceField(
            Basket.objects.search("label", "ba2"), to_field_name="label", required=False
        )
        no = forms.ModelChoiceField(Shelf.objects.none(), required=False)

    form = MoveForm({"near": "3", "page": "ba1", "found": "ba2"})

    assert form.is_valid(), form.errors
    assert form.cleaned_data == {"near": shelf, "page": north, "found": south, "no": None}
    assert '<option value="3" selected>' in str(form["near"])
    # The first stands for no item; Django 6.1 names it otherwise.
    assert [str(label) for _value, label in form.fields["page"].choices][1:] == ["ba1"]
    assert "ba1" in str(form["page"])
    assert "ba2" not in str(form["page"])
    for wrong in ({"page": "ba2"}, {"near": "5"}, {"near": "x"}, {"no": "3"}, {"found": "ba1"}):
        refused = MoveForm({"near": "3", "page": "ba1", **wrong})
        assert refused.errors.keys() == wrong.keys()
    field = forms.ModelChoiceField(Basket.objects.page("north"))
    with pytest.raises(
        FieldError, match=r"pk=\(shop, number\)\. A ModelChoiceField needs to_field"
    ):
        field.clean(str(north.pk))


def test_items_are_serialized() -> None:
    tom = Pet.create(name="Tom", chip="A1", price=Decimal("1.5"))
    Basket.create(shop="north", number=7)

    [found] = json.loads(serializers.serialize("json", Pet.scan()))
    assert found["pk"] == tom.pk
    assert found["model"] == "tests.dynamo.test_habits.pet"
    assert found["fields"]["price"] == "1.5"
    for kind in ("python", "xml", "jsonl"):
        assert "north" in str(serializers.serialize(kind, Basket.objects.all()))


# Meta ---------------------------------------------------------------------------------------------


class Animal(Model):
    class Meta:
        abstract = True
        verbose_name = "animal"

    name = TextAttribute(unique=True)


class Cow(Animal):
    class Meta(Animal.Meta):  # type: ignore[name-defined]
        table_name = "tests-habits-cows"


def test_an_abstract_model_has_no_table_and_its_subclasses_have_their_own() -> None:
    cow = Cow.create(name="Bella")

    assert Cow.find(name="Bella") == cow
    assert str(Cow._meta.verbose_name) == "animal"
    assert Animal not in all_models()
    for call in (
        lambda: Animal.create(name="Bella"),
        lambda: Animal.objects.get(pk="1"),
        lambda: [*Animal.objects.all()],
        lambda: type(Model)("Sheep", (Model,), {"__module__": __name__}).page("1"),
    ):
        with pytest.raises(TypeError, match=r"has no table: name one in Meta\.table_name"):
            call()
    meta = type("Meta", (), {"abstract": True, "table_name": "tests-habits-sheep"})
    with pytest.raises(TypeError, match="Sheep: an abstract model has no table"):
        type(Model)("Sheep", (Model,), {"Meta": meta, "__module__": __name__})


@pytest.mark.parametrize(
    ("method", "others"),
    [
        ("save", "create and change"),
        ("create", "forms, save and create_many"),
        ("from_db", "reads"),
    ],
)
def test_a_check_finds_a_method_that_others_do_not_call(
    method: str, others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Animal, method, lambda _self, **_options: None, raising=False)

    found = [item for item in check_overrides() if "test_habits" in item.msg]

    assert [(item.id, item.msg) for item in found] == [
        ("dynamo.W006", f"{others} do not call {__name__}.Animal.{method}.")
    ]
    assert "clean()" in str(found[0].hint)
