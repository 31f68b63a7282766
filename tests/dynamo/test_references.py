"""`Reference`: what an item refers to exists when that is written."""

import re
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from django import forms
from django.db import models as djangos
from django.http import Http404
from django.test import RequestFactory
from django.test.utils import isolate_apps
from django.utils.functional import SimpleLazyObject
from pynamodb.attributes import DiscriminatorAttribute
from rest_framework.test import APIRequestFactory

from dynamo import (
    DoesNotExist,
    GlobalSecondaryIndex,
    IntegerAttribute,
    Model,
    Reference,
    Refused,
    TextAttribute,
    Transaction,
    Unique,
)
from dynamo.forms import ModelForm, modelform_factory
from dynamo.rest import ModelSerializer, ModelViewSet
from dynamo.tables.checks import check_references
from dynamo.views import ListView, get_object_or_404
from tests.dynamo.test_habits import Basket
from tests.faults.kinds import DropReply
from tests.faults.proxy import FaultProxy
from tests.items import stored_items
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


class Patient(Model):
    class Meta:
        table_name = "tests-references-patients"
        verbose_name = "patient"

    name = TextAttribute()
    parent = Reference("self", null=True)


class Appointment(Model):
    class Meta:
        table_name = "tests-references-appointments"

    patient = Reference("Patient")
    payer = Reference(f"{__name__}.Patient", "who pays", null=True, unique=True)
    minutes = IntegerAttribute(default=10)


class Remark(Model):
    class Meta:
        table_name = "tests-references-remarks"

    about = Reference(Appointment)


class Reply(Model):
    class Meta:
        table_name = "tests-references-replies"

    class ByAbout(GlobalSecondaryIndex["Reply"]):
        about = Reference("Remark", hash_key=True)

    about = Reference("Remark")
    by_about = ByAbout()


class Share(Model):
    class Meta:
        table_name = "tests-references-shares"

    class ByHolder(GlobalSecondaryIndex["Share"]):
        holder = Reference(Patient, hash_key=True)

    holder = Reference(Patient)
    about = Reference(Remark)
    minutes = IntegerAttribute(default=10)

    by_holder = ByHolder()
    unique_share = Unique("holder", "about")


def create(name: str = "Ann", **values: Any) -> Patient:
    return Patient.create(name=name, **values)


def test_a_reference_is_checked_by_the_write_that_sets_it(requests_sent: Requests) -> None:
    ann, bob = create(), create("Bob")
    requests_sent.clear()

    first = Appointment.create(patient=ann)
    assert (first.patient, Appointment.get(first.pk).patient) == (ann.pk, ann.pk)
    first.change(minutes=20)
    first.change(patient=bob.pk)
    first.payer = bob.pk
    first.save()
    assert requests_sent.operations[0] == "TransactWriteItems"
    assert "UpdateItem" in requests_sent.operations
    bob.delete()
    # Only a new value is checked.
    first.change(minutes=30)
    first.change(payer=None)
    before = stored_items("tests-references-appointments")
    for call in (
        lambda: Appointment.create(patient=bob),
        lambda: Appointment.create(patient=ann, payer=bob),
        lambda: first.change(payer=bob.pk),
    ):
        with pytest.raises(Patient.DoesNotExist) as refused:
            call()
        assert refused.value.reference in {"patient", "payer"}
        assert bob.pk in str(refused.value)
    assert stored_items("tests-references-appointments") == before


@pytest.mark.parametrize("wrap", [lambda item: item, lambda item: SimpleLazyObject(lambda: item)])
def test_views_and_shortcuts_take_the_item_that_a_reference_names(wrap: Any) -> None:
    class ShareSerializer(ModelSerializer):
        class Meta:
            model = Share
            fields: ClassVar = ["pk"]

    class Shares(ModelViewSet):
        serializer_class = ShareSerializer
        authentication_classes: ClassVar = []
        index = Share.by_holder

    holder, other = create(), create("Bob")
    remark = Remark.create(about=Appointment.create(patient=holder))
    share = Share.create(holder=holder, about=remark)
    person, about = wrap(holder), wrap(remark)

    assert get_object_or_404(Share, holder=person, about=about) == share
    assert get_object_or_404(Share, pk=share.pk, holder=person, minutes="10") == share
    assert Share.objects.get(pk=share.pk, holder=person, minutes=10) == share
    assert Share.objects.get(holder=person, about=about, minutes=10) == share
    with pytest.raises(Share.DoesNotExist):
        Share.objects.get(holder=person, about=about, minutes=11)
    with pytest.raises(Share.Taken):
        Share.objects.get_or_create(holder=person, about=about, minutes=11)
    for wrong in ({"holder": wrap(other)}, {"holder": person, "minutes": 11}):
        with pytest.raises(Http404):
            get_object_or_404(Share, pk=share.pk, **wrong)
        with pytest.raises(Share.DoesNotExist):
            Share.objects.get(pk=share.pk, **wrong)
        with pytest.raises(Share.AlreadyExists):
            Share.objects.get_or_create(pk=share.pk, **wrong, defaults={"about": remark})
    with pytest.raises(TypeError, match="Share has no attribute keeper"):
        Share.objects.get(pk=share.pk, keeper=person)
    page = ListView.as_view(
        model=Share, index=Share.by_holder, partition=person, template_name="unused"
    )
    assert [*page(RequestFactory().get("/")).context_data["object_list"]] == [share]
    shown = Shares.as_view({"get": "list"}, partition=person)(APIRequestFactory().get("/"))
    assert shown.data["results"] == [{"pk": share.pk}]


