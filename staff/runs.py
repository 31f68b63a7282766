"""Runs: work that reads whole tables, started from a page and done in a thread beside it.

One of each kind at a time on the whole site: it holds a lock for as long as it lives. What becomes
of it is written to its item of `reports`, under the id of the run: a later run has another, so one
that was thought dead and comes back late writes nothing.

The thread is a daemon of the process that took the POST. Where that process ends, the lock is given
back or lapses, and the pages show a run without a result. Nothing is lost: it can be started again.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext_lazy as _
from pynamodb.expressions.condition import Condition

from dynamo.exceptions import ConditionFailed, DynamoError, Rejected, Unavailable
from dynamo.tally import counting
from dynamo.transaction import Transaction
from locks.exceptions import LeaseLost, LockChanged, LockError, UnknownLock
from locks.leases import Lease
from locks.lock import Lock
from locks.registry import break_lock, look
from staff import audit_log, checks
from staff.audit_log import Actor
from staff.checks import Progress, Result
from staff.models import RUNS, Report
from staff.survey import survey

log = logging.getLogger(__name__)

LEASE_SECONDS = 20.0

#: How often a run says how far it is: 1 write unit each time.
SAY_EVERY_SECONDS = 2.0

#: How often the end of a run is tried to be written, each time for the patience of an operation.
END_ATTEMPTS = 12


@dataclass(frozen=True)
class Kind:
    """A kind of run. `command` does the same at a terminal, where there is one."""

    name: str
    title: Any
    what: Any
    work: Callable[[Progress], Result]
    command: str = ""

    @property
    def lock(self) -> str:
        """The name of the lock that a run holds."""
        return f"staff#{self.name}"


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "survey",
            RUNS["survey"],
            _("Counts accounts, counters, locks and uploads, by reading their tables."),
            survey,
        ),
        Kind(
            "checkguards",
            RUNS["checkguards"],
            _("Compares every account with the guards of its user name and address."),
            checks.guards,
            "checkguards",
        ),
        Kind(
            "checkinvoices",
            RUNS["checkinvoices"],
            _("Looks for numbers that are missing, given out twice, or beyond their counter."),
            checks.invoices,
            "checkinvoices",
        ),
    )
}


def start(kind: Kind, actor: Actor) -> bool:
    """Start a run, unless one is under way, and record who did; whether it was started.

    A run that gives no sign of life any more loses its lock first. Costs 2 requests and 10 write
    units; where one is under way, 3 at most.

    Raises:
        NotStaff: `actor` is no longer staff, active and signed in.
        Unavailable: no answer; what may have been started is shown as ended without a result.
    """
    lease = _lease_on(kind)
    if lease is None:
        return False
    run = _Run(kind, lease)
    try:
        run.begin(actor)
        threading.Thread(target=run.carry_out, name=f"staff {kind.name}", daemon=True).start()
    except BaseException:
        _give_back(lease)
        raise
    return True


def _lease_on(kind: Kind) -> Lease | None:
    lock = Lock(kind.lock, lease_seconds=LEASE_SECONDS, wait_seconds=0)
    lease = lock.try_acquire()
    if lease is not None:
        return lease
    with suppress(UnknownLock, LockChanged):
        holder = look(kind.lock)
        # It may be alive: then it finds out, and its end is not written.
        if holder.is_silent(datetime.now(UTC)):
            break_lock(kind.lock, as_seen=holder)
            return lock.try_acquire()
    return None


def _give_back(lease: Lease) -> None:
    try:
        lease.release()
    except (DynamoError, LockError) as error:
        log.warning("The lock of a run was not given back: %s", error)


class _Run:
    """One run, of the thread that carries it out."""

    def __init__(self, kind: Kind, lease: Lease) -> None:
        self._kind = kind
        self._lease = lease
        self._id = str(uuid.uuid4())
        self._started_at = _now()
        self._by_name = ""
        self._seen = 0
        self._said_at = time.monotonic()

    def begin(self, actor: Actor) -> None:
        """Record that it runs and who started it, in one transaction, while the lock is ours."""
        self._by_name = actor.user.username
        values = {
            "run_id": self._id,
            "state": "running",
            "started_at": self._started_at,
            "started_by": actor.user.pk,
            "started_by_name": self._by_name,
            "fence": self._lease.fence,
            "seen": 0,
            "updated_at": self._started_at,
            "ended_at": None,
            "error": None,
        }
        # False for our own work alone, where its reply was lost.
        other = Report.run_id.does_not_exist() | (Report.run_id != self._id)
        write = Transaction()
        # The id of the run is random, so a refusal means that it is stored already.
        write.update(
            Report(self._kind.name), Report.set_or_remove(values), other, otherwise=lambda _: None
        )
        self._lease.hold_in(write)
        audit_log.commit(write, actor, "startRun", what=self._kind.name)

    def carry_out(self) -> None:
        """Do the work, and write what came of it."""
        log.info("A run of %s begins.", self._kind.name)
        try:
            with counting() as tally:
                result = self._kind.work(self._looked_at)
            log.info(
                "A run of %s is done: %d requests, %g read units.",
                self._kind.name,
                tally.requests,
                tally.read_units,
            )
            self._lease.check()
            self._end(
                state="done",
                error=None,
                result=json.dumps(result, ensure_ascii=False),
                result_started_at=self._started_at,
                result_ended_at=_now(),
                result_by_name=self._by_name,
            )
        except LeaseLost as error:
            log.warning("A run of %s was broken off: %s", self._kind.name, error)
        except (DynamoError, OSError) as error:
            # Disks fill up, too: the checks sort on one.
            log.warning("A run of %s failed: %s", self._kind.name, error)
            self._fail(error)
        finally:
            _give_back(self._lease)

    def _looked_at(self, count: int) -> None:
        """Say now and then how far it is. Raises LeaseLost."""
        self._lease.check()
        self._seen += count
        if time.monotonic() - self._said_at >= SAY_EVERY_SECONDS:
            with suppress(Unavailable):
                self._write({"seen": self._seen, "updated_at": _now()})
            self._said_at = time.monotonic()

    def _fail(self, error: Exception) -> None:
        try:
            self._end(state="failed", error=str(error)[:1000])
        except (Rejected, LeaseLost) as problem:
            log.warning("That it failed could not be written: %s", problem)

    def _end(self, **values: Any) -> None:
        """Write how it ended, as soon as DynamoDB can be written to again."""
        now = _now()
        values |= {"seen": self._seen, "updated_at": now, "ended_at": now}
        for _attempt in range(END_ATTEMPTS):
            try:
                self._write(values)
            except Unavailable as error:
                log.warning("How a run of %s ended is not written yet: %s", self._kind.name, error)
            else:
                return

    def _write(self, values: dict[str, Any]) -> None:
        """Update the item while it is this run's. Raises LeaseLost where it is another's."""
        ours: Condition = Report.run_id == self._id
        try:
            Report(self._kind.name).update(Report.set_or_remove(values), ours)
        except ConditionFailed as error:
            raise LeaseLost(self._kind.lock, self._lease.fence, "another run began") from error


def _now() -> str:
    return datetime.now(UTC).isoformat()
