"""An account as staff sees it, and what staff may do to it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.generic import TemplateView

from accounts import sessions
from accounts.browsers import readable
from accounts.models import User
from accounts.views.pages import signed_in
from dynamo.exceptions import DamagedItem
from staff import actions
from staff.audit_log import list_actions, on_account
from staff.dossier import dossier_of
from staff.forms import ReasonForm
from staff.views.pages import ConfirmView, StaffMixin

#: What was done to the account lately stands on its page; the rest has pages of its own.
SHOWN_ACTIONS = 5


class AccountView(StaffMixin, TemplateView):
    """What is stored of an account, but for its hash; or, of one that is gone, what was done to it.

    Costs, beside those of every page, 3 requests.
    """

    template_name = "staff/account.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The account; or, where it cannot be read, what is wrong with it."""
        try:
            return super().get(request, *args, **kwargs)
        except DamagedItem as error:
            messages.error(request, str(error))
            return redirect("staff:overview")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The account with its guards, sessions, invoices and the record."""
        pk = kwargs["pk"]
        record = list_actions(on_account(pk), limit=SHOWN_ACTIONS)
        try:
            dossier = dossier_of(pk)
        except User.DoesNotExist as error:
            if not record.actions:
                raise Http404 from error
            dossier = None
        shown = dossier.user if dossier else None
        return super().get_context_data(
            dossier=dossier,
            shown=shown,
            sessions=[
                {"session": each, "browser": readable(each.browser)}
                for each in (sessions.alive(shown) if shown else [])
            ],
            record=record,
            is_own=pk == signed_in(self.request).pk,
            may_act=shown is not None and actions.may_act_on(signed_in(self.request), shown),
            **kwargs,
        )


class _AccountActionView(ConfirmView):
    """An action on the account of the URL, which is not one's own."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """As all staff pages; redirects to the account's page if the actor lacks the rights."""
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
        """The account that it is about. Costs 1 request; raises Http404."""
        try:
            return User.get(self.kwargs["pk"])
        except (User.DoesNotExist, DamagedItem) as error:
            raise Http404 from error

    @property
    def back(self) -> str:
        """The account's page."""
        return reverse("staff:account", args=[self.kwargs["pk"]])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Whom it is about."""
        return super().get_context_data(target=self.target, **kwargs)


class DeactivateView(_AccountActionView):
    """Keeps an account out."""

    title = gettext_lazy("Deactivate this account")
    button = gettext_lazy("Deactivate")
    consequences = (
        gettext_lazy("Nobody can sign in to it until it is activated again."),
        gettext_lazy("All its sessions end at once."),
        gettext_lazy("Its user name and e-mail address stay taken."),
    )
    done = gettext_lazy("The account is deactivated.")
    was_so = gettext_lazy("The account was deactivated already.")

    def act(self, form: ReasonForm) -> bool:
        """Deactivate it."""
        return actions.deactivate(self.actor, self.target, form.cleaned_data["reason"])


class ActivateView(_AccountActionView):
    """Lets an account in again."""

    title = gettext_lazy("Activate this account")
    button = gettext_lazy("Activate")
    consequences = (gettext_lazy("Its owner can sign in again, with the password as it was."),)
    is_harmful = False
    done = gettext_lazy("The account is active.")
    was_so = gettext_lazy("The account was active already.")

    def act(self, form: ReasonForm) -> bool:
        """Activate it."""
        return actions.activate(self.actor, self.target, form.cleaned_data["reason"])


class SessionsEndView(_AccountActionView):
    """Ends all sessions of an account."""

    title = gettext_lazy("End all sessions of this account")
    button = gettext_lazy("End all sessions")
    consequences = (
        gettext_lazy("Its owner is signed out everywhere, and can sign in again at once."),
    )
    done = gettext_lazy("The account is signed in nowhere.")
    was_so = gettext_lazy("The account was signed in nowhere.")

    def act(self, form: ReasonForm) -> bool:
        """End them."""
        return actions.end_sessions(self.actor, self.target, form.cleaned_data["reason"])


class SessionEndView(_AccountActionView):
    """Ends one session of an account."""

    title = gettext_lazy("End a session of this account")
    button = gettext_lazy("End the session")
    done = gettext_lazy("The session is ended.")
    was_so = gettext_lazy("The session had ended already.")

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form; where there is no such session, back to those that there are."""
        if self._session is None:
            messages.info(request, self.was_so)
            return redirect(self.back)
        return super().get(request, *args, **kwargs)

    @cached_property
    def _session(self) -> sessions.Session | None:
        return sessions.find(self.target, self.kwargs["session"])

    @property
    def consequences(self) -> Any:
        """Which one it is."""
        if self._session is None:
            return ()
        where = {"browser": readable(self._session.browser), "address": self._session.address}
        return (_("Signed out is: %(browser)s, at the address %(address)s.") % where,)

    def act(self, form: ReasonForm) -> bool:
        """End it."""
        reason = form.cleaned_data["reason"]
        return actions.end_session(self.actor, self.target, self.kwargs["session"], reason)
