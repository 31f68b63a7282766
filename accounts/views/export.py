"""One's own data, to take along."""

from __future__ import annotations

from django.http import HttpRequest, StreamingHttpResponse
from django.views import View

from accounts import exports
from accounts.views.pages import signed_in
from accounts.views.reauthentication import FreshSignInMixin


class AccountExportView(FreshSignInMixin, View):
    """All that is kept about who is signed in, as a JSON file; see `accounts.exports`."""

    http_method_names = ("get",)

    def get(self, request: HttpRequest) -> StreamingHttpResponse:
        """The file, made while it is sent; without DynamoDB a 503 as long as none of it is."""
        return StreamingHttpResponse(
            exports.as_json(signed_in(request)),
            content_type="application/json",
            headers={
                "Content-Disposition": 'attachment; filename="account.json"',
            },
        )
