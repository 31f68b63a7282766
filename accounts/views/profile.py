"""Home, and the account's own page."""

from __future__ import annotations

from copy import copy
from typing import Any

from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse_lazy
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.generic import FormView, TemplateView

from accounts import services
from accounts.exceptions import AccountError
from accounts.forms import ProfileForm
from accounts.languages import language_of, remember
from accounts.values import readable_phone_number
from accounts.views.pages import FormPageMixin, KeepFormMixin, show_errors, signed_in
from dynamo.exceptions import Refused


class HomeView(TemplateView):
    """What this is; or, signed in, one's account at a glance."""

    template_name = "home.html"


class ProfileView(LoginRequiredMixin, KeepFormMixin, FormPageMixin, FormView):
    """Shows the account and edits what it says of its person."""

    template_name = "accounts/profile.html"
    form_class = ProfileForm
    success_url = reverse_lazy("profile")

    def get_initial(self) -> dict[str, Any]:
        """What is stored."""
        user = signed_in(self.request)
        return {
            "full_name": user.full_name,
            "phone_number": readable_phone_number(user.phone_number),
            "business_name": user.business_name,
            "business_address": user.business_address,
            "vat_id": user.vat_id,
            "language": language_of(user) or "",
        }

    def form_valid(self, form: ProfileForm) -> HttpResponse:
        """Store the changes."""
        user = signed_in(self.request)
        before = user.language
        try:
            services.edit_profile(user, **form.profile_values())
        except (AccountError, Refused) as error:
            show_errors(form, error)
            return self.form_invalid(form)
        if user.language == before:
            return self._saved(form)
        with translation.override(language_of(user) or _asked_for(self.request)):
            response = self._saved(form)
        # Else a language of the switch would go on after the browser's own was chosen.
        remember(response, language_of(user))
        return response

    def _saved(self, form: ProfileForm) -> HttpResponse:
        messages.success(self.request, _("Your details are saved."))
        return super().form_valid(form)


def _asked_for(request: HttpRequest) -> str:
    """The language that the browser asks for, whatever the switch said."""
    without_cookie = copy(request)
    without_cookie.COOKIES = {}
    return translation.get_language_from_request(without_cookie)
