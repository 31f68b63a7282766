"""Django's views of a new password. `dynamo.auth.urls` has them, with the other views of Django."""

from typing import Any

from django.contrib.auth import views
from django.core.exceptions import ValidationError
from django.http import HttpResponse

from dynamo.auth.forms import PasswordChangeForm, SetPasswordForm
from dynamo.forms import CHANGED


class NewPasswordMixin:
    """If the user changed after the page was opened, nothing is stored, and the form says so."""

    def form_valid(self, form: Any) -> HttpResponse:
        view: Any = super()
        try:
            return view.form_valid(form)
        except form.user.Stale:
            noun = form.user._meta.verbose_name
            form.add_error("new_password1", ValidationError(CHANGED, "stale", {"noun": noun}))
        return view.form_invalid(form)


class PasswordChangeView(NewPasswordMixin, views.PasswordChangeView):
    """Django's."""

    form_class = PasswordChangeForm


class PasswordResetConfirmView(NewPasswordMixin, views.PasswordResetConfirmView):
    """Django's."""

    form_class = SetPasswordForm
