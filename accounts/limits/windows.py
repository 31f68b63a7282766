"""How often something may be tried: for each limit and each who, a window in Django's cache.

    limits.<name>.<who>     the end of the window in epoch ms × 10^12 + the slots taken in it

A window begins with the first slot that is taken, and passes by itself. Its end stands in the
number that is counted, so the atomic answer to the count says whether the slot was the last, when
the window ends, and which window it is. Of whoever races, at most `times` get a slot.

After a lost reply nobody can tell whether it counted, so a slot is taken by counting once more.
What the lost one took is used up, and may have been the last: a limit errs on the side of stopping.
A second lost reply in a row is an outage, and no third count follows: with it a minute without
replies would use up an hour's slots.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass, replace

from django.conf import settings
from django.core.cache import cache

from accounts.exceptions import TooManyAttempts
from accounts.limits.client_address import wider_network
from dynamo.exceptions import Unavailable

#: What is limited, unless the environment says otherwise: `ACCOUNTS_LIMIT_<NAME>`, or "off".
DEFAULTS = {
    # Failed sign-ins: to one account, and from one client's address.
    "sign_in": "10/15m",
    "sign_in_client": "100/15m",
    # Successful sign-ins from one client's address.
    "sign_in_success_client": "1000/15m",
    # Wrong passwords typed again by someone who is signed in, for each session.
    "reauthentication": "10/15m",
    # Sign-ups from one client's address.
    "sign_up_client": "100/1h",
    # Mails of one kind to one address, and mails of all kinds asked for from one client's address.
    "mail": "5/1h",
    "mail_client": "100/1h",
}

#: How many times as many attempts an IPv6 /48 has as each /64 in it: somebody with a /48 has 65,536
#: of these, but it may also be that of a provider with many customers.
WIDER_TIMES = 10

#: More slots than any window sees: at DynamoDB's 1,000 writes a second to an item, 30 years' worth.
_WINDOW = 10**12
#: A window so near its end gets no slot back: its key may have the next window by then.
_NEAR_MS = 10_000
#: How often a slot is tried for while windows end, or are cleared, under the hands.
_ATTEMPTS = 8

_PLAIN = re.compile(r"[!-~]{1,100}")


@dataclass(frozen=True)
class Slot:
    """One of the attempts that a limit allows, taken in the window that ends at `ends_ms`."""

    key: str
    ends_ms: int
    #: The one of the wider network that was taken with it.
    wider: Slot | None = None


@dataclass(frozen=True)
class Limit:
    """At most `times` within `seconds`, counted for each who; any number where `times` is None."""

    name: str
    times: int | None
    seconds: int

    def take(self, who: str) -> Slot | None:
        """A slot of `who`; None where nothing is limited.

        Costs 1 request for the first in a window, else 2; 1 more, and a slot, after a lost reply.

        Raises:
            TooManyAttempts: all are taken.
            Unavailable: see `dynamo.client.sending`. No slot was got.
        """
        if self.times is None:
            return None
        key = self._key(who)
        for _attempt in range(_ATTEMPTS):
            ends_ms = _now_ms() + self.seconds * 1000
            if cache.add(key, ends_ms * _WINDOW + 1, self.seconds):
                return Slot(key, ends_ms)
            try:
                ends_ms, taken = divmod(_counted(key), _WINDOW)
            except ValueError:
                # The window ended, or was cleared, since `add` met it.
                continue
            if taken > self.times:
                raise TooManyAttempts(_seconds_until(ends_ms), self.name)
            return Slot(key, ends_ms)
        raise TooManyAttempts(1, self.name)

    def clear(self, who: str) -> None:
        """Give `who` all slots anew. Costs 1 request."""
        if self.times is not None:
            cache.delete(self._key(who))

    def give_back(self, slot: Slot | None) -> None:
        """Return a slot, once; None is none. Costs 1 request.

        A later window gets no slot more. Near the end of its window, where a request could come too
        late, none is given back; should one come too late all the same (clocks that disagree, a
        limit that is cleared as well), the answer tells, and it is counted again, with 1 request
        more. Where the cache gives no answer, the slot may stay used up.
        """
        if slot is None or slot.ends_ms - _now_ms() < _NEAR_MS:
            return
        try:
            ends_ms, _taken = divmod(cache.incr(slot.key, -1), _WINDOW)
            if ends_ms != slot.ends_ms:
                cache.incr(slot.key)
        except (ValueError, Unavailable):
            # The window ended, and no other began; or a slot is lost, which harms less than an
            # error in what had succeeded.
            return

    def _key(self, who: str) -> str:
        # A key has at most 250 characters, and none that is white or unprintable.
        if not _PLAIN.fullmatch(who):
            who = hashlib.sha256(who.encode(errors="surrogatepass")).hexdigest()
        return f"limits.{self.name}.{who}"


class ClientLimit(Limit):
    """A limit of clients, where an IPv6 client, which is a /64, also counts for its /48."""

    def take(self, who: str) -> Slot | None:
        """A slot of the client `who`, and for IPv6 one of its /48, which costs as much again.

        Raises:
            TooManyAttempts: all are taken. A slot of the client is used up if it is the /48's.
            Unavailable: as `Limit.take`.
        """
        slot = super().take(who)
        network = wider_network(who)
        if slot is None or self.times is None or network is None:
            return slot
        wider = Limit(self.name, self.times * WIDER_TIMES, self.seconds)
        return replace(slot, wider=wider.take(network))

    def give_back(self, slot: Slot | None) -> None:
        """Return a slot, and the one of the /48. Costs 1 request each, see `Limit.give_back`."""
        super().give_back(slot)
        super().give_back(slot and slot.wider)


def limit(name: str) -> Limit:
    """The limit of that name in `DEFAULTS`, as the settings have it."""
    allowed: tuple[int, int] | None = settings.ACCOUNTS_LIMITS[name]
    times, seconds = allowed or (None, 0)
    kind = ClientLimit if name.endswith("_client") else Limit
    return kind(name, times, seconds)


def _counted(key: str) -> int:
    """The number of `key`, counted up; once more, for another slot, where the reply was lost."""
    try:
        return cache.incr(key)
    except Unavailable as lost:
        if not lost.maybe_written:
            raise
    return cache.incr(key)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _seconds_until(ends_ms: int) -> int:
    """Whole seconds after which the window is over."""
    return max(0, ends_ms - _now_ms()) // 1000 + 1
