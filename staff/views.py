"""The staff pages: find an account, act on it, break a lock, read the audit log and the reports.

Besides the requests of every page, each costs what its class says.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.functional import cached_property
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _, gettext_lazy
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.generic import FormView, TemplateView

from accounts.exceptions import StaleUser
from accounts.limits.lines import InLineMixin
from accounts.models import User
from accounts.pages import (
    FormPageMixin,
    KeepSessionMixin,
    SignedInFormMixin,
    show_errors,
    signed_in,
)
from accounts.sessions import services as sessions, visitor
from accounts.sessions.browsers import readable
from dynamo import DamagedItem
from invoices.document.invoice import Invoice
from invoices.exceptions import UnknownInvoice
from invoices.output.typesetting import pdf_of
from invoices.pages.forms import FIRST_YEAR, ListForm
from invoices.store.issuing import today
from invoices.store.lists import list_invoices
from invoices.store.records import find_invoice
from locks import BadLockName, LockChanged, UnknownLock, extending as locks
from staff import actions, audit_log
from staff.audit_log import Actor, list_actions, month_of, on_account
from staff.exceptions import NotStaff
from staff.forms import BreakLockForm, FindForm, ReasonForm
from staff.lookup import find, read_account
from staff.reports import KINDS, last_reports

#: On the page of an account; the page of its audit log has all entries.
SHOWN_ACTIONS = 5

_MONTH = re.compile(r"(20\d\d)-(0[1-9]|1[0-2])")
#: A time and a UUID have 69 characters.
_BEFORE_MAX_LENGTH = 100


class StaffMixin(LoginRequiredMixin):
    """A page for accounts that are stored as staff and active, and are signed in.

    Visitors who are not signed in are asked to sign in; all others get a 404.
    """

    request: HttpRequest

    @method_decorator(never_cache)
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated and not signed_in(request).is_staff:
            raise Http404
        try:
            return super().dispatch(request, *args, **kwargs)
        except NotStaff as error:
            # The rights were taken during the request; nothing was done.
            raise Http404 from error


class OverviewView(StaffMixin, SignedInFormMixin, FormPageMixin, FormView):
    """Finds accounts and shows the last reports. Costs 1 request.

    The search is a POST, so that no email address is in a log.
    """

    template_name = "staff/overview.html"
    form_class = FindForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        statistics, *checks = last_reports(*KINDS.values())
        return super().get_context_data(statistics=statistics, checks=checks, **kwargs)

    def form_valid(self, form: FindForm) -> HttpResponse:
        """Redirect to the account; without one, show any guard item of the value."""
        try:
            found = find(form.cleaned_data["who"])
        except DamagedItem as error:
            form.add_error("who", str(error))
            return self.form_invalid(form)
        if found.user:
            return redirect("staff:account", found.user.pk)
        form.add_error("who", _("There is no such account."))
        return self.render_to_response(self.get_context_data(form=form, guard=found.guard))


class ReportView(StaffMixin, TemplateView):
    """Costs 1 request."""

    template_name = "staff/report.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kinds = [kind for kind in KINDS.values() if kind.key == kwargs["kind"]]
        if not kinds:
            raise Http404
        [report] = last_reports(*kinds)
        return super().get_context_data(report=report, **kwargs)


class AuditLogView(StaffMixin, TemplateView):
    """The audit log of a month or of the account `pk`, newest first. Costs 1 request."""

    template_name = "staff/audit_log.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        # The id below which the page begins.
        before = self.request.GET.get("before") or None
        if before and len(before) > _BEFORE_MAX_LENGTH:
            raise Http404
        if "pk" in kwargs:
            log = list_actions(on_account(kwargs["pk"]), before=before)
            return super().get_context_data(log=log, **kwargs)
        this_month = month_of(datetime.now(UTC))
        month = self.request.GET.get("month", this_month)
        match = _MONTH.fullmatch(month)
        if match is None:
            raise Http404
        first = date(int(match[1]), int(match[2]), 1)
        return super().get_context_data(
            month=first,
            earlier=(first - timedelta(days=1)).strftime("%Y-%m"),
            later=(first + timedelta(days=31)).strftime("%Y-%m") if month < this_month else None,
            log=list_actions(month, before=before),
            **kwargs,
        )


class AccountView(StaffMixin, TemplateView):
    """What is stored for an account, without its password hash. Costs 3 requests.

    For a deleted account, its audit log.
    """

    template_name = "staff/account.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().get(request, *args, **kwargs)
        except DamagedItem as error:
            messages.error(request, str(error))
            return redirect("staff:overview")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        pk, staff = kwargs["pk"], signed_in(self.request)
        log = list_actions(on_account(pk), limit=SHOWN_ACTIONS)
        try:
            account = read_account(pk)
        except User.DoesNotExist as error:
            if not log.actions:
                raise Http404 from error
            return super().get_context_data(log=log, **kwargs)
        return super().get_context_data(
            account=account,
            shown=account.user,
            sessions=[
                {"session": each, "browser": readable(each.browser)}
                for each in sessions.alive(account.user)
            ],
            log=log,
            is_own=pk == staff.pk,
            may_act=actions.may_act_on(staff, account.user),
            **kwargs,
        )


class AccountInvoicesMixin(StaffMixin):
    """A page that shows invoices of the account of the URL, read-only. Costs 3 requests, a list 4.

    The account may be deleted. An entry in the audit log is written before they are shown; if there
    is nothing to show, none.
    """

    kwargs: dict[str, Any]

    @cached_property
    def account(self) -> User | None:
        """The account, unless it is deleted or damaged."""
        try:
            return User.get(self.kwargs["pk"])
        except (User.DoesNotExist, DamagedItem):
            return None

    def record(self, what: str) -> None:
        actor = Actor(signed_in(self.request), visitor.address(self.request))
        on = self.account or User(self.kwargs["pk"])
        audit_log.record(actor, "openInvoices", on=on, what=what)

    def opened(self, label: str) -> Invoice:
        """The invoice, whose opening is recorded. Raises Http404."""
        try:
            invoice = find_invoice(self.kwargs["pk"], label)
        except (UnknownInvoice, DamagedItem) as error:
            raise Http404(str(error)) from error
        self.record(label)
        return invoice


class AccountInvoicesView(AccountInvoicesMixin, TemplateView):
    """The invoices of a year, newest first."""

    template_name = "staff/account_invoices.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        form = ListForm(self.request.GET)
        if not form.is_valid():
            raise Http404
        this_year = today().year
        year, before = form.cleaned_data["year"] or this_year, form.cleaned_data["before"]
        page = list_invoices(kwargs["pk"], year, before=before)
        if page.invoices:
            self.record(str(year))
        return super().get_context_data(
            page=page,
            year=year,
            is_first_page=before is None,
            earlier_year=year - 1 if year > FIRST_YEAR else None,
            # Invoices may have dates of next year.
            later_year=year + 1 if year <= this_year else None,
            **kwargs,
        )


class AccountInvoiceView(AccountInvoicesMixin, TemplateView):
    template_name = "staff/account_invoice.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(invoice=self.opened(kwargs["label"]), **kwargs)


class AccountInvoicePdfView(AccountInvoicesMixin, InLineMixin, View):
    http_method_names = ("get", "head")

    def get(self, request: HttpRequest, pk: str, label: str) -> HttpResponse:
        """The PDF, which the browser shows."""
        return HttpResponse(
            pdf_of(self.opened(label)),
            content_type="application/pdf",
            headers={"Content-Disposition": content_disposition_header(False, f"{label}.pdf")},
        )


class ConfirmView(StaffMixin, SignedInFormMixin, KeepSessionMixin, FormPageMixin, FormView, ABC):
    """An action that asks for a reason and the actor's password."""

    template_name = "staff/confirm.html"
    form_class = ReasonForm
    title: Any = ""
    button: Any = ""
    consequences: Any = ()
    #: Whether the page warns of the consequences.
    is_harmful = True
    #: The messages after the action, and if there was nothing to do.
    done: Any = ""
    was_so: Any = ""

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "user": signed_in(self.request)}

    @property
    @abstractmethod
    def back(self) -> str:
        """The address of the page that leads here and is shown afterwards."""

    @abstractmethod
    def act(self, actor: Actor, form: Any) -> bool:
        """Call the operation. Return whether it was done (False: there was nothing to do)."""

    def form_valid(self, form: Any) -> HttpResponse:
        actor = Actor(signed_in(self.request), visitor.address(self.request))
        try:
            done = self.act(actor, form)
        except StaleUser as error:
            if error.deleted:
                messages.error(self.request, _("This account was deleted meanwhile."))
                return redirect("staff:overview")
            show_errors(form, error)
            return self.form_invalid(form)
        if done:
            messages.success(self.request, self.done)
        else:
            messages.info(self.request, self.was_so)
        return redirect(self.back)


