"""The faults that users inject in their own tests, on a real engine."""

from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest

from dynamo import Model, TextAttribute, Unavailable, Unique, collect
from dynamo.client import sending
from dynamo.client.breaker import failing_fast
from dynamo.test import conflict, late, lost_reply, throttled, unavailable
from sequences import NumberedItem, issue
from tests.numbered import new_series, stored_numbers

pytestmark = pytest.mark.usefixtures("engine", "path")


class Receipt(NumberedItem):
    class Meta:
        table_name = "tests-faults-receipts"

    room = TextAttribute()


class Pupil(Model):
    class Meta:
        table_name = "tests-pupils"

    email = TextAttribute()
    room = TextAttribute(null=True)

    unique_email = Unique("email")


class Desk(Model):
    class Meta:
        table_name = "tests-desks"

    room = TextAttribute(null=True)


@pytest.mark.parametrize(
    ("fault", "hit"),
    [
        (lost_reply, ["TransactWriteItems"]),
        pytest.param(
            partial(lost_reply, 2),
            ["TransactWriteItems"] * 2,
            marks=pytest.mark.fault_of("moto", "ignores client request tokens"),
        ),
        (partial(throttled, 2), ["TransactWriteItems"] * 2),
        (partial(conflict, 3), ["TransactWriteItems"] * 3),
        (partial(late, 0.001), ["TransactWriteItems", "UpdateItem"]),
    ],
)
def test_a_passing_fault_changes_no_result(fault: Any, hit: list[str]) -> None:
    with collect() as tally, fault() as operations:
        pupil = Pupil.create(email="ann@example.org")
        pupil.change(room="1")

    assert operations == hit
    assert [(item.email, item.room) for item in Pupil.scan()] == [("ann@example.org", "1")]
    assert tally.requests == (2 if "UpdateItem" in hit else 2 + len(hit))


@pytest.mark.parametrize("write", ["create", "change", "delete"])
def test_a_single_write_meets_another_transaction(write: str) -> None:
    desk = Desk.create(room="1")
    calls = {"create": lambda: Desk.create(), "change": lambda: desk.change(room="2")}

    with conflict() as operations:
        calls.get(write, desk.delete)()

    assert operations == [{"create": "PutItem", "change": "UpdateItem"}.get(write, "DeleteItem")]


@pytest.mark.parametrize("maybe_written", [False, True])
def test_an_outage_raises_at_once_and_ends_with_the_block(*, maybe_written: bool) -> None:
    with unavailable(maybe_written=maybe_written):
        for _count in range(6):
            # Only replies to writes are lost if they are carried out.
            with nullcontext() if maybe_written else pytest.raises(Unavailable), failing_fast():
                assert Pupil.get_or_none("a") is None
        with pytest.raises(Unavailable) as write:
            Pupil.create(email="ann@example.org", request_id="form")

    assert write.value.maybe_written is maybe_written
    assert Pupil.is_taken(email="ann@example.org") is maybe_written
    with failing_fast():
        assert Pupil.create(email="ann@example.org", request_id="form").email == "ann@example.org"


@pytest.mark.parametrize("model", [None, Receipt])
def test_a_number_that_was_issued_without_an_answer_is_found_again(
    model: type[Receipt] | None,
) -> None:
    series = new_series()
    with unavailable(maybe_written=True, model=model) as hit, pytest.raises(Unavailable):
        issue(Receipt(room="a"), series=series, request_id="form")

    assert hit == ["TransactWriteItems"]
    assert stored_numbers(Receipt, series) == [1]
    assert issue(Receipt(room="a"), series=series, request_id="form").number == 1


def test_a_reply_that_comes_too_late_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "READ_SECONDS", 0.01)

    with late(5, times=1) as operations, collect() as tally:
        Pupil.create(email="ann@example.org")

    assert (operations, tally.retries) == (["TransactWriteItems"], 1)


def test_a_fault_concerns_one_model_and_faults_can_be_combined() -> None:
    with throttled(model=Pupil) as pupils, lost_reply(model=Desk) as desks:
        Desk.create(room="1")
        Pupil.create(email="ann@example.org")

    assert (pupils, desks) == (["TransactWriteItems"], ["PutItem"])


def test_a_fault_that_hits_nothing_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="No request met the fault"), lost_reply():
        Pupil.get_or_none("a")


def test_each_fault_is_a_fixture(
    lost_reply: Any, throttled: Any, conflict: Any, unavailable: Any, late: Any
) -> None:
    for fault in (lost_reply, throttled, conflict):
        with fault():
            Desk.create()
    with late(0):
        Desk.create()
    with pytest.raises(Unavailable), unavailable():
        Desk.create()
