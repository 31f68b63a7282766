"""Accounts with their invoices, and address books, in the admin. Address books are read-only."""

from typing import Any

from django import forms
from django.http import HttpRequest
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _
from django.views import View

from accounts.admin import AccountAdmin
from accounts.models import AbstractAccount, User
from dynamo import Page, Transaction, admin
from dynamo.admin.actions import REASON
from dynamo.admin.models import LogEntry
from dynamo.auth.usernames import as_uuid
from dynamo.inputs import SingleLine
from dynamo.model.unique import SEPARATOR
from dynamo.wire.types import Item
from invoices.document.invoice import series_of
from invoices.models import SELLER_VALUES, CustomerItem, InvoiceItem, SellerProfile
from invoices.store import issuing
from outbox.admin import TaskAdmin
from outbox.models import TaskItem
from sequences.check import last_of
from sequences.models import REQUEST_PREFIX
from staff import views
from staff.models import ON_STAFF
from staff.reports import KINDS, last_reports

#: The values of the seller that the page of an account shows, if they are set.
SELLER_SHOWN = ("name", "address", "vat_id")

#: The list shows the newest accounts of the last report: `?newest`.
NEWEST = "newest"

#: The number of years for which the last invoice number is shown, including this one.
YEARS = 3

LogEntry.labels |= {
    "breakLock": _("Broke a lock"),
    "openInvoices": _("Opened invoices"),
    "openCustomers": _("Opened the address book"),
}


class StaffAdmin(admin.ModelAdmin):
    """Staff may see all items and change none."""

    reason_required = True

    def _always(self, request: HttpRequest, obj: object = None) -> bool:
        return True

    def _never(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    has_module_permission = has_view_permission = has_act_permission = _always
    has_add_permission = has_change_permission = has_delete_permission = _never

    def confirm_fields(self, request: HttpRequest, dangerous: bool) -> dict[str, forms.Field]:
        made = super().confirm_fields(request, dangerous)
        reason: Any = made[REASON]
        reason.help_text = _("Kept in the audit log, which all staff can read.")
        reason.validators.append(SingleLine(max_length=reason.max_length).clean)
        return made


# This class replaces the library's.
admin.site.unregister(User)
admin.site.unregister(TaskItem)


@admin.register(User)
class UserAdmin(StaffAdmin, AccountAdmin):
    """`AccountAdmin` with seller and invoices of an account.

    All staff may add, correct and delete.
    """

    search_help_text = _(
        "By the first letters of username or email address (at least two), by primary key, the key "
        "of a guard item or of a series of invoices."
    )
    shown_fields = ("full_name", "phone_number")
    change_list_template = "staff/accounts.html"
    change_form_template = "staff/account.html"
    delete_confirmation_template = "staff/account_delete.html"
    object_history_template = "staff/history.html"

    has_add_permission = StaffAdmin._always
    has_change_permission = AccountAdmin.has_change_permission

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return self._is_below(request, obj)

    def get_urls(self) -> list[URLPattern]:
        def page(to: str, view: type[View], name: str) -> URLPattern:
            shown = self.admin_site.admin_view(view.as_view())
            return path(f"<uuid:pk>/invoices/{to}", shown, name=f"accounts_user_{name}")

        return [
            page("", views.AccountInvoicesView, "invoices"),
            page("<str:label>/", views.AccountInvoiceView, "invoice"),
            page("<str:label>.pdf", views.AccountInvoicePdfView, "invoice_pdf"),
            *super().get_urls(),
        ]

    def get_page(self, request: HttpRequest, changelist: Any) -> Page[Any]:
        """With `?newest`, the newest accounts of the last report. Costs 2 requests."""
        if NEWEST in request.GET:
            [changelist.report] = last_reports(KINDS["statistics"])
            keys = changelist.report.newest
            return Page([value for value in self._selected(keys).values() if value], None)
        return super().get_page(request, changelist)

    def find(self, who: str) -> AbstractAccount | Item | None:
        """Also find an account by the keys of its series, of a counter or of a request guard."""
        bare = who.removeprefix(InvoiceItem.counter_prefix()).removeprefix(REQUEST_PREFIX)
        return super().find(bare if as_uuid(bare.partition(SEPARATOR)[0]) else who)

    def account_context(self, pk: str) -> dict[str, Any]:
        """The context, with the seller's values and the last invoice number of each year.

        A year's number is None if its counter is damaged.
        """
        this_year = issuing.today().year
        years = range(this_year, this_year - YEARS, -1)
        counters = [InvoiceItem.counter_of(series_of(pk, year)) for year in years]
        user, guards, others = self.read_account(pk, [SellerProfile(pk), *counters])
        seller, *last = others
        profile = SellerProfile.from_raw_data(seller) if seller else SellerProfile(pk)
        values = [(SELLER_VALUES[name].label, getattr(profile, name)) for name in SELLER_SHOWN]
        numbers = zip(years, last, strict=True)
        return {
            "shown": user,
            "guards": guards,
            "values": [*self.shown_values(user), *values],
            "invoices": [(year, last_of(InvoiceItem, item)) for year, item in numbers if item],
        }

    def commit(
        self, request: HttpRequest, write: Transaction, action: str, obj: Any, **options: Any
    ) -> bool:
        if obj.is_staff or obj.is_superuser:
            options["permission"] = ON_STAFF
        return super().commit(request, write, action, obj, **options)


@admin.register(CustomerItem)
class CustomerAdmin(StaffAdmin):
    """The address book of one account: `?account=<primary key>`.

    The audit log records each opening.
    """

    list_display = ("number", "name", "address", "email", "vat_id", "country")
    list_display_links = None
    list_filter = ("account",)
    change_list_template = "staff/customers.html"
    #: It is opened from the page of an account, so the index does not list it.
    has_module_permission = StaffAdmin._never

    def get_urls(self) -> list[URLPattern]:
        return [url for url in super().get_urls() if url.name and url.name.endswith("_changelist")]

    def get_page(self, request: HttpRequest, changelist: Any) -> Page[Any]:
        """Costs 3 requests, or none if the address names no account."""
        if changelist.source is None:
            return Page([], None)
        page = super().get_page(request, changelist)
        if page.items:
            changelist.owner = self.admin_site.record_opening(
                request, "openCustomers", changelist.partition
            )
        return page


@admin.register(TaskItem)
class StaffTaskAdmin(StaffAdmin, TaskAdmin):
    """All staff may restart and discard tasks that have failed."""

    # Django's search form has a text that is not translated.
    search_fields = ()
