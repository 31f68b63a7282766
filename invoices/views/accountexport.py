"""The download of one's own data."""

from __future__ import annotations

from django.http import HttpRequest, StreamingHttpResponse
from django.views import View

from accounts.views.pages import signed_in
from accounts.views.reauthentication import FreshSignInMixin
from invoices.accountexport import as_json


class AccountExportView(FreshSignInMixin, View):
    """All that is stored about the signed-in user, as a JSON file."""

    http_method_names = ("get",)

    def get(self, request: HttpRequest) -> StreamingHttpResponse:
        """The file, made while it is sent; without DynamoDB a 503 as long as none of it is."""
        return StreamingHttpResponse(
            as_json(signed_in(request)),
            content_type="application/json",
            headers={
                "Content-Disposition": 'attachment; filename="account.json"',
                "Cache-Control": "private, no-store",
            },
        )