@pytest.mark.fault_of("moto", "reports other capacity")
@pytest.mark.parametrize(
    ("values", "units"),
    [({}, 2 + 2), ({"payer": 0}, 4 + 2), ({"payer": 1}, 4 + 2 + 2)],
    ids=["one", "two to one item", "two"],
)
def test_what_references_cost(
    values: dict[str, int], units: float, requests_sent: Requests
) -> None:
    people = create(), create("Bob")
    requests_sent.clear()

    Appointment.create(patient=people[0], **{name: people[n] for name, n in values.items()})

    assert (len(requests_sent.operations), requests_sent.units) == (1, units)


def test_what_is_read_is_a_key_and_what_is_given_a_key_or_an_object() -> None:
    ann, bob = create(), create("Bob")
    appointment = Appointment(patient=ann, payer=ann.pk)
    assert (appointment.patient, appointment.payer) == (ann.pk, ann.pk)
    appointment.patient = bob
    assert appointment.patient == bob.pk
    with pytest.raises(TypeError, match="refers to Patient, not Appointment"):
        appointment.patient = appointment
    appointment.save()

    stored = Appointment.get(appointment.pk)
    assert stored.patient == bob.pk
    assert Appointment.find(payer=ann) == Appointment.objects.get(payer=ann.pk) == stored
    assert Appointment.get_or_create(payer=ann) == (stored, False)
    remark = Remark.create(about=stored)
    reply = Reply.create(about=remark)
    assert [*Reply.by_about.page(remark)] == [*Reply.by_about.query(remark.pk)] == [reply]
    with pytest.raises(TypeError, match="refers to Remark, not Patient"):
        Reply.by_about.page(ann)


def test_a_reference_joins_the_transaction_that_writes_its_target() -> None:
    with Transaction() as write:
        ann = Patient(pk="ann", name="Ann")
        Appointment.create(patient="ann", write=write)
        ann.insert(write=write)
    with Transaction() as write:
        ann.change(name="Bea", write=write)
        Appointment.create(patient=ann, write=write)
    with Transaction() as write:
        ann.require(write=write)
        Appointment.create(patient=ann, write=write)
    assert len(stored_items("tests-references-appointments")) == 3

    write = Transaction()
    ann.delete(write=write)
    with pytest.raises(ValueError, match="neither changed nor required"):
        Appointment.create(patient=ann, write=write)
    itself = Patient.create(pk="loop", name="Loop", parent="loop")
    assert itself.parent == itself.pk


def test_each_refused_reference_of_a_transaction_is_reported() -> None:
    def both() -> None:
        with Transaction() as write:
            Appointment.create(patient="x", write=write)
            Patient.create(name="Kit", parent="y", write=write)

    with pytest.raises(Refused) as refused:
        both()
    assert [error.reference for error in refused.value.exceptions] == ["patient", "parent"]  # type: ignore[attr-defined]
    assert list(Patient.scan()) == []


def test_a_lost_reply_changes_no_answer(proxy: FaultProxy) -> None:
    ann = create()
    proxy.plan("TransactWriteItems", DropReply())

    Appointment.create(patient=ann, request_id="form")

    assert Appointment.create(patient=ann, request_id="form").patient == ann.pk
    assert len(list(Appointment.scan())) == 1


def test_a_form_shows_at_the_field_what_does_not_exist() -> None:
    ann = create()

    def typed(form_class: Any, **values: str) -> ModelForm[Appointment]:
        form = form_class()
        shown = {name: form[name].value() for name in form.fields}
        return form_class({**shown, **values})  # type: ignore[no-any-return]

    plain = modelform_factory(Appointment, fields=["patient"])
    form = typed(plain, patient="nobody")
    assert form.is_valid()
    assert form.try_save() is None
    assert "patient" in form.errors
    assert typed(plain, patient=ann.pk).save().patient == ann.pk

    class Chosen(ModelForm[Appointment]):
        patient = forms.ModelChoiceField(Patient.objects.all())

        class Meta:
            model = Appointment
            fields = ("patient", "minutes")

    made = typed(Chosen, patient=ann.pk).save()
    assert made.patient == ann.pk
    again = Chosen(instance=made)
    assert f'value="{ann.pk}" selected' in str(again["patient"])
    sent = {name: again[name].value() for name in again.fields} | {"minutes": "40"}
    edited = Chosen(sent, instance=Appointment.get(made.pk))
    assert edited.is_valid()
    assert edited.save().minutes == 40
    assert "patient" in typed(Chosen, patient="nobody").errors


