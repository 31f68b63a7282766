"""`Reference` of a numbered item: its target exists when the number is issued."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dynamo import IntegerAttribute, Model, Reference, TextAttribute, Transaction
from dynamo.forms import modelform_factory
from sequences import NumberedItem, aissue, issue
from tests.numbered import Ticket, assert_whole, behind, new_series, stored_numbers, ticket
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


class Patient(Model):
    class Meta:
        table_name = "tests-receipts-patients"

    name = TextAttribute(default="Ann")
    visits = IntegerAttribute(default=0)


class Receipt(NumberedItem):
    class Meta:
        table_name = "tests-receipts"

    patient = Reference(Patient)
    payer = Reference(Patient, null=True)


@pytest.fixture
def series() -> str:
    return new_series()


def receipt(patient: object, series: str, **options: Any) -> Receipt:
    return issue(Receipt(patient=patient), series=series, **options)


def test_a_receipt_is_issued_only_if_what_it_refers_to_exists(series: str) -> None:
    ann, bob = Patient.create(), Patient.create()
    assert receipt(ann, series, request_id="form").patient == ann.pk
    bob.delete()

    for values in ({"patient": bob}, {"patient": ann, "payer": bob}):
        with pytest.raises(Patient.DoesNotExist) as refused:
            issue(Receipt(**values), series=series)
        assert refused.value.reference == [*values][-1]
    ann.delete()

    assert receipt(ann.pk, series, request_id="form").number == 1
    assert_whole(Receipt, series, 1)


@pytest.mark.fault_of("moto", "reports other capacity")
def test_a_reference_costs_one_check_for_each_item_that_is_referred_to(
    series: str, requests_sent: Requests
) -> None:
    ann, bob = Patient.create(), Patient.create()
    receipt(ann, series)
    requests_sent.clear()

    issue(Receipt(patient=ann, payer=ann), series=series)
    issue(Receipt(patient=ann, payer=bob), series=series)

    assert requests_sent.operations == ["TransactWriteItems"] * 2
    assert requests_sent.units == (6 + 2) + (6 + 4)


def test_receipts_of_one_patient_share_a_transaction_and_its_check(
    series: str, requests_sent: Requests
) -> None:
    ann, gone = Patient.create(), Patient.create()
    gone.delete()

    with behind(Receipt, series, lambda: receipt(ann, series)) as then:
        shared = [then(lambda: receipt(ann, series)) for _ in range(3)]
        refused = [then(lambda: receipt(gone, series)) for _ in range(2)]
        requests_sent.clear()

    assert sorted(caller.result().number for caller in shared) == [2, 3, 4]
    assert {type(caller.exception()) for caller in refused} == {Patient.DoesNotExist}
    assert_whole(Receipt, series, 4)
    first = requests_sent.of("TransactWriteItems")[0]["TransactItems"]
    assert [[*entry] for entry in first].count(["ConditionCheck"]) == 2


@pytest.mark.parametrize(
    "write",
    [
        lambda ann, write: ann.require(write=write),
        lambda ann, write: ann.require(write=write, unchanged=True),
        lambda ann, write: ann.change(add={"visits": 1}, write=write),
    ],
    ids=["required", "required unchanged", "counted"],
)
def test_a_further_write_may_be_for_the_patient(
    series: str, write: Callable[[Patient, Transaction], None]
) -> None:
    ann = Patient.create()
    also, others = Transaction(), Transaction()
    write(ann, also)
    write(Patient.get(ann.pk), others)

    with behind(Receipt, series, lambda: receipt(ann, series)) as then:
        with_writes = then(lambda: receipt(ann, series, also=also))
        plain = then(lambda: receipt(ann, series))

    assert {with_writes.result().number, plain.result().number} == {2, 3}
    Patient.get(ann.pk).delete()
    with pytest.raises((Patient.Stale, Patient.DoesNotExist)):
        receipt(ann.pk, series, also=others)
    assert_whole(Receipt, series, 3)


def test_the_error_of_a_reference_appears_at_its_field(series: str) -> None:
    ann = Patient.create()
    form_class = modelform_factory(Receipt, fields=["patient"])
    page = form_class(instance=Receipt(series=series))
    sent = {"patient": ann.pk, "request_id": page["request_id"].value()}
    ann.delete()

    form = form_class(sent, instance=Receipt(series=series))

    assert not form.is_valid() or not form.try_save()
    assert "patient" in form.errors
    assert stored_numbers(Receipt, series) == []


# In the block of a transaction --------------------------------------------------------------------


@pytest.mark.parametrize("request_id", ["new", "used"])
def test_a_block_is_committed_with_the_item_that_is_issued_in_it(
    series: str, request_id: str
) -> None:
    ann = Patient.create()
    receipt(ann, series, request_id="used")

    with Transaction() as write:
        ann.change(add={"visits": 1}, write=write)
        issued = receipt(ann, series, request_id=request_id, also=write)

    counted = request_id == "new"
    assert (issued.number, Patient.get(ann.pk).visits) == (1 + counted, counted)
    with pytest.raises(TypeError, match="sent already"):
        receipt(ann, series, also=write)
    assert_whole(Receipt, series, 1 + counted)


def test_a_block_that_fails_after_its_item_was_refused_writes_nothing(series: str) -> None:
    ann = Patient.create()

    def rename_and_issue() -> None:
        with Transaction() as write:
            ann.change(name="Bob", write=write)
            receipt("nobody", series, also=write)

    with pytest.raises(Patient.DoesNotExist):
        rename_and_issue()

    assert (Patient.get(ann.pk).name, stored_numbers(Receipt, series)) == ("Ann", [])


@pytest.mark.parametrize(
    "call",
    [ticket, lambda series: asyncio.run(aissue(Ticket(subject="a"), series=series))],
    ids=["issue", "aissue"],
)
def test_an_item_that_the_block_would_not_commit_is_refused(
    series: str, call: Callable[[str], object]
) -> None:
    with pytest.raises(TypeError, match=r"also=write"), Transaction():
        call(series)
    assert stored_numbers(Ticket, series) == []
