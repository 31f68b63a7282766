"""Forms that check and normalize what users type.

Operations report taken values and stale accounts.

Forms read and write nothing in DynamoDB, except that each attempt at a password is counted.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from django import forms
from django.contrib.auth.forms import (
    AuthenticationForm,
    PasswordChangeForm,
    SetPasswordForm,
    SetPasswordMixin,
)
from django.core.exceptions import ValidationError
from django.core.validators import EMPTY_VALUES, MaxLengthValidator
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from accounts.attributes import check_reserved, is_time_zone
from accounts.limits import attempts
from accounts.models import AbstractAccount, account_model
from accounts.services import another_username
from dynamo import Model, Transaction
from dynamo.auth.addresses import EMAIL_MAX_LENGTH
from dynamo.auth.forms import RepeatableMixin
from dynamo.auth.passwords import PASSWORD_MAX_LENGTH
from dynamo.auth.usernames import clean_username
from dynamo.forms import ModelForm, RequestIdForm, refused_values

M = TypeVar("M", bound=Model)


class BoundedPasswordsMixin(forms.Form):
    """Refuses passwords that are too long to hash.

    Shows the error of a weak one at its first field.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if isinstance(field.widget, forms.PasswordInput):
                # No maxlength attribute: a browser would truncate a pasted password silently.
                field.validators.append(MaxLengthValidator(PASSWORD_MAX_LENGTH))

    def validate_password_for_user(self, user: AbstractAccount, field: str = "password2") -> None:
        """Show the error at the first field of a new password. Django shows it at the second."""
        super().validate_password_for_user(user, field.replace("2", "1"))  # type: ignore[misc]  # of SetPasswordMixin


