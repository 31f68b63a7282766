"""Rate limits: for each limit and each subject (an account, a client), a window in Django's cache.

    limits.<name>.<subject>     the end of the window in epoch ms × 10^12
                                + failures that are noted × 10^8 + the slots taken in it

A window begins with the first slot that is taken, and expires. The counted number contains the
window's end. Therefore, the answer to one atomic count shows whether the slot was the last, when
the window ends, and which window it is. However many attempts are made at once, at most `times` get
a slot.

Right passwords give their slots back. Therefore, an attempt that finds no slot waits for a short
time, unless the other attempts have failed. To save requests, only failures in the later half of
the slots are noted. Usually, the earlier attempts have ended before.

After a lost reply it is unknown whether the slot was counted, so another one is counted. The lost
slot remains taken and may have been the last. In that case, the limit refuses an attempt too early.
A second lost reply in a row raises `Unavailable`. Otherwise, an outage of a minute would take the
slots of an hour.
"""

import hashlib
import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

from django.core.cache import cache

from accounts.conf import limit_of
from accounts.exceptions import TooManyAttempts
from accounts.limits.clients import wider_network
from dynamo import Unavailable
from dynamo.auth import passwords
from dynamo.runtime.deadline import page_seconds_left
from dynamo.runtime.gates import Gate, GateFull, turn_passed_on
from dynamo.runtime.processes import PerProcess

#: An IPv6 /48 has this many times the slots of each /64 in it. It has 65,536 of these, but it may
#: also belong to a provider with many customers.
WIDER_TIMES = 10

_WINDOW = 10**12
#: More slots than a window of a day can have, at DynamoDB's 1,000 writes per second to an item.
_FAILURE = 10**8
_MOST_FAILURES = _WINDOW // _FAILURE
#: A slot is not given back this soon before the end of its window, because its key may soon have :
#: the next window.
_NEAR_MS = 10_000
#: A slot is requested this many times while windows end or are cleared.
_ATTEMPTS = 8

#: The most attempts that wait for a slot in a process. Other pages also need threads of the server.
MOST_WAITING = 32
#: A caller waits for this time before it reads its window again. Each further wait is longer by
#: this.
_LOOK_SECONDS = 0.05

_waiting = PerProcess(lambda: Gate("a slot of a limit", MOST_WAITING, 0, per=0))

_PLAIN = re.compile(r"[!-~]{1,100}")


@dataclass(frozen=True)
class Slot:
    """One of the attempts that a limit allows, in the window that ends at `ends_ms`.

    By default it is the slot of a limit that is off.
    """

    key: str = ""
    ends_ms: int = 0
    #: The position of this slot among the `times` slots of the limit.
    number: int = 0
    times: int = 0
    #: The slot of the wider network that was taken with it.
    wider: Self | None = None

    @property
    def is_free(self) -> bool:
        """Whether the limit allows the attempt."""
        return self.number <= self.times

    def give_back(self) -> None:
        """Free the slot, and that of the wider network. Costs 1 request each."""
        self._add(-1)

    def note_failure(self) -> None:
        """Tell waiting attempts that this slot will not be given back.

        Costs 1 request in the later half of the slots, else none; the same for the wider network.
        """
        self._add(_FAILURE)

    def _add(self, number: int) -> None:
        """Add to the counted number.

        This must not change a later window. Therefore, nothing is added near the end of the window.
        If the answer shows that the request was too late anyway (clocks differ, or the limit was
        cleared as well), 1 more request undoes it.
        """
        is_late = self.number > self.times // 2 and self.times < _MOST_FAILURES
        # The window may have ended. A slot that is not given back is better than an error after a
        # success.
        with suppress(ValueError, Unavailable):
            if (number < 0 or is_late) and self.ends_ms - _now_ms() >= _NEAR_MS:
                ends_ms = cache.incr(self.key, number) // _WINDOW
                if ends_ms != self.ends_ms:
                    cache.incr(self.key, -number)
        if self.wider:
            self.wider._add(number)


