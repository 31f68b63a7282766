"""Forms of users. Those for signing in, for new passwords and for resets are Django's own."""

from typing import Any

from django import forms
from django.contrib.auth import forms as djangos, get_user_model
from django.contrib.auth.forms import SetPasswordMixin
from django.views.decorators.debug import sensitive_variables

from dynamo.auth.models import AbstractUser
from dynamo.auth.passwords import check_new_password, check_password
from dynamo.forms import ModelForm
from dynamo.model.base import accept_stored
from dynamo.transactions import Transaction

__all__ = ["PasswordChangeForm", "RepeatableMixin", "SetPasswordForm", "UserCreationForm"]

_model: Any = get_user_model()


class RepeatableMixin:
    """For forms of a new password. A form that is sent twice succeeds both times."""

    @sensitive_variables()
    def set_password_and_save(self, user: Any, *args: object, **options: object) -> AbstractUser:
        parent: Any = super()
        try:
            return parent.set_password_and_save(user, *args, **options)
        except user.Stale:
            [typed, _hash] = user._typed
            if not accept_stored(user, lambda stored: check_password(typed, stored.password)):
                raise
            return user


class SetPasswordForm(RepeatableMixin, djangos.SetPasswordForm):
    """Django's."""


class PasswordChangeForm(RepeatableMixin, djangos.PasswordChangeForm):
    """Django's."""


class UserCreationForm(SetPasswordMixin, ModelForm[AbstractUser]):
    """A new user. The password is typed twice, and AUTH_PASSWORD_VALIDATORS check it.

    A form that is sent twice creates one user. A subclass names further fields in its `Meta`.
    """

    password1, password2 = SetPasswordMixin.create_password_fields()
    password1.validators.append(check_new_password)

    class Meta:
        model = _model if issubclass(_model, AbstractUser) else None
        fields = model.needed() if model else ("username", "email")
        widgets = {  # noqa: RUF012 - as Django's
            "username": forms.TextInput({"autocomplete": "username", "autocapitalize": "none"}),
            "email": forms.EmailInput({"autocomplete": "email"}),
        }

    def clean(self) -> Any:
        self.validate_passwords()
        return super().clean()

    def _post_clean(self) -> None:
        super()._post_clean()
        # The password is checked here, because validators compare it with the other values.
        self.validate_password_for_user(self.instance, "password1")

    @sensitive_variables()
    def save(self, commit: bool = True, *, write: Transaction | None = None) -> Any:
        """Like `ModelForm.save`. Also raises Busy: too many hashes at once."""
        if self.is_bound and not self.errors:
            self.instance.set_password(self.cleaned_data["password1"])
        return super().save(commit, write=write)