class _AccountActionView(ConfirmView):
    """An action on the account of the URL. Costs 2 requests."""

    operation: Callable[..., bool]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user = signed_in(request)
        if user.is_authenticated and user.is_staff:
            if user.pk == kwargs["pk"]:
                messages.error(request, _("You cannot do this to your own account."))
                return redirect(self.back)
            if not actions.may_act_on(user, self.target):
                messages.error(request, _("Only a superuser can do this to a staff account."))
                return redirect(self.back)
        return super().dispatch(request, *args, **kwargs)

    @cached_property
    def target(self) -> User:
        try:
            return User.get(self.kwargs["pk"])
        except (User.DoesNotExist, DamagedItem) as error:
            raise Http404 from error

    @property
    def back(self) -> str:
        return reverse("staff:account", args=[self.kwargs["pk"]])

    def act(self, actor: Actor, form: ReasonForm) -> bool:
        return self.operation(actor, self.target, form.cleaned_data["reason"])


class DeactivateView(_AccountActionView):
    operation = staticmethod(actions.deactivate)
    title = gettext_lazy("Deactivate this account")
    button = gettext_lazy("Deactivate")
    consequences = (
        gettext_lazy("Nobody can sign in to it until it is activated again."),
        gettext_lazy("All its sessions end at once."),
        gettext_lazy("Its username and email address stay taken."),
    )
    done = gettext_lazy("The account is deactivated.")
    was_so = gettext_lazy("The account was already deactivated.")


