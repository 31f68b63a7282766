"""Forms of numbered items issue them, each form once, in the series that the view names."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.exceptions import FieldError

from dynamo import TextAttribute, Transaction
from dynamo.forms import ModelForm, modelform_factory
from sequences import NumberedItem
from tests.numbered import Ticket, assert_whole, new_series, stored_numbers
from tests.sequences.test_numbered_changes import Note

pytestmark = pytest.mark.usefixtures("engine")

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


def test_a_form_that_is_sent_several_times_at_once_issues_one_item() -> None:
    series, shown = new_series(), TicketForm().initial

    def send(_number: int) -> tuple[int, int, str]:
        form = sent(TicketForm, series, **shown, subject="Broken door")
        saved = form.save()
        return saved.number, form.instance.number, form.instance.subject

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(send, range(8))) == {(1, 1, "Broken door")}
    assert_whole(Ticket, series, 1)


def test_a_form_that_is_sent_with_other_values_says_so_and_then_issues_the_next_number() -> None:
    series, shown = new_series(), TicketForm().initial
    sent(TicketForm, series, **shown, subject="Broken door").save()

    form = sent(TicketForm, series, **shown, subject="Noise")

    assert form.try_save() is None
    assert "This form made a ticket before, with other values." in str(form.errors)
    again = sent(TicketForm, series, **form.data)
    assert again.save().number == 2


def test_a_typed_value_of_an_attribute_with_a_default_is_part_of_the_request() -> None:
    series, shown = new_series(), modelform_factory(Note, fields=["text"])().initial
    both = modelform_factory(Note, fields=["text", "code"])
    sent(both, series, **shown, text="a", code="mine").save()

    assert sent(both, series, **shown, text="a", code="mine").save().number == 1
    assert sent(both, series, **shown, text="a", code="other").try_save() is None


def test_a_form_of_last_year_issues_nothing_if_request_ids_are_known_in_all_series() -> None:
    form_class = modelform_factory(Job, fields=["text"])
    shown, old, new = form_class().initial, new_series(), new_series()
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
