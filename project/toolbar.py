"""django-debug-toolbar in development, with a panel of a page's requests to DynamoDB.

It is installed with the test dependencies and may be absent. Nothing else imports this module.
"""

from dataclasses import asdict

from debug_toolbar.panels import Panel
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dynamo.client.tally import collect


class DynamoPanel(Panel):
    """The requests to DynamoDB, each with its table, units, milliseconds and the line of code."""

    title = "DynamoDB"
    template = "project/toolbar.html"

    @property
    def nav_subtitle(self) -> str:
        return str(self.get_stats().get("summary", ""))

    def process_request(self, request: HttpRequest) -> HttpResponseBase:
        with collect(keep_calls=True) as tally:
            response: HttpResponseBase = super().process_request(request)
        # The toolbar keeps it as JSON.
        self.record_stats(
            {
                "summary": str(tally),
                "milliseconds": round(tally.seconds * 1000, 1),
                "calls": [asdict(call) for call in tally.calls],
                "left_out": tally.requests - len(tally.calls),
            }
        )
        return response
