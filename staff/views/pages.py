"""What the pages of staff share: who may see them, and how an action is confirmed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.generic import FormView

from accounts.exceptions import StaleUser
from accounts.pages import FormPageMixin, KeepSessionMixin, show_errors, signed_in
from accounts.sessions import visitor
from staff.audit_log import Actor
from staff.exceptions import NotStaff
from staff.forms import ReasonForm


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

    @property
    def actor(self) -> Actor:
        return Actor(signed_in(self.request), visitor.address(self.request))


class ConfirmView(StaffMixin, KeepSessionMixin, FormPageMixin, FormView, ABC):
    """An action that asks for a reason and the actor's password. Subclasses implement `act`."""

    template_name = "staff/confirm.html"
    form_class = ReasonForm
    title: Any = ""
    button: Any = ""
    consequences: Any = ()
    #: Whether the page warns of it.
    is_harmful = True
    #: The messages after it was done, and if there was nothing to do.
    done: Any = ""
    was_so: Any = ""

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "user": signed_in(self.request)}

    @property
    @abstractmethod
    def back(self) -> str:
        """The address of the page that leads here and is shown afterwards."""

    @abstractmethod
    def act(self, form: Any) -> bool:
        """Call the operation. Return whether it was done (False: there was nothing to do)."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        names = ("title", "button", "consequences", "is_harmful", "back")
        return super().get_context_data(**{name: getattr(self, name) for name in names}, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        try:
            done = self.act(form)
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
