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

from accounts import visits
from accounts.exceptions import StaleUser
from accounts.views.pages import FormPageMixin, KeepSessionMixin, show_errors, signed_in
from staff.audit_log import Actor
from staff.exceptions import NotStaff
from staff.forms import ReasonForm


class StaffMixin(LoginRequiredMixin):
    """A page for accounts that are staff, active and signed in, as they are stored now.

    Who is not signed in is asked to; for all others the page is not there.
    """

    request: HttpRequest

    @method_decorator(never_cache)
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer, or say that there is no such page."""
        if request.user.is_authenticated and not signed_in(request).is_staff:
            raise Http404
        try:
            return super().dispatch(request, *args, **kwargs)
        except NotStaff as error:
            # Not any more, since the request was let in; nothing was done.
            raise Http404 from error

    @property
    def actor(self) -> Actor:
        """Who acts, and from where."""
        return Actor(signed_in(self.request), visits.address(self.request))


class ConfirmView(StaffMixin, KeepSessionMixin, FormPageMixin, FormView, ABC):
    """An action that wants a reason and the own password. Subclasses say which, in `act`."""

    template_name = "staff/confirm.html"
    form_class = ReasonForm
    title: Any = ""
    button: Any = ""
    consequences: Any = ()
    #: Whether it takes something from somebody, which its page then warns of.
    is_harmful = True
    done: Any = ""
    #: What is said where there was nothing to do.
    was_so: Any = ""

    def get_form_kwargs(self) -> dict[str, Any]:
        """The account whose password is asked for: that of who acts."""
        return {**super().get_form_kwargs(), "user": signed_in(self.request)}

    @property
    @abstractmethod
    def back(self) -> str:
        """The address of the page that leads here, and that is shown afterwards."""

    @abstractmethod
    def act(self, form: Any) -> bool:
        """Call the operation; whether it was done, rather than was so already."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the page says of the action."""
        return super().get_context_data(
            title=self.title,
            button=self.button,
            consequences=self.consequences,
            is_harmful=self.is_harmful,
            back=self.back,
            **kwargs,
        )

    def form_valid(self, form: Any) -> HttpResponse:
        """Act, and say what came of it."""
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
