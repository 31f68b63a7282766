"""What the errors of the library say; they are pickled with what they carry."""

import math
import pickle

import pytest

from dynamo import BadCursor, Busy, DamagedItem, Rejected, Stale, Unavailable
from dynamo.exceptions import ErrorWithValues, TransactionConflict
from locks import BadLockName, LeaseLost, LockChanged, LockTaken, UnknownLock
from outbox.exceptions import (
    NotFailed,
    NotFinished,
    TaskTooLarge,
    TaskTooSlow,
    UnknownQueue,
    UnknownTask,
    WorkerLost,
)
from sequences import (
    CounterContended,
    DamagedSeries,
    ItemTooLarge,
    NotACounter,
    OutOfOrder,
    RequestIdReused,
    ReservedName,
)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            Unavailable("PutItem", "no reply", maybe_written=True),
            "DynamoDB gave no answer to PutItem in time (no reply). The write may have been "
            "carried out anyway.",
        ),
        (Busy("a check"), "This process is busy: a check found no free slot in time."),
        (BadCursor(), "This cursor does not belong to this list."),
        (
            TransactionConflict("PutItem", throttled=True),
            "PutItem met another transaction or was throttled.",
        ),
        (Rejected("PutItem", "Code", "why"), "DynamoDB refused PutItem: Code: why"),
        (Stale("member"), "The member changed since it was read. Nothing was written."),
        (DamagedItem("t", "a", "b"), "The item 'a' of t is damaged: b."),
        (DamagedItem("t", "a", "b", "'c'"), "The item 'a' of t is damaged: b: 'c'."),
        (DamagedItem("t", "a", "", "no map"), "The item 'a' of t is damaged: no map."),
        (ReservedName("t#a"), "The name 't#a' is reserved for the counter of a series."),
        (NotACounter("a", 1.5), "The counter 'a' does not hold a whole number: 1.5."),
        (
            CounterContended("a"),
            "The counter 'a' is too busy: other callers changed it at every try.",
        ),
        (
            RequestIdReused("r", "s", 3),
            "This request id issued number 3 of s before, with other contents. Use a new request "
            "id.",
        ),
        (OutOfOrder("1", "2"), "The series already has 2, which is after 1."),
        (
            ItemTooLarge(500_000, 409_600),
            "The item is too large: it has 500,000 bytes; at most 409,600 can be stored.",
        ),
        (DamagedSeries("s"), "The series s is damaged. Nothing was issued. Run checkseries."),
        (BadLockName(""), "The name of a lock must be text of 1 to 2,048 bytes in UTF-8."),
        (LockTaken("a", "", 20.0), "The lock 'a' is held by an unknown process."),
        (LockTaken("a", "we", math.inf), "The lock 'a' is claimed for good by we."),
        (LeaseLost("a", 7, "it was late"), "The lease on 'a' (fence 7) is lost: it was late."),
        (UnknownLock("a"), "There is no lock 'a'."),
        (
            LockChanged("a"),
            "The lock 'a' has changed meanwhile. It was not broken. Look at it again.",
        ),
        (
            TaskTooLarge("app.send", 500_000, 409_600),
            "The task app.send has 500,000 bytes with its arguments; at most 409,600 fit into an "
            "item of DynamoDB. Store the data elsewhere, and give the task its key.",
        ),
        (
            TaskTooSlow(1_800.4),
            "The task had not ended after 1,800 seconds, when its worker was stopped.",
        ),
        (UnknownTask("app.send"), "There is no task app.send. Was it renamed or removed?"),
        (
            UnknownQueue("mails"),
            "No backend in TASKS is an outbox.TaskBackend with the queue 'mails'. Is it in QUEUES?",
        ),
        (NotFailed("7"), "No task with the id '7' has failed for good."),
        (
            NotFinished("app.send"),
            "app.send called context.finish(write=…), but its transaction was not committed when "
            "the function returned.",
        ),
        (WorkerLost("w"), "The worker w died, or did not renew its lease in time."),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_error_says_what_happened_also_in_another_process(
    error: ErrorWithValues, text: str
) -> None:
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert str(error) == str(copied) == text
    assert vars(copied) == vars(error)