def test_a_key_that_no_item_can_have_is_not_referred_to() -> None:
    ann, bob = create(), create("Bob")
    Appointment.create(patient=ann, payer=bob)
    guard = str(Appointment.guard_key_of(payer=bob.pk))

    for key in (guard, "", "x" * 2049):
        with pytest.raises(Appointment.DoesNotExist):
            Remark.create(about=key)
    assert [*Remark.scan()] == []


class Branch(Model):
    """A base without a table: what is relative in it is relative to each subclass."""

    class Meta:
        abstract = True

    above = Reference("self", null=True)
    head = Reference("Patient", null=True)


class Ward(Branch):
    class Meta:
        table_name = "tests-references-wards"


class Clinic(Branch):
    class Meta:
        table_name = "tests-references-clinics"


def test_a_label_of_a_base_is_relative_to_each_subclass() -> None:
    ward, clinic = Ward.create(), Clinic.create()

    assert Ward.create(above=ward, head=create()).above == ward.pk
    with pytest.raises(Ward.DoesNotExist):
        Ward.create(above=clinic.pk)
    with pytest.raises(TypeError, match="above refers to Clinic, not Ward"):
        Clinic.create(above=ward)


class Animal(Model):
    class Meta:
        table_name = "tests-references-animals"

    kind = DiscriminatorAttribute()


class Dog(Animal, discriminator="dog"):
    friend = Reference("self", null=True)
    other = Reference(Animal, null=True)


class Puppy(Dog, discriminator="puppy"):
    pass


class Cat(Animal, discriminator="cat"):
    pass


def test_a_reference_to_a_class_of_a_table_is_not_one_to_its_other_classes() -> None:
    dog, puppy, cat = Dog.create(), Puppy.create(), Cat.create()

    assert Dog.create(friend=puppy, other=cat).other == cat.pk
    assert Puppy.create(friend=dog, other=dog).friend == dog.pk
    with pytest.raises(Dog.DoesNotExist) as refused:
        Dog.create(friend=cat.pk)
    assert refused.value.reference == "friend"


def declared(reference: Reference) -> Any:
    meta = type("Meta", (), {"table_name": "tests-references-declared"})
    names = {"Meta": meta, "__module__": __name__, "place": reference}
    return type(Model)("Place", (Model,), names)


@pytest.mark.parametrize("label", ["clinic.Nobody", "Nobody", f"{__name__}.Basket"])
def test_a_label_that_no_model_has_is_found_by_check_and_refused_at_first_use(label: str) -> None:
    model = declared(Reference(label))

    try:
        said = rf"Reference place: no model has the label \S*{label}"
        [found] = [item for item in check_references() if re.search(said, item.msg)]
        assert found.id == "dynamo.E015"
        with pytest.raises(TypeError, match=said):
            model.create(place="1")
    finally:
        model.Meta = None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Reference(str), "a model of the library, or its label"),
        (lambda: Reference(Patient, blank=True), "blank=True needs null=True"),
        (lambda: Reference(Patient, djangos.CASCADE), "no option on_delete. Use a count"),
        (lambda: Reference(None), "a model of the library, or its label"),  # type: ignore[arg-type]
        (lambda: declared(Reference(Basket)), "Place: .*key of Basket is not a single text"),
        (lambda: declared(Reference(Branch)), "Place: Branch has no table"),
        (lambda: Appointment.create(patient=Appointment(pk="1")), "refers to Patient, not App"),
    ],
)
def test_a_reference_that_cannot_be_right_is_refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


@isolate_apps("dynamo")
def test_a_foreign_key_of_djangos_orm_is_found_by_its_own_check() -> None:
    wrong: Any = djangos.ForeignKey
    meta = type("Meta", (), {"app_label": "dynamo"})
    names = {"patient": wrong(Patient, djangos.CASCADE), "Meta": meta, "__module__": __name__}
    letter: Any = type("Letter", (djangos.Model,), names)

    found = letter._meta.get_field("patient").check()

    assert "fields.E300" in [item.id for item in found]


def test_the_error_is_that_of_the_model_and_of_the_library() -> None:
    with pytest.raises(DoesNotExist, match=r"^patient: there is no patient x\.$"):
        Appointment.create(patient="x")
