"""Accounts and address books in the admin. Address books are read-only."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.crypto import get_random_string
from django.utils.translation import gettext_lazy as _, override
from django.views import View

from accounts import services
from accounts.emails import mails
from accounts.exceptions import StaleUser, TooManyAttempts
from accounts.limits.attempts import begin_mail
from accounts.limits.clients import browser_name
from accounts.models import User
from accounts.pages import notices
from accounts.pages.base import signed_in, stale_text
from accounts.sessions import services as sessions, visitor
from accounts.signals import account_deleted
from dynamo import DamagedItem, Page, Transaction, admin
from dynamo.admin.actions import DELETE, NOTHING_DONE, REASON, as_stored
from dynamo.admin.models import LogEntry, journal_of, label_of, list_entries
from dynamo.inputs import SingleLine
from dynamo.wire.values import text_of
from invoices.models import SELLER_VALUES, CustomerItem
from staff import views
from staff.lookups import find, read_account
from staff.models import ON_STAFF
from staff.reports import KINDS, last_reports

NOT_SENT = _("The mail could not be sent. Please try again later.")

#: How many entries of the audit log the page of an account shows. Its history has all.
SHOWN_ENTRIES = 5

#: What the page of an account shows, if the account has it.
SHOWN = ("full_name", "phone_number")
#: What it shows of the seller.
SELLER_SHOWN = ("name", "address", "vat_id")

#: The action on the session that the address of the page names: `?session=`.
END_SESSION = "endSession"

#: The list shows the newest accounts of the last report: `?newest`.
NEWEST = "newest"

#: The correction of an email address, and the URL name of its page.
CHANGE_EMAIL, EMAIL_PAGE = "changeEmail", "accounts_user_email"

EMAIL_HELP = _(
    "The new address gets a link that confirms it. If the old address was confirmed, a notice is "
    "sent there. Links that were sent before stop working. The account stays signed in."
)

#: What staff types for a new account.
ADDED = ("username", "email", "full_name", "phone_number")

LogEntry.labels |= {
    CHANGE_EMAIL: _("Corrected the email address"),
    "breakLock": _("Broke a lock"),
    "openInvoices": _("Opened invoices"),
    "openCustomers": _("Opened the address book"),
}


def _count_mail(request: HttpRequest, kind: str, email: str) -> None:
    try:
        begin_mail(kind, email, visitor.address(request))
    except TooManyAttempts as error:
        raise ValidationError(str(error)) from error


def _action(name: str, title: object, label: object) -> Callable[[Any], Any]:
    """An action on accounts, by its name in URLs and in the audit log, where it has the `label`.

    None of them grants rights. An account's own pages are for its owner: staff acts on other
    accounts only, and only a superuser acts on the account of another member of staff.
    """

    def decorated(function: Any) -> Any:
        def checked(self: Any, request: HttpRequest, user: User, write: Transaction) -> Any:
            if user == signed_in(request):
                raise ValidationError(_("You cannot do this to your own account."))
            if not self.admin_site.may_write(request, user):
                raise ValidationError(_("Only a superuser can do this to a staff account."))
            return function(self, request, user, write)

        checked.__name__ = name
        LogEntry.labels[name] = label
        return admin.action(checked, permissions=["act"], description=title, dangerous=True)

    return decorated


class StaffAdmin(admin.ModelAdmin):
    """Staff sees every item and changes none."""

    reason_required = True

    def _always(self, request: HttpRequest, obj: object = None) -> bool:
        return True

    def _never(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    has_module_permission = has_view_permission = has_act_permission = _always
    has_add_permission = has_change_permission = has_delete_permission = _never

    def confirm_fields(self, request: HttpRequest, dangerous: bool) -> dict[str, Any]:
        made = super().confirm_fields(request, dangerous)
        reason: Any = made[REASON]
        reason.help_text = _("Kept in the audit log, which all staff can read.")
        reason.validators.append(SingleLine(max_length=reason.max_length).clean)
        return made


@admin.register(User)
class UserAdmin(StaffAdmin):
    """All accounts, or those that a search finds. Adding, correcting and deleting need a password.

    No form grants rights or sets a password: a new account gets a link by mail.
    """

    dangerous = ("add", "change", "delete")

    list_display = ("username", "email", "date_joined", "standing")
    search_fields = ("username", "email")
    search_help_text = _(
        "By the first letters of username or email address (at least two), by primary key, the key "
        "of a guard item or of a series of invoices."
    )
    change_list_template = "staff/accounts.html"
    change_form_template = "staff/account.html"
    delete_confirmation_template = "staff/account_delete.html"
    object_history_template = "staff/history.html"

    @_action("deactivate", _("Deactivate…"), _("Deactivated the account"))
    def deactivate(self, request: HttpRequest, user: User, write: Transaction) -> None:
        services.deactivate(user, write=write)

    @_action("activate", _("Activate…"), _("Activated the account"))
    def activate(self, request: HttpRequest, user: User, write: Transaction) -> None:
        services.activate(user, write=write)

    @_action("endSessions", _("End all sessions…"), _("Ended all sessions"))
    def end_sessions(self, request: HttpRequest, user: User, write: Transaction) -> None:
        sessions.end_all(user, write=write)

    @_action(END_SESSION, _("End a session…"), _("Ended a session"))
    def end_session(self, request: HttpRequest, user: User, write: Transaction) -> str:
        found = sessions.find(user, request.GET["session"])
        sessions.end(user, request.GET["session"], write=write)
        with override(None):  # it is stored for readers of any language
            return f"{browser_name(found.browser)}, {found.address}" if found else ""

    @_action("sendPasswordReset", _("Send a password reset…"), _("Sent a password reset"))
    def send_password_reset(self, request: HttpRequest, user: User, write: Transaction) -> None:
        if user.is_active and user.has_usable_password():
            self._mail(request, user, write, "reset", lambda: mails.send_reset(user.email))

    @_action(
        "sendConfirmation", _("Send the confirmation again…"), _("Sent the confirmation again")
    )
    def send_confirmation(self, request: HttpRequest, user: User, write: Transaction) -> None:
        if not user.is_confirmed:
            self._mail(request, user, write, "confirm", lambda: mails.send_confirmation(user))

    def _mail(
        self,
        request: HttpRequest,
        user: User,
        write: Transaction,
        kind: str,
        sent: Callable[[], object],
    ) -> None:
        """Count a mail to `user`, and send it by `sent` as soon as its entries are stored."""

        def send(_stored: object) -> None:
            if not sent():
                raise ValidationError(NOT_SENT)

        _count_mail(request, kind, user.email)
        write.check(user, user.same_account(), otherwise=StaleUser(user.pk, deleted=True))
        write.on_commit(user, send)

    actions = (
        deactivate,
        activate,
        end_sessions,
        send_password_reset,
        send_confirmation,
        end_session,
    )

    @admin.display(description=_("State"))
    def standing(self, obj: User) -> str:
        states = {
            _("Deactivated"): not obj.is_active,
            _("Staff"): obj.is_staff,
            _("Superuser"): obj.is_superuser,
        }
        return " · ".join(str(state) for state, is_so in states.items() if is_so)

    # Adding, correcting and deleting ------------------------------------------------------------

    has_add_permission = StaffAdmin._always

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        is_own = obj is not None and obj == signed_in(request)
        return not is_own and self.admin_site.may_write(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """On the page that corrects the email address. The page of an account has no form."""
        return self._corrects(request) and self.has_delete_permission(request, obj)

    def _corrects(self, request: HttpRequest) -> bool:
        match = request.resolver_match
        return match is not None and match.url_name == EMAIL_PAGE

    def get_fieldsets(self, request: HttpRequest, obj: object = None) -> object:
        fields: tuple[str, ...] = ()
        if obj is None:
            fields, text = ADDED, _("A link that sets the password is sent to this address.")
        elif self._corrects(request):
            fields, text = ("email",), EMAIL_HELP
        # Otherwise the template shows an account.
        return [(None, {"fields": fields, "description": text})] if fields else []

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = User.form_field(db_field.name)
        field.widget.attrs["class"] = "vTextField"
        return field

    def add_view(self, request: HttpRequest, *args: object, **options: object) -> HttpResponse:
        return self._form_page(request, None, _("Add an account"))

    def email_view(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        answer = self._form_page(request, str(pk), _("Correct the email address"))
        if not getattr(answer, "context_data", {}).get("has_change_permission", True):
            raise PermissionDenied
        return answer

    def _form_page(self, request: HttpRequest, pk: str | None, title: object) -> HttpResponse:
        buttons = ("show_save_and_add_another", "show_save_and_continue", "show_delete")
        context = {**dict.fromkeys(buttons, False), "title": title}
        answer: Any = self.changeform_view(request, pk, extra_context=context)
        if hasattr(answer, "context_data"):
            answer.template_name = "staff/account_form.html"
        return answer

    def save_model(
        self, request: HttpRequest, obj: User, form: Any, change: bool, write: Transaction
    ) -> None:
        """Add or correct an account, and send its owner the mails that belong to it."""
        email = form.cleaned_data["email"]
        before = as_stored(obj)
        if change:
            user, kind = before, "confirm"
            old = before.email if before.is_confirmed else ""
            is_other = not before.has_name(email=email)
            services.change_email(user, email, write=write)
        else:
            kind, old, is_other = "reset", "", True
            user = form.instance = services.register(
                **{name: form.cleaned_data[name] for name in ADDED},
                # Its owner sets another one, so a form that is sent twice need not know it.
                password=get_random_string(32),
                is_password=lambda *_: True,
                request_id=form.hidden_value(),
                write=write,
            )

        def send(_stored: object) -> None:
            if old:
                notices.tell(request, "email_changed", user, to=old, by_staff=True)
            is_sent = mails.send_confirmation(user) if change else mails.send_reset(email)
            if not is_sent:
                messages.warning(request, NOT_SENT)

        if is_other:
            _count_mail(request, kind, email)
            write.on_commit(user, send)

    def delete_model(self, request: HttpRequest, obj: User, write: Transaction) -> None:
        def finish(_stored: object) -> None:
            account_deleted.send_robust(User, account=obj.pk)
            notices.tell(request, "deleted", obj, by_staff=True)

        services.delete(obj, write=write)
        write.on_commit(obj, finish)

    def response_add(
        self, request: HttpRequest, obj: User, post_url_continue: object = None
    ) -> HttpResponse:
        return self._told(request, obj, "add")

    def response_change(self, request: HttpRequest, obj: User) -> HttpResponse:
        return self._told(request, obj, "" if obj.email == as_stored(obj).email else CHANGE_EMAIL)

    def _told(self, request: HttpRequest, user: User, done: str) -> HttpResponse:
        text = f"{label_of(done)}: “{user.username}”, {user.email}" if done else NOTHING_DONE
        self.message_user(request, text, messages.SUCCESS if done else messages.INFO)
        return redirect(self.url("change", user))

    def get_actions(self, request: HttpRequest, action_location: object = None) -> dict[str, Any]:
        """Without deletion: one account at a time, because each may cost many requests."""
        found = super().get_actions(request)
        found.pop(DELETE)
        if "session" not in request.GET:
            del found[END_SESSION]
        return found

    def get_urls(self) -> list[Any]:
        def page(to: str, view: type[View], name: str) -> URLPattern:
            shown = self.admin_site.admin_view(view.as_view())
            return path(f"<uuid:pk>/invoices/{to}", shown, name=f"accounts_user_{name}")

        correct = self.admin_site.admin_view(self.email_view)
        return [
            path("<uuid:pk>/email/", correct, name=EMAIL_PAGE),
            page("", views.AccountInvoicesView, "invoices"),
            page("<str:label>/", views.AccountInvoiceView, "invoice"),
            page("<str:label>.pdf", views.AccountInvoicePdfView, "invoice_pdf"),
            *super().get_urls(),
        ]

    def get_page(self, request: HttpRequest, changelist: Any) -> Page[Any]:
        """A search, a page of the whole table, or with `?newest` what the last report names.

        A page of the table costs at most 3 requests, the newest accounts 2.
        """
        if NEWEST in request.GET:
            [changelist.report] = last_reports(KINDS["statistics"])
            keys = changelist.report.newest
            return Page([value for value in self._selected(keys).values() if value], None)
        page = super().get_page(request, changelist)
        changelist.is_whole = not (changelist.query or changelist.after or page.next)
        if changelist.is_whole:
            never = datetime.min.replace(tzinfo=UTC)
            page.items.sort(key=lambda user: getattr(user, "date_joined", never), reverse=True)
        return page

    def get_search_results(
        self, request: HttpRequest, search_term: str, after: str | None = None
    ) -> Page[Any]:
        """The accounts that begin with `search_term`; if there are none, what `find` finds."""
        page = super().get_search_results(request, search_term, after)
        if page.items or after:
            return page
        try:
            found = find(search_term)
        except DamagedItem as error:
            messages.error(request, str(error))
            return page
        if isinstance(found, User):
            return Page([found], None)
        if found:
            text = _("There is a guard item %(key)s. Its owner: %(owner)s")
            key = text_of(found, "pk")
            owner = text_of(found, "owner")
            messages.warning(request, text % {"key": key, "owner": owner})
        return page

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: object = None
    ) -> HttpResponse:
        """What is stored for an account, without its password hash. Costs 4 requests."""
        log = list_entries(journal_of(User(object_id)), limit=SHOWN_ENTRIES)
        # Its links are above.
        context: dict[str, Any] = {"log": log, "pk": object_id, "show_delete": False}
        try:
            user, profile, guards, invoices = read_account(object_id)
        except User.DoesNotExist:
            if log.actions:
                messages.warning(request, _("This account was deleted."))
                return redirect("admin:accounts_user_history", object_id)
        except DamagedItem:
            pass  # the page says so
        else:
            values = [(User.typed_attributes()[name].label, getattr(user, name)) for name in SHOWN]
            values += [(SELLER_VALUES[name].label, getattr(profile, name)) for name in SELLER_SHOWN]
            context |= {
                "shown": user,
                "guards": guards,
                "invoices": invoices,
                "standing": self.standing(user),
                "values": [(label, value) for label, value in values if value],
                "sessions": [
                    (item, browser_name(item.browser)) for item in sessions.active_sessions(user)
                ],
                "is_own": user == signed_in(request),
                "may_act": self.admin_site.may_write(request, user),
            }
        return super().change_view(request, object_id, form_url, context)

    def commit(
        self, request: HttpRequest, write: Transaction, action: str, obj: Any, **options: Any
    ) -> bool:
        """As `ModelAdmin.commit`. An action on an account that changed raises ValidationError."""
        is_form = action in {"add", "change"}
        if obj.is_staff or obj.is_superuser:
            options["permission"] = ON_STAFF
        if action == "change":
            action, options["what"] = CHANGE_EMAIL, ""
        try:
            return super().commit(request, write, action, obj, **options)
        except StaleUser as error:
            if is_form:
                raise
            raise ValidationError(stale_text(error)) from error


@admin.register(CustomerItem)
class CustomerAdmin(StaffAdmin):
    """The address book of one account: `?account=<primary key>`. Opening it is in the audit log."""

    list_display = ("number", "name", "address", "email", "vat_id", "country")
    list_display_links = None
    list_filter = ("account",)
    change_list_template = "staff/customers.html"
    #: It is opened from the page of an account, so the index does not list it.
    has_module_permission = StaffAdmin._never

    def get_urls(self) -> list[object]:
        return super().get_urls()[:1]

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
