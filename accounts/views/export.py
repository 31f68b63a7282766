"""One's own data, to take along."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views import View

from accounts import exports
from accounts.views.pages import signed_in
from accounts.views.reauthentication import FreshSignInMixin
from sequences.views.downloads import stream


class AccountExportView(FreshSignInMixin, View):
    """All that is kept about who is signed in, as a JSON file; see `accounts.exports`."""

    http_method_names = ("get",)

    def get(self, request: HttpRequest) -> HttpResponseBase:
        """The file, made while it is sent; without DynamoDB a 503 as long as none of it is."""
        user = signed_in(request)
        return stream(
            request, user.pk, lambda: exports.as_json(user), "application/json", "account.json"
        )