class ActivateView(_AccountActionView):
    operation = staticmethod(actions.activate)
    title = gettext_lazy("Activate this account")
    button = gettext_lazy("Activate")
    consequences = (gettext_lazy("Its owner can sign in again with the same password."),)
    is_harmful = False
    done = gettext_lazy("The account is active.")
    was_so = gettext_lazy("The account was already active.")


class SessionsEndView(_AccountActionView):
    operation = staticmethod(actions.end_sessions)
    title = gettext_lazy("End all sessions of this account")
    button = gettext_lazy("End all sessions")
    consequences = (
        gettext_lazy("Its owner is signed out everywhere, and can sign in again at once."),
    )
    done = gettext_lazy("All sessions of the account are ended.")
    was_so = gettext_lazy("The account had no sessions.")


class SessionEndView(_AccountActionView):
    title = gettext_lazy("End a session of this account")
    button = gettext_lazy("End the session")
    done = gettext_lazy("The session is ended.")
    was_so = gettext_lazy("The session had already ended.")

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if self._session is None:
            messages.info(request, self.was_so)
            return redirect(self.back)
        return super().get(request, *args, **kwargs)

    @cached_property
    def _session(self) -> sessions.Session | None:
        return sessions.find(self.target, self.kwargs["session"])

    @property
    def consequences(self) -> Any:
        if self._session is None:
            return ()
        where = {"browser": readable(self._session.browser), "address": self._session.address}
        return (_("This signs out: %(browser)s, at the address %(address)s.") % where,)

    def act(self, actor: Actor, form: ReasonForm) -> bool:
        reason = form.cleaned_data["reason"]
        return actions.end_session(actor, self.target, self.kwargs["session"], reason)


class LockView(ConfirmView):
    """The lock `?name=`, and the form that breaks it. Costs 1 request.

    The name is not part of the path because it may be any text, even `..`.
    """

    template_name = "staff/lock.html"
    form_class = BreakLockForm
    button = gettext_lazy("Break the lock")
    done = gettext_lazy("The lock is now free.")
    was_so = gettext_lazy("The lock was already free.")

    @cached_property
    def lock(self) -> locks.LockView:
        try:
            return locks.look(self.request.GET.get("name", ""))
        except (BadLockName, UnknownLock) as error:
            raise Http404 from error

    @property
    def back(self) -> str:
        # Breaking a claim deletes its item.
        if self.lock.state is locks.State.CLAIMED:
            return reverse("staff:overview")
        return f"{reverse('staff:lock')}?{urlencode({'name': self.lock.name})}"

    @property
    def _holder(self) -> str:
        """A short text that is the same in all views of one holder's one lease."""
        return hashlib.sha256(repr(self.lock.holding).encode()).hexdigest()

    def get_initial(self) -> dict[str, Any]:
        return {"holder": self._holder}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        lock = self.lock
        is_told = lock.renewed_at is not None and lock.lease_seconds is not None
        return super().get_context_data(
            lock=lock,
            is_free=lock.state is locks.State.RELEASED,
            is_claim=lock.state is locks.State.CLAIMED,
            is_expired=is_told and lock.is_silent(datetime.now(UTC)),
            **kwargs,
        )

    def act(self, actor: Actor, form: BreakLockForm) -> bool:
        if form.cleaned_data["holder"] != self._holder:
            raise LockChanged(self.lock.name)
        return actions.break_seen_lock(actor, self.lock, form.cleaned_data["reason"])

    def form_valid(self, form: BreakLockForm) -> HttpResponse:
        """Break it, or show who holds it now."""
        try:
            return super().form_valid(form)
        except LockChanged:
            del self.lock
            form.data = {**dict(form.data.items()), "holder": self._holder}
            form.add_error(
                None, _("The lock now has another holder, as shown here. It was not broken.")
            )
            return self.form_invalid(form)
        except UnknownLock as error:
            raise Http404 from error
