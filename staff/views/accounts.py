"""An account as staff sees it, and what staff may do to it."""

from __future__ import annotations

from collections.abc import Callable
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

from accounts.models import User
from accounts.pages import signed_in
from accounts.sessions import services as sessions
from accounts.sessions.browsers import readable
from dynamo.exceptions import DamagedItem
from staff import actions
from staff.audit_log import list_actions, on_account
from staff.dossier import dossier_of
from staff.forms import ReasonForm
from staff.views.pages import ConfirmView, StaffMixin

#: The page of the account's audit log has all entries.
SHOWN_ACTIONS = 5


class AccountView(StaffMixin, TemplateView):
    """What is stored for an account, without its hash; for a deleted account, its audit log.

    Besides the requests of every page, costs 3 requests.
    """

    template_name = "staff/account.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().get(request, *args, **kwargs)
        except DamagedItem as error:
            messages.error(request, str(error))
            return redirect("staff:overview")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        pk = kwargs["pk"]
        log = list_actions(on_account(pk), limit=SHOWN_ACTIONS)
        try:
            dossier = dossier_of(pk)
        except User.DoesNotExist as error:
            if not log.actions:
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
            log=log,
            is_own=pk == signed_in(self.request).pk,
            may_act=shown is not None and actions.may_act_on(signed_in(self.request), shown),
            **kwargs,
        )


class _AccountActionView(ConfirmView):
    """An action on another's account, that of the URL."""

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
        """Costs 1 request; raises Http404."""
        try:
            return User.get(self.kwargs["pk"])
        except (User.DoesNotExist, DamagedItem) as error:
            raise Http404 from error

    @property
    def back(self) -> str:
        return reverse("staff:account", args=[self.kwargs["pk"]])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(target=self.target, **kwargs)

    def act(self, form: ReasonForm) -> bool:
        return self.operation(self.actor, self.target, form.cleaned_data["reason"])


class DeactivateView(_AccountActionView):
    operation = staticmethod(actions.deactivate)
    title = gettext_lazy("Deactivate this account")
    button = gettext_lazy("Deactivate")
    consequences = (
        gettext_lazy("Nobody can sign in to it until it is activated again."),
        gettext_lazy("All its sessions end at once."),
        gettext_lazy("Its user name and e-mail address stay taken."),
    )
    done = gettext_lazy("The account is deactivated.")
    was_so = gettext_lazy("The account was deactivated already.")


class ActivateView(_AccountActionView):
    operation = staticmethod(actions.activate)
    title = gettext_lazy("Activate this account")
    button = gettext_lazy("Activate")
    consequences = (gettext_lazy("Its owner can sign in again, with the password as it was."),)
    is_harmful = False
    done = gettext_lazy("The account is active.")
    was_so = gettext_lazy("The account was active already.")


class SessionsEndView(_AccountActionView):
    operation = staticmethod(actions.end_sessions)
    title = gettext_lazy("End all sessions of this account")
    button = gettext_lazy("End all sessions")
    consequences = (
        gettext_lazy("Its owner is signed out everywhere, and can sign in again at once."),
    )
    done = gettext_lazy("The account is signed in nowhere.")
    was_so = gettext_lazy("The account was signed in nowhere.")


class SessionEndView(_AccountActionView):
    title = gettext_lazy("End a session of this account")
    button = gettext_lazy("End the session")
    done = gettext_lazy("The session is ended.")
    was_so = gettext_lazy("The session had ended already.")

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
        return (_("Signed out is: %(browser)s, at the address %(address)s.") % where,)

    def act(self, form: ReasonForm) -> bool:
        reason = form.cleaned_data["reason"]
        return actions.end_session(self.actor, self.target, self.kwargs["session"], reason)
