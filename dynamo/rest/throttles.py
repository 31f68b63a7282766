"""Throttles that count exactly, even if requests are sent at the same time."""

import math
from contextlib import suppress

from django.core.exceptions import ImproperlyConfigured
from rest_framework import throttling
from rest_framework.request import Request

#: A throttle stores one number: the second in which its window ends, times this factor, plus the
#: requests in the window. It has at most 64 bits, because Redis counts with these.
_WINDOW = 10**9

#: A throttle tries this many times, because its window may end between two requests to the cache.
_ATTEMPTS = 5


class SimpleRateThrottle(throttling.SimpleRateThrottle):
    """The framework's throttle, with a limit that also holds for requests sent at the same time.

    The framework reads the history of a client and writes it back. This class counts with one
    atomic request, whose answer tells the number of requests and the end of the window. A window
    begins with the first request and lasts for the period of the rate. Costs 1 request. The first
    request of a window costs 2.
    """

    cache_format = "throttle_window_%(scope)s_%(ident)s"
    _ends_at = 0

    def allow_request(self, request: Request, view: object) -> bool:
        key = None if self.rate is None else self.get_cache_key(request, view)
        if key is None:
            return True
        self._ends_at, number = divmod(self._count(key), _WINDOW)
        return bool(number <= self.num_requests)

    def _count(self, key: str) -> int:
        for _attempt in range(_ATTEMPTS):
            with suppress(ValueError):
                return self.cache.incr(key)
            # The last window has ended. If requests are sent at the same time, one of them begins
            # the next window.
            first = math.ceil(self.timer() + self.duration) * _WINDOW + 1
            if self.cache.add(key, first, self.duration):
                return first
        raise ImproperlyConfigured(f"The cache has another value than a count under {key!r}.")

    def wait(self) -> float:
        """The seconds until the window ends: `Retry-After`."""
        return max(0.0, self._ends_at - self.timer())


class AnonRateThrottle(throttling.AnonRateThrottle, SimpleRateThrottle):
    """The framework's throttle, with the count of `SimpleRateThrottle`."""


class UserRateThrottle(throttling.UserRateThrottle, SimpleRateThrottle):
    """The framework's throttle, with the count of `SimpleRateThrottle`."""


class ScopedRateThrottle(throttling.ScopedRateThrottle, SimpleRateThrottle):
    """The framework's throttle, with the count of `SimpleRateThrottle`."""
