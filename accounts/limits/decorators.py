"""A rate limit for a project's own views."""

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import TypeVar

from django.http import HttpRequest

from accounts.conf import parsed_limit
from accounts.limits.clients import counted_client
from accounts.limits.windows import ClientLimit, Limit

Key = Callable[[HttpRequest], str]
T = TypeVar("T")


def limited(
    name: str, rate: str, *, key: Key | None = None, methods: tuple[str, ...] = ("POST",)
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Let a view be called `rate` times, such as `5/h`, by each client or for each `key`.

        @limited("contact", "5/h")
        def contact(request): ...

        @limited("export", "2/d", key=lambda request: request.user.pk, methods=("GET",))
        def export(request): ...

    Further calls are answered with 429 and Retry-After (`TooManyAttemptsMiddleware`). The count is
    atomic, also across processes; views with the same `name` share it. Requests with other methods
    do not count. The first call in a window costs 1 request, later ones 2, with 1 write unit each.

    Raises:
        ValueError: when the view is defined, if `rate` is not a limit.
    """
    times, seconds = parsed_limit(rate) or (None, 0)
    kind = Limit if key else ClientLimit
    limit = kind(f"view.{name}", times, seconds)

    def decorated(view: Callable[..., T]) -> Callable[..., T]:
        if iscoroutinefunction(view):
            raise TypeError("limited is for views that are not asynchronous.")

        @wraps(view)
        def checked(request: HttpRequest, *args: object, **kwargs: object) -> T:
            if request.method in methods:
                limit.take(str((key or counted_client)(request)))
            return view(request, *args, **kwargs)

        return checked

    return decorated
