"""Pages that take long: a process makes one at a time for each account.

Further pages of the account wait for it. While they wait, they pass their turns on to pages of
other accounts. Nothing is sent to DynamoDB.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.views import View

from dynamo.runtime.gates import Gate
from dynamo.runtime.processes import PerProcess

#: How many accounts get a page at once. Most of these pages wait for the helper process.
AT_ONCE = 16
#: How many pages of an account may wait for its first one: a person opens a few in tabs.
MOST_WAITING = 5
#: How many pages of all accounts may wait, a third of those for which `project.middleware` has
#: places.
MOST_WAITING_IN_ALL = 32

_gate = PerProcess(
    lambda: Gate("a page that takes long", AT_ONCE, MOST_WAITING_IN_ALL, per=MOST_WAITING)
)


def one_at_a_time(account: str) -> AbstractContextManager[None]:
    """A context whose body runs when no other one of `account` does.

    Raises:
        GateFull: `MOST_WAITING` of the account wait already, or `MOST_WAITING_IN_ALL` of all
            accounts; or it waited until the page's deadline. See `Gate`.
    """
    return _gate().inside(account)


class LongPageMixin(View):
    """A page that takes long. Visitors who are not signed in do not wait for each other."""

    def in_line(self, request: HttpRequest) -> AbstractContextManager[None]:
        """A context whose body runs when it is this page's turn."""
        account: Any = request.user
        return one_at_a_time(account.pk) if account.is_authenticated else nullcontext()

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Make the page, including its template, when the account's earlier pages are made."""
        with self.in_line(request):
            response = super().dispatch(request, *args, **kwargs)
            if isinstance(response, SimpleTemplateResponse):
                # Django would render it after the view, beside the account's next page.
                response.render()
            return response
