"""Numbered items are issued, changed under a version, and never created or deleted otherwise."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import FieldError
from pynamodb.attributes import TTLAttribute

from dynamo import Stale, TextAttribute, Transaction, Unique
from dynamo.forms import ModelForm, modelform_factory
from sequences import NumberedItem, RequestIdReused, issue
from tests.commands import run
from tests.numbered import Entry, Ticket, new_series, stored_items, stored_numbers

pytestmark = pytest.mark.usefixtures("engine")

_calls = itertools.count(1)


class Note(NumberedItem):
    """The attribute `code` has another value in each object."""

    class Meta:
        table_name = "testNotes"

    text = TextAttribute()
    code = TextAttribute(default=lambda: f"code {next(_calls)}")


ISSUE = "call sequences.issue"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda ticket: Ticket.create(series=ticket.series, number=2, subject="x"), ISSUE),
        (lambda ticket: Ticket.create_many([Ticket(ticket.series, 2, subject="x")]), ISSUE),
        (lambda ticket: Ticket.objects.create(series=ticket.series, subject="x"), ISSUE),
        (lambda ticket: Ticket(ticket.series, 2, subject="x").insert(), ISSUE),
        (lambda ticket: Ticket(ticket.series, 2, subject="x").save(), ISSUE),
        (lambda ticket: Ticket.get_or_create(subject="x"), "Give the key"),
        (Ticket.delete, "leave a gap"),
        (lambda ticket: ticket.change(number=5), "number of an item cannot be changed"),
        (
            lambda ticket: ticket.change(request_id="another"),
            "request_id of an item cannot be changed",
        ),
        (lambda ticket: issue(ticket, series=ticket.series), "It was issued already"),
        (
            lambda ticket: issue(ticket, series=ticket.series, request_id="another"),
            "It was issued already",
        ),
    ],
)
def test_a_call_that_leaves_a_gap_or_loses_a_change_is_refused(
    call: Callable[[Ticket], Any], said: str
) -> None:
    ticket = issue(Ticket(subject="Broken door"), series=new_series())
    before = stored_items(Ticket, ticket.series)

    with pytest.raises(TypeError, match=said):
        call(ticket)

    assert stored_items(Ticket, ticket.series) == before
    # The same request is repeatable, also with the object that it stored.
    ticket = Ticket.get(ticket.series, 1)
    assert issue(ticket, series=ticket.series, request_id=ticket.request_id).number == 1


def test_an_issued_item_changes_under_a_version_which_it_gets_with_its_first_change() -> None:
    ticket = issue(Ticket(subject="Broken door"), series=new_series())
    copy = Ticket.get(ticket.series, ticket.number)
    assert "version" not in copy.stored

    ticket.change(subject="Broken window")

    with pytest.raises(Stale):
        copy.change(subject="Noise")
    read = Ticket.get(ticket.series, ticket.number)
    assert (read.subject, read.version) == ("Broken window", ticket.version)


def test_the_order_of_a_series_does_not_change() -> None:
    entry = issue(Entry(day="2026-03-14"), series=new_series())
    entry.day = "2026-03-01"

    for call in (entry.save, lambda: entry.change(day=None)):
        with pytest.raises(TypeError, match="The day of an item cannot be changed"):
            call()


def test_a_value_that_a_default_made_is_not_part_of_a_request() -> None:
    series = new_series()
    first = issue(Note(text="a"), series=series, request_id="form")

    again = issue(Note(text="a"), series=series, request_id="form")

    assert (again.number, again.code) == (first.number, first.code)
    with pytest.raises(RequestIdReused):
        issue(Note(text="a", code="given"), series=series, request_id="form")


def test_numbered_items_have_a_check_of_their_own() -> None:
    assert "not a unique model" in run("checkunique", "tests.numbered.Ticket")[1]


class Coded:
    code = TextAttribute()
    unique_code = Unique("code")


@pytest.mark.parametrize(
    ("bases", "names"),
    [
        ((NumberedItem,), vars(Coded)),
        ((NumberedItem, Coded), {}),
        ((NumberedItem,), {"until": TTLAttribute(null=True)}),
    ],
)
def test_numbered_items_have_no_unique_values_and_never_expire(
    bases: tuple[type, ...], names: dict[str, Any]
) -> None:
    meta = type("Meta", (), {"table_name": "testBadges"})

    with pytest.raises(TypeError, match="can neither be unique nor expire"):
        type(NumberedItem)("Badge", bases, {**names, "Meta": meta, "__module__": __name__})


def test_guard_items_of_request_ids_are_not_items() -> None:
    series = new_series()
    issue(Ticket(subject="Broken door"), series=series, request_id="form")
    key = Ticket.guard_key(series, "form")

    assert [item.number for item in Ticket.query(series)] == [1]
    assert list(Ticket.query(key)) == []
    assert {item.series for item in Ticket.scan()} == {series}
    with pytest.raises(Ticket.DoesNotExist):
        Ticket.get(key, 0)


# Forms --------------------------------------------------------------------------------------------


TicketForm = modelform_factory(Ticket, fields="__all__")


class Job(NumberedItem):
    """A request id is known in all of its series."""

    class Meta:
        table_name = "testJobs"

    text = TextAttribute()

    @classmethod
    def request_scope(cls, series: str) -> str:
        return "jobs"


def sent(form_class: Any, series: str | None, **data: str) -> ModelForm[Any]:
    """A valid form that was sent with `data`, which a view numbers in `series`."""
    form: ModelForm[Any] = form_class({**form_class().initial, **data})
    assert form.is_valid()
    form.instance.series = series
    return form


def test_a_form_has_no_fields_for_series_number_and_request_id_of_the_item() -> None:
    assert list(TicketForm().fields) == ["subject", "request_id"]
    with pytest.raises(FieldError, match="non-editable"):
        modelform_factory(Ticket, fields=["series", "subject"])


def test_a_form_that_is_sent_with_other_values_says_so_and_then_issues_the_next_number() -> None:
    series = new_series()
    shown = TicketForm().initial
    for _time in range(2):
        saved = sent(TicketForm, series, **shown, subject="Broken door").save()
        assert (saved.number, saved.subject) == (1, "Broken door")

    form = sent(TicketForm, series, **shown, subject="Noise")

    assert form.try_save() is None
    assert "This form was sent before, with other values." in str(form.errors)
    again = sent(TicketForm, series, **form.data)
    assert again.save().number == 2


def test_a_typed_value_of_an_attribute_with_a_default_is_part_of_the_request() -> None:
    series = new_series()
    shown = modelform_factory(Note, fields=["text"])().initial
    both = modelform_factory(Note, fields=["text", "code"])
    sent(both, series, **shown, text="a", code="mine").save()

    assert sent(both, series, **shown, text="a", code="mine").save().number == 1
    assert sent(both, series, **shown, text="a", code="other").try_save() is None


def test_a_form_of_last_year_issues_nothing_if_request_ids_are_known_in_all_series() -> None:
    form_class = modelform_factory(Job, fields=["text"])
    shown = form_class().initial
    old = new_series()
    new = new_series()
    first = sent(form_class, old, **shown, text="a").save()

    again = sent(form_class, new, **shown, text="a").save()

    assert (again.series, again.number) == (old, first.number)
    assert stored_numbers(Job, new) == []


def test_a_form_without_a_series_or_in_a_transaction_says_what_to_do() -> None:
    series = new_series()
    with pytest.raises(TypeError, match=r"Set form\.instance\.series"):
        sent(TicketForm, None, subject="Broken door").save()
    with pytest.raises(TypeError, match=r"sequences\.issue\(…, also="), Transaction() as write:
        sent(TicketForm, series, subject="Broken door").save(write=write)

    assert stored_numbers(Ticket, series) == []
