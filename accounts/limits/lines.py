"""Pages that keep a core busy for long: a process makes one at a time for each account.

Further ones of the account wait in its line. While they wait, they give up their turns, so that
pages of other accounts are made. Nothing is sent to DynamoDB.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse

from accounts.exceptions import TooManyAttempts
from dynamo import Busy
from dynamo.extending import PerProcess, page_seconds_left, turn_passed_on

#: How many pages of an account may wait for its first one: a person opens a few in tabs.
MOST_WAITING = 5
#: How many pages may be in the lines of all accounts; `project.middleware` has places for 96 more.
MOST_IN_LINES = 32

RETRY_AFTER_SECONDS = 5


class _Lines:
    """The pages of each account, the one that is being made first."""

    def __init__(self) -> None:
        self._lines: dict[str, list[object]] = {}
        self._moved = threading.Condition()

    @contextmanager
    def place(self, account: str) -> Iterator[None]:
        """See `in_line`."""
        me = object()
        with self._moved:
            line = self._lines.get(account, [])
            if len(line) > MOST_WAITING:
                raise TooManyAttempts(RETRY_AFTER_SECONDS, "in_line")
            if sum(map(len, self._lines.values())) >= MOST_IN_LINES:
                raise Busy("a page that takes long")
            line.append(me)
            self._lines[account] = line
        try:
            if line[0] is not me:
                with turn_passed_on(), self._moved:
                    if not self._moved.wait_for(lambda: line[0] is me, page_seconds_left()):
                        raise TooManyAttempts(RETRY_AFTER_SECONDS, "in_line")
            yield
        finally:
            with self._moved:
                line.remove(me)
                if not line:
                    del self._lines[account]
                self._moved.notify_all()


_lines = PerProcess(_Lines)


def in_line(account: str) -> Any:
    """A context whose body runs when no other one of `account` does.

    Raises:
        TooManyAttempts: `MOST_WAITING` wait already, or it waited until the page's deadline.
        Busy: `MOST_IN_LINES` of all accounts run or wait.
    """
    return _lines().place(account)


class InLineMixin:
    """A page that takes long. As a base it stands after the mixin that asks for a sign-in."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Make the page, including its template, when it is first in the line of the account."""
        account: Any = request.user
        with in_line(account.pk):
            response: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # a View's
            if isinstance(response, SimpleTemplateResponse):
                # Django would render it after the view, outside the line.
                response.render()
            return response
