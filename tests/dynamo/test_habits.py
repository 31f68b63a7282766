"""What a Django developer types from habit works, or is refused with the right call."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from dynamo import (
    BooleanAttribute,
    DateAttribute,
    DateTimeAttribute,
    DecimalAttribute,
    DynamoError,
    IntegerAttribute,
    Model,
    Refused,
    TextAttribute,
    Transaction,
    Unique,
    casefolded,
)
from dynamo.forms import modelform_factory

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
        (TextAttribute, {"db_index": True}, "no option db_index. Use a GlobalSecondaryIndex"),
        (TextAttribute, {"primary_key": True}, "Use hash_key=True"),
        (TextAttribute, {"verbose_name": "x"}, "Use the label, which is the first"),
        (TextAttribute, {"max_lenght": 3}, "Use max_length"),
        (IntegerAttribute, {"upload_to": ""}, "Use one of its options: attr_name, blank, .*max_va"),
        (DecimalAttribute, {"max_digit": 3}, "Use max_digits"),
        (IntegerAttribute, {"max_length": 3}, "max_length is an option of TextAttribute"),
        (TextAttribute, {"min_value": 0}, "min_value is an option of IntegerAttribute and Dec"),
        (BooleanAttribute, {"auto_now": True}, "auto_now is an option of DateAttribute and Date"),
        (DateAttribute, {"auto_now": True, "hash_key": True}, "not for keys"),
        (DateAttribute, {"auto_now_add": True, "default": OLD.date()}, "with a default"),
    ],
)
def test_an_option_that_an_attribute_does_not_know_is_refused_in_words(
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


@pytest.mark.parametrize(
    "block", [_in_block, lambda call: asyncio.run(_await(call))], ids=["with", "async with"]
)
@pytest.mark.parametrize("call", [_nested, lambda: Pet.create(name="Kit")], ids=["with", "create"])
def test_what_would_be_committed_although_the_transaction_around_it_fails_is_refused(
    block: Callable[[Any], None], call: Callable[[], Any]
) -> None:
    for _again in range(2):
        with pytest.raises(TypeError, match=r"inside of .* Pass write=write .*independent=True"):
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
