"""The contract of every registered operation: its cost, its refusals, and all that under faults.

    from tests.faults.matrix import *
    OPERATIONS = [...]

Under faults, an operation stores the same as without faults, or it stores nothing, raises one error
and can be repeated. What is stored is compared with a run without faults: `tests.operations.plain`.
"""

import uuid
from contextlib import AbstractContextManager, nullcontext
from unittest.mock import patch

import pytest

from dynamo import ConditionFailed, Model, Transaction, Unavailable
from dynamo.client import sending
from dynamo.client.sending import send
from dynamo.exceptions import TransactionCancelled
from dynamo.runtime import deadline
from tests.clocks import StallProofClock, use_clock
from tests.faults.kinds import Answer, CloseBefore, DropReply, Fault, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.operations import (
    DELETE,
    DONE,
    PUT,
    TRANSACTION,
    UPDATE,
    Operation,
    Other,
    Stored,
    plain,
    said,
    undisturbed,
)

# One for each way in which a request can fail: carried out or not, with an answer or without.
# How the client sorts the codes of errors: tests/dynamo/test_client.py.
THROTTLED = Answer(400, "ThrottlingException")
REPLY_LOST = DropReply()
FAULTS: list[Fault] = [
    THROTTLED,
    CloseBefore(),
    REPLY_LOST,
    Answer(500, "InternalServerError", carried_out=True),
]
#: It looks like a refusal, too. Other reasons beside a conflict: tests/dynamo/test_transaction.py.
CONFLICT = Answer(
    400,
    "TransactionCanceledException",
    reasons=["ConditionalCheckFailed", "TransactionConflict", "None"],
)
WRITES = {TRANSACTION, UPDATE, PUT, DELETE}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between attempts are over at once."""
    sending.client()  # its modules are loaded, and get the clock
    use_clock(StallProofClock(0.2), monkeypatch)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    operations: list[Operation] = metafunc.module.OPERATIONS
    kinds = {
        "operation": operations,
        "recognizable": [
            operation
            for operation in operations
            if operation.api == TRANSACTION and not operation.needs_token
        ],
        # The others are sent once, and then recognized.
        "repeatable": [operation for operation in operations if not operation.counts],
        "joining": [operation for operation in operations if operation.joins],
    }
    for name in kinds.keys() & set(metafunc.fixturenames):
        metafunc.parametrize(
            name, [pytest.param(kind, id=kind.name, marks=_faults(kind)) for kind in kinds[name]]
        )
    if "meanwhile" in metafunc.fixturenames:
        refusals = [
            pytest.param(operation, what, id=f"{operation.name}-{what}", marks=_faults(operation))
            for operation in operations
            for what in operation.refusals
        ]
        metafunc.parametrize(("refused", "meanwhile"), refusals)


def _faults(operation: Operation) -> list[pytest.MarkDecorator]:
    return [pytest.mark.fault_of(*item) for item in operation.faults.items()]


def hurried() -> AbstractContextManager[None]:
    """Operations in the block are repeated for 0.1 s only."""
    sending.client()  # made now, as that is slow
    return patch.object(deadline, "OPERATION_SECONDS", 0.1)


class Run:
    """An operation that is prepared, and what was stored before it."""

    def __init__(self, operation: Operation, proxy: FaultProxy) -> None:
        self.operation, self._proxy = operation, proxy
        self._wanted, told, _sent = undisturbed(operation)
        self._told = said(told)
        self.given = operation.given()
        self.before: Stored = operation.stored()
        proxy.forget()

    def act_once(self) -> None:
        """Act, and check what is stored, what the caller has, and what it is told."""
        assert said(self.act()) == self._told

    def act(self) -> object:
        """Act, and check what is stored and what the caller has."""
        result = self.operation.act(self.given)
        self.assert_done()
        if self.operation.is_in_hand:
            self.operation.assert_in_hand(self.given, result)
        return result

    def assert_done(self) -> None:
        self.operation.assert_sound()
        wanted, now = self._wanted, plain(self.operation.stored(), self.before)
        assert now == wanted, [
            *(("missing", item) for item in wanted if item not in now),
            *(("unexpected", item) for item in now if item not in wanted),
        ]

    def writes_sent(self) -> list[str]:
        return [item.operation for item in self._proxy.seen if item.operation in WRITES]

    def assert_unchanged(self) -> None:
        assert self.operation.stored() == self.before

    def assert_a_late_duplicate_changes_nothing(self) -> None:
        """Send the last write again, as if an earlier attempt arrived now."""
        api, before = self.operation.api, self.operation.stored()
        late = [seen.body for seen in self._proxy.seen if seen.operation == api][-1]
        if "ClientRequestToken" in late:
            late["ClientRequestToken"] = str(uuid.uuid4())
        with pytest.raises((ConditionFailed, TransactionCancelled)):
            send(api, late)
        assert self.operation.stored() == before


@pytest.mark.fault_of("moto", "counts other units")
@pytest.mark.fault_of("ministack", "counts no units of an index")
def test_an_operation_costs_what_the_register_says(engine: str, operation: Operation) -> None:
    *_, sent = undisturbed(operation)

    cost = sent.operations, sent.units
    assert cost == ([*operation.reads, operation.api], operation.units), cost


def test_an_operation_that_cannot_be_done_any_more_is_refused_and_writes_nothing(
    engine: str, refused: Operation, meanwhile: str
) -> None:
    happen, outcome = refused.refusals[meanwhile]
    given = refused.given()
    happen(given)
    before = refused.stored()

    with pytest.raises(outcome) if isinstance(outcome, type) else nullcontext():
        refused.act(given)

    assert (refused.stored() != before) == (outcome is DONE)
    refused.assert_sound()


@pytest.mark.fault_of("moto", "ignores request tokens")
def test_an_operation_is_not_done_under_a_lasting_fault_and_once_under_temporary_faults(
    proxy: FaultProxy, operation: Operation
) -> None:
    run = Run(operation, proxy)
    passing = [THROTTLED, REPLY_LOST] if operation.counts else FAULTS
    staying = THROTTLED
    if operation.api == TRANSACTION:
        staying = CONFLICT
        passing = [CONFLICT, CONFLICT, CONFLICT, *passing]

    proxy.plan(operation.api, staying, times=1_000)
    with hurried(), pytest.raises(Unavailable) as unavailable:
        operation.act(run.given)
    assert (unavailable.value.operation, unavailable.value.maybe_written) == (operation.api, False)
    run.assert_unchanged()

    proxy.forget()
    for fault in passing:
        proxy.plan(operation.api, fault)
    run.act_once()
    assert proxy.count(operation.api) == len(passing) + (not operation.counts)

    if not operation.counts:
        run.assert_a_late_duplicate_changes_nothing()


def test_an_operation_whose_reply_is_always_lost_raises_one_error_and_can_be_repeated(
    proxy: FaultProxy, repeatable: Operation
) -> None:
    run = Run(repeatable, proxy)
    proxy.plan(repeatable.api, REPLY_LOST, times=1_000)

    with hurried(), pytest.raises(Unavailable) as unavailable:
        repeatable.act(run.given)

    assert unavailable.value.operation == repeatable.api
    proxy.forget()
    repeatable.assert_sound()
    was_written = repeatable.stored() != run.before
    assert unavailable.value.maybe_written or not was_written
    if not was_written or repeatable.again == "same":
        run.act()
    elif isinstance(repeatable.again, type):
        with pytest.raises(repeatable.again):
            repeatable.act(run.given)
        run.assert_done()


@pytest.mark.fault_of("moto", "ignores request tokens")
def test_an_operation_recognizes_its_own_write_after_the_engine_forgot_the_token(
    proxy: FaultProxy, recognizable: Operation
) -> None:
    # DynamoDB forgets a token after 10 minutes.
    run = Run(recognizable, proxy)

    def write_under_another_token() -> None:
        sent = proxy.seen[-1].body
        send(TRANSACTION, sent | {"ClientRequestToken": str(uuid.uuid4())})

    proxy.plan(TRANSACTION, Meanwhile(write_under_another_token))

    run.act_once()


# In the transaction of its caller ---------------------------------------------------------------


def test_an_operation_is_sent_with_the_callers_writes_by_the_callers_commit_or_not_at_all(
    proxy: FaultProxy, joining: Operation
) -> None:
    other = Other.create()
    run = Run(joining, proxy)
    in_hand = run.given.serialize() if isinstance(run.given, Model) else None
    since = Other.get(other.pk)
    since.change(text="since")

    write = Transaction()
    joining.act(run.given, write=write)
    other.change(text="changed", write=write)
    with pytest.raises(Other.Stale):
        write.commit()
    run.assert_unchanged()
    assert in_hand is None or run.given.serialize() == in_hand

    proxy.forget()
    with Transaction() as write:
        result = joining.act(run.given, write=write)
        since.change(text="changed", write=write)
        assert run.writes_sent() == []
    assert run.writes_sent() == [TRANSACTION]
    run.assert_done()
    joining.assert_in_hand(run.given, result)
    assert Other.get(other.pk).text == "changed"
