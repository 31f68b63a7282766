"""What the invoices' pages share: they are about the invoices of who is signed in.

Invoices are found under their account's key alone, so another's is as unknown as one that is not
there: 404.
"""

from __future__ import annotations

from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import Http404, HttpRequest

from invoices.documents import Invoice
from invoices.exceptions import UnknownInvoice
from invoices.records import find_invoice


class OwnInvoicesMixin(LoginRequiredMixin):
    """A page about the invoices of who is signed in."""

    request: HttpRequest

    @property
    def account(self) -> str:
        """The primary key of who is signed in."""
        return str(self.request.user.pk)

    def find(self, label: str) -> Invoice:
        """The account's invoice of this number, else 404."""
        try:
            return find_invoice(self.account, label)
        except UnknownInvoice as error:
            raise Http404(str(error)) from error
