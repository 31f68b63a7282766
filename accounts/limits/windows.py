"""Rate limits: for each limit and each subject (an account, a client), a window in Django's cache.

    limits.<name>.<subject>     the end of the window in epoch ms × 10^12 + the slots taken in it

A window begins with the first slot that is taken, and expires. The counted number contains the
window's end. So the answer to one atomic count tells whether the slot was the last, when the window
ends, and which window it is. However many attempts are made at once, at most `times` get a slot.

After a lost reply nobody can know whether the slot was counted, so another one is counted. The lost
slot stays taken and may have been the last: in doubt, a limit refuses. After a second lost reply
in a row there is no third count: in a minute of outage these would take the slots of an hour.
"""

import hashlib
import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

from django.conf import settings
from django.core.cache import cache

from accounts.exceptions import TooManyAttempts
from accounts.limits.clients import wider_network
from dynamo import Unavailable

#: The limits, unless the environment sets `ACCOUNTS_LIMIT_<NAME>` (also to "off").
DEFAULTS = {
    # Failed sign-ins: to one account, and from one client's address.
    "sign_in": "10/15m",
    "sign_in_client": "100/15m",
    # Successful sign-ins from one client's address.
    "sign_in_success_client": "1000/15m",
    # Wrong passwords that a signed-in user enters, per session.
    "reauthentication": "10/15m",
    # Sign-ups from one client's address.
    "sign_up_client": "100/1h",
    # Mails of one kind to one address, and mails of all kinds requested from one client's address.
    "mail": "5/1h",
    "mail_client": "100/1h",
    # Mails that an account sends to others, in all and to one address.
    "mail_account": "30/1h",
    "mail_account_day": "100/1d",
    "mail_account_recipient": "10/1d",
    # Such mails of all accounts to one address. Far higher, or one account could use it up.
    "mail_recipient": "500/1d",
}

#: An IPv6 /48 has this many times the slots of each /64 in it. It has 65,536 of these, but it may
#: also belong to a provider with many customers.
WIDER_TIMES = 10

#: More slots than any window can have: 30 years of DynamoDB's 1,000 writes per second to an item.
_WINDOW = 10**12
#: A slot is not given back this near the end of its window: its key may soon have the next window.
_NEAR_MS = 10_000
#: How often a slot is tried for while windows end or are cleared.
_ATTEMPTS = 8

_PLAIN = re.compile(r"[!-~]{1,100}")


@dataclass(frozen=True)
class Slot:
    """One of the attempts that a limit allows, in the window that ends at `ends_ms`.

    By default it is the slot of a limit that is off.
    """

    key: str = ""
    ends_ms: int = 0
    #: The slot of the wider network that was taken with it.
    wider: Self | None = None

    def give_back(self) -> None:
        """Free the slot, and that of the wider network. Costs 1 request each.

        It must not free a slot of a later window. So near the end of its window it frees none; and
        if the answer shows that the request came too late anyway (clocks differ, the limit was
        cleared too), the slot is counted again with 1 request more.
        """
        # The window may have ended. A lost slot is better than an error after a success.
        with suppress(ValueError, Unavailable):
            if self.ends_ms - _now_ms() >= _NEAR_MS:
                ends_ms, _taken = divmod(cache.incr(self.key, -1), _WINDOW)
                if ends_ms != self.ends_ms:
                    cache.incr(self.key)
        if self.wider:
            self.wider.give_back()


@dataclass(frozen=True)
class Limit:
    """At most `times` attempts of each `subject` within `seconds`. No limit if `times` is None.

    With 0 `times`, every attempt is refused.
    """

    name: str
    times: int | None
    seconds: int

    def take(self, subject: str) -> Slot:
        """Take a slot of `subject`.

        Costs 1 request for the first in a window, else 2; after a lost reply 1 and a slot more.

        Raises:
            TooManyAttempts: all are taken.
            Unavailable: see `dynamo.extending.send`.
        """
        if self.times is None:
            return Slot()
        if not self.times:
            raise TooManyAttempts(self.seconds, self.name)
        key = self._key(subject)
        for _attempt in range(_ATTEMPTS):
            ends_ms = _now_ms() + self.seconds * 1000
            if cache.add(key, ends_ms * _WINDOW + 1, self.seconds):
                return Slot(key, ends_ms)
            try:
                ends_ms, taken = divmod(_counted(key), _WINDOW)
            except ValueError:
                # The window ended or was cleared after `add` was refused.
                continue
            if taken > self.times:
                raise TooManyAttempts(max(0, ends_ms - _now_ms()) // 1000 + 1, self.name)
            return Slot(key, ends_ms)
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

    def take(self, subject: str) -> Slot:
        """Take a slot of a client, and for IPv6 one of its /48, which costs the same again.

        Raises:
            TooManyAttempts: all are taken. If those of the /48 are, the client's slot stays taken.
            Unavailable: as `Limit.take`.
        """
        slot = super().take(subject)
        network = wider_network(subject)
        if self.times is None or network is None:
            return slot
        wider = Limit(self.name, self.times * WIDER_TIMES, self.seconds)
        return replace(slot, wider=wider.take(network))


def limit(name: str) -> Limit:
    """The limit with this name in `DEFAULTS`, as configured."""
    allowed: tuple[int, int] | None = settings.ACCOUNTS_LIMITS[name]
    times, seconds = allowed or (None, 0)
    kind = ClientLimit if name.endswith("_client") else Limit
    return kind(name, times, seconds)


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
