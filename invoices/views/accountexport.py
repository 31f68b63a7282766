"""The download of one's own data."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views import View

from accounts.pages import signed_in
from accounts.sessions.views import FreshSignInMixin
from invoices.accountexport import as_json
from invoices.views.downloads import stream


class AccountExportView(FreshSignInMixin, View):
    """All that is stored about the signed-in user, as a JSON file."""

    http_method_names = ("get",)

    def get(self, request: HttpRequest) -> HttpResponseBase:
        """The file, made while it is sent; without DynamoDB a 503 as long as none of it is."""
        user = signed_in(request)
        return stream(request, user.pk, lambda: as_json(user), "application/json", "account.json")
