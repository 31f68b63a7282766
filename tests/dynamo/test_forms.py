"""Forms of models keep the promises of the model across pages."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from secrets import randbelow
from typing import Any
from uuid import uuid4

import pytest
from django import forms
from django.core import signing
from django.core.exceptions import FieldError, ImproperlyConfigured
from django.http import QueryDict
from django.utils import timezone
from pynamodb import attributes as pynamodb

from dynamo import (
    AlreadyDone,
    DateTimeAttribute,
    IntegerAttribute,
    Model,
    Refused,
    RequestIdReused,
    Stale,
    Taken,
    TextAttribute,
    Transaction,
)
from dynamo.forms import ModelForm, RequestIdForm, modelform_factory
from dynamo.inputs import SingleLine
from dynamo.wire.fields import NumberField, field_of
from tests.dynamo.adminpages import Form
from tests.dynamo.desk.models import Badge, Chair, Customer, Seat
from tests.items import put_item, stored_items
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


class CustomerForm(ModelForm[Customer]):
    class Meta:
        model = Customer
        fields = (
            *("email", "club", "card", "plan", "balance", "is_known", "born", "called"),
            "details",
        )


ANN = {"email": "Ann@example.org", "club": "chess", "plan": "free"}
SeatForm = modelform_factory(Seat, fields=["hall", "row", "guest"])


def sent(shown: ModelForm[Any], **values: Any) -> dict[str, Any]:
    """What a browser sends of a form that was shown, after somebody typed `values`."""
    names = [field.html_name for field in shown]
    data = {name: shown[name].value() for name in names}
    return {name: value for name, value in (data | values).items() if value is not None}


def create(**values: Any) -> Customer:
    form = CustomerForm(sent(CustomerForm(), **ANN | values))
    assert form.is_valid(), form.errors
    return form.save()


# Fields -------------------------------------------------------------------------------------------


def test_a_form_has_the_fields_of_the_attributes_in_the_order_of_their_declaration() -> None:
    form = modelform_factory(Customer, fields="__all__")()

    assert [
        (name, type(field).__name__, field.required) for name, field in form.fields.items()
    ] == [
        ("email", "CharField", True),
        ("club", "CharField", True),
        ("card", "CharField", False),
        ("plan", "TypedChoiceField", True),
        ("visits", "IntegerField", True),
        ("balance", "DecimalField", False),
        ("is_known", "BooleanField", False),
        ("wants_mail", "NullBooleanField", False),
        ("born", "DateField", False),
        ("called", "DateTimeField", False),
        ("details", "JSONField", False),
        ("notes", "CharField", False),
        ("region", "CharField", False),
        ("request_id", "HiddenField", False),
    ]
    assert form.fields["email"].label == "Email address"
    assert form.fields["card"].help_text == "On the back."
    assert form["visits"].value() == 0
    assert 'maxlength="100"' in str(form["email"])
    # It has a default, so no empty choice.
    assert [value for value, _label in form.fields["plan"].choices] == ["free", "paid"]


@pytest.mark.parametrize(
    ("attribute", "field"),
    [
        (pynamodb.UnicodeAttribute(), forms.CharField),
        (pynamodb.NumberAttribute(), NumberField),
        (pynamodb.BooleanAttribute(), forms.BooleanField),
        (pynamodb.UTCDateTimeAttribute(), forms.DateTimeField),
        (pynamodb.JSONAttribute(), forms.JSONField),
        (pynamodb.UnicodeSetAttribute(), type(None)),
        (pynamodb.VersionAttribute(), type(None)),
        (pynamodb.MapAttribute(), type(None)),
    ],
)
def test_attributes_of_pynamodb_have_derived_fields_or_none(
    attribute: pynamodb.Attribute[Any], field: type
) -> None:
    assert type(field_of("name", attribute).formfield()) is field


@pytest.mark.parametrize(
    "options", [{}, {"labels": {"name": "Its name"}}], ids=["plain", "labeled"]
)
def test_an_attribute_that_people_type_cleans_its_value_in_a_form(options: dict[str, Any]) -> None:
    class Shop(Model):
        class Meta:
            table_name = "tests-shops"

        name = SingleLine("Name", max_length=10, rule=str.title)

    form_class = modelform_factory(Shop, fields=["name"], **options)
    form = form_class(sent(form_class(), name=" tea room "))

    assert (form.is_valid(), form.instance.name) == (True, "Tea Room")
    assert form.fields["name"].label == options.get("labels", {}).get("name", "Name")
    assert form_class(sent(form_class(), name="eleven char")).errors["name"]


def test_a_field_that_is_excluded_is_not_an_attribute_even_if_it_is_named_or_declared() -> None:
    class Form(ModelForm[Customer]):
        club = forms.CharField()

        class Meta:
            model = Customer
            fields = ("email", "club", "tags")
            exclude = ("club", "tags")

    assert ([*Form.base_fields], [*Form.model_fields]) == (["email", "club"], ["email"])


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (FieldError, "Unknown field", {"fields": ["nothing"]}),
        (FieldError, "non-editable", {"fields": ["joined"]}),
        (FieldError, "non-editable", {"fields": ["pk"]}),
        (FieldError, "Unknown field", {"fields": ["version"]}),
        (FieldError, "UnicodeSetAttribute.*field_classes", {"fields": ["tags"]}),
        (TypeError, "cannot be a string", {"fields": "email"}),
        (ImproperlyConfigured, "without", {}),
    ],
)
def test_a_form_that_cannot_be_made_says_why(
    error: type[Exception], message: str, options: dict[str, Any]
) -> None:
    with pytest.raises(error, match=message):
        modelform_factory(Customer, **options)
    with pytest.raises(ValueError, match="no model"):
        ModelForm()


# Values -------------------------------------------------------------------------------------------


def test_what_is_typed_is_stored_and_shown_again(settings: Any) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    typed = {
        "card": "",
        "plan": "paid",
        "balance": "12345678901234567890123456789012345.67",
        "is_known": "on",
        "called": "2026-11-21 09:30",
        "details": '{"a": [1, null]}',
    }
    with timezone.override("Asia/Tokyo"):
        stored = Customer.get(create(**typed).pk)
        form = CustomerForm(instance=stored)

        assert {name: getattr(stored, name) for name in [*typed, "notes"]} == {
            "card": None,
            "plan": "paid",
            "balance": Decimal("12345678901234567890123456789012345.67"),
            "is_known": True,
            "called": datetime(2026, 11, 21, 0, 30, tzinfo=UTC),
            "details": {"a": [1, None]},
            "notes": "",
        }
        assert 'value="2026-11-21 09:30:00"' in str(form["called"])
        assert "{&quot;a&quot;: [1, null]}" in str(form["details"])

        again = CustomerForm(sent(form), instance=Customer.get(stored.pk))
        assert again.is_valid()
        assert again.save().stored == stored.stored


def test_an_edit_removes_what_was_emptied_and_keeps_what_is_not_shown_or_not_sent() -> None:
    form_class = modelform_factory(Customer, fields=["email", "club", "card", "notes", "is_known"])
    customer = create(card="A-17", is_known="on")
    customer.change(visits=7, notes="VIP")
    data = sent(form_class(instance=customer), card="")
    # As in Django: a box that is not ticked is not sent.
    del data["notes"], data["is_known"]

    form_class(data, instance=customer).save()

    stored = Customer.get(customer.pk)
    assert (stored.card, stored.is_known, stored.visits) == (None, False, 7)
    assert stored.notes == "VIP"


class Loose(ModelForm[Customer]):
    """Its fields check less than the attributes do."""

    email = forms.CharField(required=False)
    club = forms.CharField(required=False, empty_value=None)
    region = forms.CharField(required=False, initial="north")
    visits = forms.IntegerField(required=False)

    class Meta:
        model = Customer
        fields = (
            *("email", "club", "card", "visits", "balance", "details", "born", "called"),
            *("notes", "region"),
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("email", "ann"),
        ("email", f"{'a' * 100}@example.org"),
        ("club", ""),
        ("card", "x" * 3000),
        ("region", ""),
        ("region", "x" * 2049),
        ("visits", "9" * 39),
        ("visits", "9" * 5000),
        ("visits", "many"),
        ("visits", ""),
        ("balance", "1e500"),
        ("balance", "1.234"),
        ("details", "{"),
        ("details", r'"\ud800"'),
        ("born", "2026-02-30"),
        ("called", "0001-01-01 00:00"),
        ("notes", "x" * 410_000),
    ],
)
def test_a_value_that_cannot_be_stored_is_an_error_at_its_field(
    name: str, value: str, requests_sent: Requests
) -> None:
    with timezone.override("Europe/Rome"):
        form = Loose(sent(Loose(), **{**ANN, name: value}))

        # The item is too large, not the one value.
        assert list(form.errors) == ["__all__" if name == "notes" else name]
    with pytest.raises(ValueError, match="Customer could not be created"):
        form.save()
    assert requests_sent.operations == []


@pytest.mark.parametrize("year", [1, 999, 9999])
def test_a_time_of_any_year_is_read_as_it_was_typed(year: int) -> None:
    customer = create(called=f"{year:04}-06-01 10:00")

    assert Customer.get(customer.pk).called == datetime(year, 6, 1, 10, tzinfo=UTC)


def test_a_stored_choice_that_is_not_offered_any_more_has_to_be_chosen_again() -> None:
    customer = Customer.create(email="a@example.org", club="go", plan="gold")

    form = CustomerForm(sent(CustomerForm(instance=customer)), instance=customer)

    assert list(form.errors) == ["plan"]


def test_choices_have_the_type_of_the_attribute() -> None:
    groups = [("Often", [(1, "high"), (2, "low")])]
    required: Any = field_of("urgency", IntegerAttribute(choices=groups)).formfield()
    few = IntegerAttribute(choices=lambda: [(1, "one")], null=True)
    optional: Any = field_of("level", few).formfield()

    assert required.clean("2") == 2
    assert optional.clean("") is None
    assert [value for value, _label in optional.choices] == ["", 1]


# Taken --------------------------------------------------------------------------------------------


def test_all_taken_values_are_errors_at_once_whose_messages_can_be_replaced(
    requests_sent: Requests,
) -> None:
    create(card="A-17")
    values = ANN | {"email": "ANN@example.org", "card": "A-17"}
    form = CustomerForm(sent(CustomerForm(), **values))
    before = stored_items("tests-customers")
    assert form.is_valid()
    requests_sent.clear()

    assert form.try_save() is None

    assert requests_sent.operations == ["TransactWriteItems"]
    assert form.errors == {
        "email": ["Customer with this Email address already exists."],
        "__all__": ["Customer with this Club and Card already exists."],
    }
    assert form.errors.as_data()["email"][0].code == "unique"
    assert stored_items("tests-customers") == before
    with pytest.raises(Taken):
        CustomerForm(form.data).save()

    others = {"email": {"unique": "We know you."}, "__all__": {"unique_together": "It is used."}}
    fields = ["email", "club", "card"]
    form_class = modelform_factory(Customer, fields=fields, error_messages=others)
    form = form_class(sent(form_class(), **values))
    assert form.try_save() is None
    assert form.errors == {"email": ["We know you."], "__all__": ["It is used."]}


def test_a_key_that_exists_or_belongs_to_a_guard_item_is_an_error(requests_sent: Requests) -> None:
    Seat.create(hall="red", row=1)
    form = SeatForm(sent(SeatForm(), hall="red", row="1"))
    form.is_valid()
    form.try_save()
    assert form.errors == {"__all__": ["Seat with this Hall and Row already exists."]}

    requests_sent.clear()
    form_class = modelform_factory(Badge, fields=["code"])
    for code in ["email#ann@example.org", "x" * 2049]:
        assert form_class(sent(form_class(), code=code)).errors == {
            "code": ["Enter a valid value."]
        }
    assert requests_sent.operations == []


# Sent twice ---------------------------------------------------------------------------------------


def test_a_form_that_is_sent_again_with_other_values_asks_before_it_creates_another() -> None:
    data = sent(CustomerForm(), **ANN)
    CustomerForm(data).save()
    form = CustomerForm({**data, "email": "bob@example.org"})

    assert form.is_valid()
    assert form.try_save() is None
    assert "Send it again to create another customer." in form.errors["__all__"][0]
    assert len(list(Customer.scan())) == 1
    assert CustomerForm(form.data).save().email == "bob@example.org"


@pytest.mark.parametrize("request_id", ["", "forged", "forged:signature", "of another model", None])
def test_a_form_without_a_genuine_request_id_creates_nothing_and_can_be_sent_again(
    request_id: str | None, requests_sent: Requests
) -> None:
    if request_id == "of another model":
        request_id = SeatForm()["request_id"].value()
    form = CustomerForm(ANN if request_id is None else {**ANN, "request_id": request_id})

    assert not form.is_valid()
    assert "request_id is missing or was changed" in form.errors["__all__"][0]
    assert requests_sent.operations == []
    assert CustomerForm(form.data).is_valid()


def test_a_form_of_a_model_without_a_place_for_request_ids_says_so_when_it_is_shown() -> None:
    with pytest.raises(TypeError, match=r"Meta\.guard_table"):
        modelform_factory(Chair, fields=["hall", "number"])()


def test_values_that_the_form_does_not_show_are_set_on_its_instance() -> None:
    data = sent(CustomerForm(), **ANN)

    def post(visits: int, **values: Any) -> Customer:
        instance = Customer(notes="by phone", **values) if values else None
        form = CustomerForm(data, instance=instance)
        form.instance.visits = visits
        return form.save()

    first = post(3)
    assert Customer.get(first.pk).visits == 3
    assert post(3) == first
    with pytest.raises(RequestIdReused):
        post(4)

    data = sent(CustomerForm(), **ANN | {"email": "bob@example.org"})
    second = post(1, joined=datetime(2020, 1, 1, tzinfo=UTC), pk="own-key")
    assert post(1, joined=datetime(2020, 1, 1, tzinfo=UTC), pk="own-key") == second
    stored = Customer.get("own-key")
    assert (stored.notes, stored.visits, stored.joined.year) == ("by phone", 1, 2020)


@pytest.mark.parametrize("is_joined", [False, True])
def test_a_form_that_is_saved_twice_stores_once_and_then_what_was_set_since(
    is_joined: bool, requests_sent: Requests
) -> None:
    form = CustomerForm(sent(CustomerForm(), **ANN))
    assert form.is_valid()
    write = Transaction() if is_joined else None
    first = form.save(write=write)
    if write:
        write.commit()
    requests_sent.clear()

    # As an overridden `form_valid` that saves, and then calls that of its base.
    assert form.save() is form.try_save() is first
    assert requests_sent.operations == []
    form.instance.visits = 7
    form.save()
    assert [item.visits for item in Customer.scan()] == [7]


def test_a_form_can_remove_fields_when_it_is_made(requests_sent: Requests) -> None:
    class Short(CustomerForm):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            for name in ("card", "born"):
                del self.fields[name]

    form = Short(sent(Short(), **ANN, card="A", born="2000-01-01"))
    assert form.is_valid(), form.errors
    stored = form.save()
    assert (stored.card, stored.born) == (None, None)

    stored.change(card="B", born=date(2000, 1, 1))
    shown = sent(Short(instance=stored), club="go")
    Customer.get(stored.pk).change(card="C")
    stored = Customer.get(stored.pk)
    overtaken = Short(shown, instance=stored)
    assert not overtaken.is_valid()
    assert overtaken.errors.keys() == {"__all__", "club"}
    again = Short(sent(Short(instance=stored), club="go"), instance=stored)
    assert again.is_valid(), again.errors
    again.save()
    assert (stored.club, stored.card, stored.born) == ("go", "C", date(2000, 1, 1))
    # Sent once more: nothing of what it shows differs.
    requests_sent.clear()
    assert Short(shown, instance=Customer.get(stored.pk)).is_valid()


def test_the_instance_of_a_form_is_an_object_of_its_model() -> None:
    for wrong in ("1", Badge(code="1"), Customer):
        with pytest.raises(TypeError, match="The instance of a CustomerForm is a Customer, not"):
            CustomerForm(instance=wrong)  # type: ignore[arg-type]


def test_save_without_commit_names_the_right_call() -> None:
    form = CustomerForm(sent(CustomerForm(), **ANN))

    with pytest.raises(TypeError, match=r"form\.instance"):
        form.save(commit=False)
    with pytest.raises(ValueError, match="could not be created"):
        CustomerForm().save()
    assert list(Customer.scan()) == []


def test_a_form_joins_a_transaction_and_shows_only_its_own_refusal() -> None:
    def save_both(row: int) -> ModelForm[Customer]:
        form = CustomerForm(sent(CustomerForm(), **ANN))
        try:
            with Transaction() as write:
                form.save(write=write)
                Seat.create(hall="red", row=row, write=write)
        except Taken as error:
            form.add_refusal(error)
        except Refused as error:
            with pytest.raises(Refused):
                form.add_refusal(error)
        return form

    assert save_both(1).instance == Customer.find(email="Ann@example.org")
    assert list(save_both(2).errors) == ["email"]
    # Of two refusals, one is about another item.
    assert not save_both(1).errors
    assert len(list(Customer.scan())) == len(list(Seat.scan())) == 1


def test_a_transaction_is_done_once_if_its_other_writes_have_the_request_id_too() -> None:
    data = sent(SeatForm(), hall="red", row="1")

    def post(code: str, request_id: str | None = None) -> Any:
        form = SeatForm(data)
        try:
            with Transaction() as write:
                form.save(write=write)
                Badge.create(code=code, request_id=request_id or form.hidden_value(), write=write)
        except AlreadyDone as error:
            form.add_refusal(error)
        return form.errors

    assert post("A") == post("A") == {}
    assert "Part of this was done before" in post("B", "another")["__all__"][0]
    assert [item.code for item in Badge.scan()] == ["A"]


# Overtaken ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before the view reads", "after the view reads"])
def test_a_form_that_was_overtaken_shows_what_is_stored_and_keeps_what_was_typed(when: str) -> None:
    customer = create(card="A-17")
    data = sent(
        CustomerForm(instance=customer), email="ann@example.net", card="A-18", details="[1]"
    )
    form = CustomerForm(data, instance=Customer.get(customer.pk))
    is_late = when == "after the view reads"
    if is_late:
        assert form.is_valid()
    customer.change(club="go", card=None, plan="paid", is_known=True, balance=Decimal("2.5"))
    customer.change(details={"name": "é"}, born=date(2000, 2, 29))
    if is_late:
        with pytest.raises(Stale):
            form.save()
        assert form.try_save() is None
    else:
        form = CustomerForm(data, instance=Customer.get(customer.pk))
    before = stored_items("tests-customers")

    assert form.errors == {
        "__all__": [
            "The customer was changed after this page was opened, so nothing was done. Check what "
            "is stored now, then send the form again."
        ],
        "email": ["Stored now: Ann@example.org"],
        "club": ["Stored now: go"],
        "card": ["Stored now: –"],
        "plan": ["Stored now: Paid monthly"],
        "balance": ["Stored now: 2.50"],
        "is_known": ["Stored now: Yes"],
        "born": ["Stored now: 2000-02-29"],
        "details": ['Stored now: {"name": "é"}'],
    }
    assert form["card"].value() == "A-18"
    with pytest.raises(ValueError, match="could not be changed"):
        form.save()
    assert stored_items("tests-customers") == before

    again = CustomerForm(sent(form), instance=Customer.get(customer.pk))
    assert again.is_valid(), again.errors
    assert again.save().card == "A-18"
    assert Customer.find(club="chess", card="A-18") == customer


def test_an_overtaken_form_also_shows_its_other_errors() -> None:
    customer = create()
    data = sent(CustomerForm(instance=customer), email="nothing")
    # The form does not show it.
    customer.change(add={"visits": 1})

    form = CustomerForm(data, instance=customer)

    both = {"Stored now: Ann@example.org", "Enter a valid email address."}
    assert set(form.errors["email"]) == both
    assert form.errors.keys() == {"__all__", "email"}


def test_an_edit_that_is_sent_twice_is_a_success_without_a_second_write(
    requests_sent: Requests,
) -> None:
    customer = create()
    data = sent(CustomerForm(instance=customer), club="go", called="2026-11-21 10:00")
    first = CustomerForm(data, instance=Customer.get(customer.pk)).save()
    stored = Customer.get(customer.pk)
    requests_sent.clear()

    form = CustomerForm(data, instance=stored)

    assert form.is_valid(), form.errors
    assert form.save() == first
    assert requests_sent.operations == []
    assert Customer.get(customer.pk).version == first.version


def test_a_form_whose_item_was_deleted_after_it_was_read_says_so() -> None:
    customer = create()
    form = CustomerForm(sent(CustomerForm(instance=customer), club="go"), instance=customer)
    assert form.is_valid()
    Customer.get(customer.pk).delete()

    assert form.try_save() is None

    assert "was deleted after this page was opened" in form.errors["__all__"][0]
    assert (list(form.errors), form["club"].value()) == (["__all__"], "go")
    assert stored_items("tests-customers") == {}


@pytest.mark.parametrize(
    "forge",
    [
        lambda _customer: "",
        lambda customer: str(customer.version),
        lambda customer: signing.Signer().sign(str(customer.version)),
        lambda _customer: CustomerForm(instance=create(email="bob@x.example"))["version"].value(),
    ],
    ids=["missing", "without a signature", "signed for something else", "of another item"],
)
def test_a_version_that_is_not_genuine_is_refused(forge: Callable[[Customer], str]) -> None:
    customer = create()
    data = sent(CustomerForm(instance=customer), club="go", version=forge(customer))

    errors = CustomerForm(data, instance=customer).errors

    assert "version is missing or was changed" in errors["__all__"][0]


def test_an_item_that_was_stored_without_a_version_can_be_edited_once_per_form() -> None:
    item = {"pk": {"S": "old"}, "email": {"S": "old@example.org"}, "club": {"S": "go"}}
    put_item(Customer.table(), **item)
    data = sent(CustomerForm(instance=Customer.get("old")), club="chess", plan="free")

    form = CustomerForm(data, instance=Customer.get("old"))
    assert form.is_valid(), form.errors
    form.save()

    assert Customer.get("old").club == "chess"
    late = CustomerForm({**data, "club": "bridge"}, instance=Customer.get("old"))
    assert late.errors["club"] == ["Stored now: chess"]
    twice = CustomerForm(data, instance=Customer.get("old"))
    twice.instance.notes = "more"
    assert twice.is_valid(), twice.errors
    assert twice.try_save() is None
    assert Customer.get("old").notes == ""


def test_a_form_is_not_compared_with_an_object_that_is_older_than_its_page() -> None:
    customer = create()
    older = Customer.get(customer.pk)
    customer.change(club="go")
    form = CustomerForm(sent(CustomerForm(instance=customer), club="chess"), instance=older)

    assert form.errors["club"] == ["Stored now: go"]
    assert form.errors["__all__"][0].startswith("The customer was changed after this page")


class Visit(Customer):
    """Has attributes whose defaults differ each time."""

    class Meta:
        table_name = "tests-customers"

    began = DateTimeAttribute(default=lambda: datetime.now(UTC) + timedelta(days=randbelow(10**4)))
    number = TextAttribute(default_for_new=lambda: str(uuid4()))


@pytest.mark.parametrize("prefix", [None, "rows"])
def test_a_blank_extra_form_of_a_formset_with_any_fields_is_unchanged(prefix: str | None) -> None:
    form = modelform_factory(Visit, fields="__all__")
    formset = forms.formset_factory(form, extra=3, can_order=True, can_delete=True)
    values = Form(str(formset(prefix=prefix))).values
    name = f"{prefix or 'form'}-1"
    typed = {f"{name}-email": "ann@example.org", f"{name}-club": "chess"}

    [blank, filled, incomplete] = [
        formset(values | item, prefix=prefix) for item in ({}, typed, {f"{name}-club": "chess"})
    ]

    assert (blank.is_valid(), blank.has_changed(), filled.is_valid()) == (True, False, True)
    assert [item.has_changed() for item in filled] == [False, True, False]
    assert [item.save().email for item in filled if item.has_changed()] == ["ann@example.org"]
    assert (incomplete.is_valid(), [*incomplete.errors[1]]) == (False, ["email"])


def test_the_key_of_a_stored_item_cannot_be_edited() -> None:
    seat = Seat.create(hall="red", row=1)
    form = SeatForm({**sent(SeatForm(instance=seat)), "row": "2", "guest": "Ann"}, instance=seat)

    assert "disabled" in str(form["row"])
    assert form.is_valid()
    form.save()
    assert {(item.row, item.guest) for item in Seat.query("red")} == {(1, "Ann")}


class DaysForm(RequestIdForm):
    request_id_salt = "tests"
    days = forms.MultipleChoiceField(choices=[("mon", "Monday"), ("tue", "Tuesday")])


@pytest.mark.parametrize("prefix", [None, "order"])
def test_a_form_without_a_model_has_a_new_request_id(prefix: str | None) -> None:
    shown = [DaysForm(prefix=prefix), DaysForm(prefix=prefix, initial={"days": ["mon"]})]
    ids = {}
    for form in shown:
        values = Form(str(form)).values
        sent = DaysForm({**values, form.add_prefix("days"): ["mon"]}, prefix=prefix)
        assert sent.is_valid(), sent.errors
        ids[sent.cleaned_data["request_id"]] = form
        # A forged id is replaced, and the form can be sent again.
        forged = DaysForm({**values, form.add_prefix("request_id"): "forged"}, prefix=prefix)
        assert not forged.is_valid()
        again = Form(str(forged)).values | {form.add_prefix("days"): ["mon"]}
        assert DaysForm(again, prefix=prefix).is_valid()
    assert len(ids) == 2


def test_a_form_with_a_refused_request_id_keeps_all_that_was_chosen() -> None:
    form = DaysForm(QueryDict("days=mon&days=tue&request_id=forged"))

    assert form.errors.keys() == {"request_id"}

    assert form["days"].value() == ["mon", "tue"]
    again = QueryDict(mutable=True)
    again.setlist("days", form["days"].value())
    again["request_id"] = form["request_id"].value()
    assert DaysForm(again).is_valid()
