"""A number is one value in every spelling: typed, stored, as a key, in guard items."""

import json
from decimal import Decimal
from typing import Any

import pynamodb.attributes as pynamodb
import pytest
from django.http import Http404
from hypothesis import HealthCheck, given, settings, strategies as st

from dynamo import (
    DecimalAttribute,
    GlobalSecondaryIndex,
    IntegerAttribute,
    JSONAttribute,
    Model,
    TextAttribute,
    Unique,
)
from dynamo.admin.identity import id_of, with_id
from dynamo.forms import modelform_factory
from dynamo.views import get_object_or_404
from dynamo.wire.values import is_same_value
from tests.emptying import empty
from tests.items import stored_items
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


def model_of(kind: Any) -> Any:
    """A model whose sort key, unique value and index are numbers of this kind."""

    class Measure(Model):
        class Meta:
            table_name = f"tests-{kind.__name__}"

        class ByValue(GlobalSecondaryIndex[Any]):
            value = kind(hash_key=True)

        scale = TextAttribute(hash_key=True)
        place = kind(range_key=True)
        value = kind()
        by_value = ByValue()

        unique_value = Unique("value")
        unique_on_scale = Unique("scale", "value")

    return Measure


class ExponentAttribute(DecimalAttribute):
    """One of a project's own, which writes another spelling."""

    def stored(self, value: Decimal | int) -> str:
        return f"{super().stored(value)}E0"


KINDS = [IntegerAttribute, DecimalAttribute, pynamodb.NumberAttribute, ExponentAttribute]
MODELS = [model_of(item) for item in KINDS]
EXACT = MODELS[1]
#: By the attributes of `Jar`.
NUMBERS = dict(zip(["whole", "exact", "rough"], MODELS[:3], strict=True))
FORMS = {model: modelform_factory(model, fields=["place", "value"]) for model in MODELS}


@st.composite
def spellings(draw: Any) -> list[str]:
    """Three texts of one number, whether DynamoDB can store it or not."""
    nonzero = st.text("123456789", min_size=1, max_size=2)
    digits = draw(st.just("0") | nonzero | st.text("0123456789", min_size=1, max_size=40))
    zeros = draw(st.integers(0, 3) | st.sampled_from([36, 37, 38, 39, 124, 125, 126]))
    places = draw(st.just(0) | st.integers(0, 4) | st.sampled_from([38, 129, 130, 131, 168, 400]))
    sign = draw(st.sampled_from(["", "-"]))
    other = draw(st.sampled_from(["", "-"])) if not digits.strip("0") else sign
    number = Decimal(f"{sign}{digits}{'0' * zeros}E-{places}")
    return draw(
        st.permutations(
            [
                f"{number:f}",
                f"{other}00{digits}E{zeros - places}",
                f"{other}{digits}{'0' * zeros}.00" if not places else f"{number}",
            ]
        )
    )


def can_be_stored(number: Decimal) -> bool:
    """DynamoDB's rule: up to 38 digits, and 0 or a magnitude of 1E-130 to 9.99…E+125."""
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    return not digits or (len(digits) <= 38 and -130 <= number.adjusted() <= 125)


def form_of(model: Any, typed: dict[str, str], instance: Any = None) -> Any:
    """The form that was shown for `instance`, or for a new item, with what was typed."""
    instance = instance or model(scale="s")
    shown = FORMS[model](instance=instance)
    hidden = {name: shown[name].value() for name in shown.fields}
    return FORMS[model](hidden | typed, instance=instance)


@pytest.mark.fault_of("moto", "cannot update an item with a number of 39 digits")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.Meta.table_name)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(texts=spellings())
def test_a_number_that_a_form_takes_is_one_value_in_each_spelling_from_create_to_delete(
    model: Any, texts: list[str]
) -> None:
    guards = model._guard_table().name
    number = Decimal(texts[0])
    empty(model.table(), guards)
    valid = [
        form
        for form in (form_of(model, {"place": text, "value": text}) for text in texts)
        if form.is_valid()
    ]
    # A form of integers takes no exponents, and a float cannot hold every number.
    is_expected = can_be_stored(number) and (model is EXACT or bool(valid))
    assert bool(valid) == is_expected
    if not valid:
        return
    values = [form.cleaned_data["value"] for form in valid]

    item = valid[0].save()

    for value in values:
        read = model.find(value=value)
        assert read == item == model.get("s", value) == model.find(scale="s", value=value)
        assert Decimal(str(read.value)) == Decimal(str(read.place)) == number
        assert [*model.by_value.page(value)] == [with_id(model, id_of(read))] == [item]
        with pytest.raises(model.Taken):
            model.create(scale="other", place=value, value=value)
        with pytest.raises(model.AlreadyExists):
            model.create(scale="s", place=value, value=7 if number != 7 else 8)
        read.change(value=read.value)
        read.change(value=value)
        edited = form_of(model, {}, read)
        assert edited.is_valid(), edited.errors
        edited.save()
    model.find(value=values[-1]).delete()
    assert stored_items(guards) == {}
    made = [model.create(scale="s", place=value, value=value, request_id="r") for value in values]
    assert made == [item] * len(values)
    made[-1].delete()
    assert stored_items(guards) == {}