@dataclass(frozen=True)
class Limit:
    """At most `times` attempts of each `subject` within `seconds`.

    With None as `times`, all attempts are admitted.
    """

    name: str
    times: int | None
    seconds: int

    def take(self, subject: str, *, waits: bool = False) -> Slot:
        """Take a slot of `subject`.

        With `waits`, for a limit of failures: if all slots are taken, but not all of their attempts
        have failed yet, wait for a slot as long as for a password hash. The first call in a window
        costs 1 request, later ones 2; a lost reply costs 1 request and 1 slot more. A waiting call
        sends about 10 reads, and 3 requests for each slot that another attempt takes first.

        Raises:
            TooManyAttempts: all are taken; or `MOST_WAITING` wait already.
            Unavailable: see `dynamo.client.sending.send`.
            Busy: after it waited, the page did not get its turn.
        """
        if self.times is None:
            return Slot()
        slot = self._count(self._key(subject), self.times, waits)
        return slot if slot.is_free else self._wait_for_slot(slot)

    def _wait_for_slot(self, slot: Slot) -> Slot:
        left = page_seconds_left()
        seconds = passwords.WAIT_SECONDS if left is None else min(passwords.WAIT_SECONDS, left)
        until = time.monotonic() + seconds
        try:
            with _waiting().inside(object()):
                while not slot.is_free:
                    self._wait(slot, until)
                    slot = self._count(slot.key, slot.times, waits=True)
                return slot
        except GateFull as error:
            raise TooManyAttempts(1, self.name) from error

    def _count(self, key: str, times: int, waits: bool) -> Slot:
        """Count an attempt and return its slot.

        If the returned slot is not free, it was given back, but another one may become free.

        Raises:
            TooManyAttempts: none becomes free before the window ends, or the caller does not wait.
        """
        for _attempt in range(_ATTEMPTS):
            ends_ms = _now_ms() + self.seconds * 1000
            if cache.add(key, ends_ms * _WINDOW + 1, self.seconds):
                return Slot(key, ends_ms, 1, times)
            try:
                counted = _counted(key)
            except ValueError:
                # The window ended or was cleared after `add` was refused.
                continue
            slot = Slot(key, counted // _WINDOW, counted % _FAILURE, times)
            if not slot.is_free:
                if not waits or _all_failed(counted, times):
                    left_ms = max(0, slot.ends_ms - _now_ms())
                    raise TooManyAttempts(left_ms // 1000 + 1, self.name)
                slot.give_back()
            return slot
        raise TooManyAttempts(1, self.name)

    def _wait(self, slot: Slot, until: float) -> None:
        """Wait until a slot may be free, or all attempts have failed.

        Raises:
            TooManyAttempts: neither happened before `until`.
        """
        pause = 0.0
        with turn_passed_on():
            while (left := until - time.monotonic()) > 0:
                pause += _LOOK_SECONDS
                time.sleep(min(left, pause))
                counted = cache.get(slot.key, 0)
                if counted % _FAILURE < slot.times or _all_failed(counted, slot.times):
                    return
        raise TooManyAttempts(1, self.name)

    def clear(self, subject: str) -> None:
        """Free all slots of `subject`. Costs 1 request."""
        if self.times is not None:
            cache.delete(self._key(subject))

    def _key(self, subject: str) -> str:
        # A cache key has at most 250 characters, without spaces and control characters.
        if not _PLAIN.fullmatch(subject):
            subject = hashlib.sha256(subject.encode(errors="surrogatepass")).hexdigest()
        return f"limits.{self.name}.{subject}"


class ClientLimit(Limit):
    """A limit of clients. An IPv6 client, which is a /64, also takes a slot of its /48."""

    def take(self, subject: str, *, waits: bool = False) -> Slot:
        """Take a slot of a client, and for IPv6 one of its /48, which costs as many requests.

        Raises:
            TooManyAttempts: all are taken. If only those of the /48 are, the client's slot is not
                given back.
            Unavailable, Busy: as in `Limit.take`.
        """
        slot = super().take(subject, waits=waits)
        network = wider_network(subject)
        if self.times is None or network is None:
            return slot
        wider = Limit(self.name, self.times * WIDER_TIMES, self.seconds)
        return replace(slot, wider=wider.take(network, waits=waits))


def limit(name: str) -> Limit:
    """The limit with this name in `accounts.conf`, as configured."""
    times, seconds = limit_of(name) or (None, 0)
    kind = ClientLimit if name.endswith("_client") else Limit
    return kind(name, times, seconds)


def _all_failed(counted: int, times: int) -> bool:
    """Whether all later slots have failed, as `Slot.note_failure` notes."""
    return counted % _WINDOW // _FAILURE >= times - times // 2


def _counted(key: str) -> int:
    """Count another slot and return the number. After a lost reply, count one more."""
    try:
        return cache.incr(key)
    except Unavailable as lost:
        if not lost.maybe_written:
            raise
    return cache.incr(key)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