class SignInForm(BoundedPasswordsMixin, AuthenticationForm):
    """Django's form, for a username or an email address."""

    remember_me = forms.BooleanField(label=_("Stay signed in on this device"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        username = self.fields["username"]
        if "username" in account_model().get_attributes():
            username.label = _("Username or email address")
            refused = _("No account has this username or email address with this password.")
        else:
            username.label = _("Email address")
            refused = _("No account has this email address with this password.")
        self.error_messages = self.error_messages | {"invalid_login": refused}
        # Django gives the limit only to the widget. A long text takes a long time to compare.
        username.validators.append(MaxLengthValidator(EMAIL_MAX_LENGTH))


class AccountForm(forms.Form):
    """The values of a new account without its password. Commands use it as well.

    An operator may choose a username that is reserved (`ACCOUNTS_RESERVED_USERNAMES`).
    """

    #: The account with the clean values, which is not stored.
    account: AbstractAccount

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = self.asked_fields()
        self.fields |= {name: self.account_field(name) for name in names}
        for name in {*names}.difference(account_model().sign_up_fields):
            self.fields[name].required = False
        self.order_fields(names)

    def asked_fields(self) -> tuple[str, ...]:
        """The attributes that the form asks for; for operators also those of the profile."""
        return account_model().sign_up_and_profile_fields()

    def account_field(self, name: str) -> forms.Field:
        """The form field of an attribute of the account."""
        return account_model().form_field(name)

    def clean(self) -> dict[str, Any]:
        """Refuse what could not be stored."""
        values = AccountForm.account_values(self)
        typed = {name: value for name, value in values.items() if value not in EMPTY_VALUES}
        self.account = account_model()(**typed)
        for name, error in refused_values(self.account, typed):
            self.add_error(name, error)
        return self.cleaned_data

    def account_values(self) -> dict[str, Any]:
        """The clean values, for `register`."""
        model = account_model()
        # Values of the profile that are not given are left out, because an attribute may have a
        # default.
        names = {*model.sign_up_fields} | {name for name in self.data if self.data[name]}
        names &= model.typed_attributes().keys()
        return {name: value for name, value in self.cleaned_data.items() if name in names}

    def faults(self) -> list[str]:
        """The errors as text, each with the label of its field, for commands."""
        return [
            f"{self.fields[name].label}: {' '.join(map(str, errors))}"
            for name, errors in self.errors.items()
        ]


class SignUpForm(BoundedPasswordsMixin, SetPasswordMixin, AccountForm, RequestIdForm):
    """An account, its password, and the request id that names this registration."""

    password1, password2 = SetPasswordMixin.create_password_fields()
    #: A script fills in the time zone of the browser.
    time_zone = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)
    request_id_salt = "accounts.signup"
    request_id_refused = _(
        "This form was open for more than a day, or did not come from this site. "
        "Enter the password again and send the form again."
    )

    def asked_fields(self) -> tuple[str, ...]:
        return account_model().sign_up_fields

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        check_reserved(username)
        return username

    def account_values(self) -> dict[str, Any]:
        sent = self.cleaned_data
        given = {"password": sent["password1"], "request_id": sent["request_id"]}
        return super().account_values() | given

    def clean_time_zone(self) -> str:
        """The zone of the browser; empty if this site does not know it."""
        zone: str = self.cleaned_data["time_zone"]
        return zone if is_time_zone(zone) else ""

    def clean(self) -> dict[str, object]:
        """Check the password by Django's rules, which compare it with the other values."""
        self.validate_passwords()
        super().clean()
        self.validate_password_for_user(self.account)
        return self.cleaned_data


class PartialForm(ModelForm[M]):
    """A form of some values of an item. Values that are not sent are not changed.

    Its hidden version rejects a form if the item has changed since. A program may leave it out.
    """

    version_optional = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Whether all fields are optional. The page then says so once, and not at each field.
        self.all_optional = not any(self.fields[name].required for name in self.model_fields)
        if self.is_bound:
            sent: Any = self.data.copy()  # type: ignore[attr-defined]  # a dict's, a QueryDict's
            for name in self.model_fields:
                key = self.add_prefix(name)
                # An unchecked box is not sent either, but never counts as omitted.
                if self.fields[name].widget.value_omitted_from_data(sent, MultiValueDict(), key):
                    sent.setdefault(key, self.initial.get(name))
            self.data = sent


class ProfileForm(PartialForm[AbstractAccount]):
    """The values of an account that its user edits."""

    class Meta:
        model = account_model()
        fields = model.profile_fields


class PasswordConfirmedForm(BoundedPasswordsMixin, forms.Form):
    """Asks for the account's password. Raises TooManyAttempts when it is cleaned."""

    field_order: tuple[str, ...] = ("username", "email", "password")

    password = forms.CharField(
        label=_("Current password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, user: AbstractAccount, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        if not attempts.is_password(self.user, password):
            raise ValidationError(_("This is not your password."), code="password_incorrect")
        return password


class UsernameChangeForm(PasswordConfirmedForm):
    def __init__(self, user: AbstractAccount, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.fields["username"] = user.form_field("username", rule=clean_username)
        self.order_fields(self.field_order)

    def clean_username(self) -> str:
        username = another_username(self.user, self.cleaned_data["username"])
        check_reserved(username, self.user.username)
        return username


class EmailChangeForm(PasswordConfirmedForm):
    email = account_model().form_field("email")


class _NoticeMixin:
    """Stores the new password, and tells the owner by a mail in the same transaction."""

    #: Called with the transaction that stores the password.
    notify: Callable[..., object]
    cleaned_data: dict[str, Any]

    @sensitive_variables()
    def set_password_and_save(self, user: Any, field: str, commit: bool = True) -> Any:
        user.set_password(self.cleaned_data[field])
        if commit:
            with Transaction() as write:
                user.save(write=write)
                self.notify(write=write)
        return user


class NewPasswordForm(BoundedPasswordsMixin, RepeatableMixin, _NoticeMixin, SetPasswordForm):
    """Django's form to set a password without the old one."""


class OwnPasswordChangeForm(
    BoundedPasswordsMixin, RepeatableMixin, _NoticeMixin, PasswordChangeForm
):
    """Django's form, with limited attempts. Raises TooManyAttempts when it is cleaned."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["old_password"].label = PasswordConfirmedForm.base_fields["password"].label

    @sensitive_variables("old_password")
    def clean_old_password(self) -> str:
        old_password: str = self.cleaned_data["old_password"]
        if not attempts.is_password(self.user, old_password):
            raise ValidationError(
                self.error_messages["password_incorrect"], code="password_incorrect"
            )
        return old_password