class Jar(Model):
    """An item with each kind of attribute that holds numbers."""

    class Meta:
        table_name = "tests-jars"

    exact = DecimalAttribute(null=True)
    whole = IntegerAttribute(null=True)
    rough = pynamodb.NumberAttribute(null=True)
    text = JSONAttribute(null=True)
    document = pynamodb.JSONAttribute(null=True)
    sizes = pynamodb.NumberSetAttribute()
    rows: Any = pynamodb.ListAttribute(null=True)


NOT_JSON = ["NaN", "-Infinity", '{"a": NaN}', "[1e400]"]
#: What is typed for values that DynamoDB, or JSON, cannot hold; by attribute.
UNUSABLE: dict[str, tuple[Any, list[str]]] = {
    "exact": (Decimal, ["1E-131", "1E+126", "NaN", "-Infinity", "1" * 39, "1E+99999", "1" * 5000]),
    "whole": (int, ["1" * 39, f"1{'0' * 126}"]),
    "rough": (float, ["1e-131", "5e-324", "1e126", "1e400", "nan", "-inf"]),
    "text": (json.loads, NOT_JSON),
    "document": (json.loads, NOT_JSON),
    "sizes": (lambda text: {float(text)}, ["1e-131", "nan"]),
    "rows": (lambda text: [[float(text)]], ["1e-131", "nan"]),
}
FORMS[Jar] = modelform_factory(Jar, fields=["exact", "whole", "rough", "text", "document"])


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, (_read, texts) in UNUSABLE.items() for text in texts]
)
def test_a_number_that_cannot_be_stored_is_an_error_at_its_field_and_of_each_call(
    name: str, text: str, requests_sent: Requests
) -> None:
    jar = Jar.create()
    requests_sent.clear()
    value = UNUSABLE[name][0](text)
    for form in (form_of(Jar, {name: text}, item) for item in (Jar(), jar)):
        assert form.errors.keys() == {name} & FORMS[Jar].base_fields.keys()
    for call in (Jar.create, jar.change):
        with pytest.raises(ValueError, match=r"store|JSON"):
            call(**{name: value})
    if name in NUMBERS:
        model = NUMBERS[name]
        for read in (lambda: model.get("s", value), lambda: model.find(value=value)):
            with pytest.raises(model.DoesNotExist):
                read()
        assert [*model.by_value.page(value)] == [*model.batch_get([("s", value)])] == []
        with pytest.raises(Http404):
            get_object_or_404(model, "s", text)
    assert requests_sent.operations == []


@pytest.mark.fault_of("moto", "cannot scan a list with a number of 39 digits")
def test_the_numbers_of_sets_and_lists_are_one_value_in_each_spelling() -> None:
    jar = Jar.create(request_id="r", sizes={-0.0, 1e38}, rows=[-0.0, [1e38]])

    same = Jar.create(request_id="r", sizes={10**38, 0}, rows=[0, [10**38]])

    assert same == jar
    assert is_same_value({"M": Jar.get(jar.pk).stored}, {"M": jar.stored})
    assert [jar.stored[name] for name in ("sizes", "rows")] == [
        {"NS": ["0", f"1{'0' * 38}"]},
        {"L": [{"N": "0"}, {"L": [{"N": f"1{'0' * 38}"}]}]},
    ]


class Price(Model):
    class Meta:
        table_name = "tests-prices"

    amount = DecimalAttribute(hash_key=True, max_digits=6, decimal_places=2)
    before = DecimalAttribute(null=True, decimal_places=2)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("12.5", "12.50"), ("12.50", "12.50"), ("0", "0.00"), ("-0", "0.00"), ("-3", "-3.00"),
        ("1E+3", "1000.00"), ("0.005", "0.005"), ("1E+37", "1" + "0" * 37), ("1E-130", "1E-130"),
    ],
)  # fmt: skip
def test_a_number_is_read_with_its_decimal_places(written: str, read: str) -> None:
    made = Price.create(amount=Decimal(written), before=Decimal(written))

    price = Price.get(Decimal(written))

    assert (str(price.amount), str(price.before)) == (read, read)
    assert price == made == with_id(Price, id_of(price))
    price.change(before=price.before)
    assert not Price.get(price.amount)._assigned(price.stored)
    assert Price.page(price.amount).items == [price]
