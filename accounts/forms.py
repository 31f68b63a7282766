"""The shape of what people type; what is taken or stale, the operations say.

No form touches DynamoDB, but to count how often a password is tried. Each value has its rule in
`accounts.values`, which the operations hold as well.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib.auth.forms import (
    AuthenticationForm,
    PasswordChangeForm,
    SetPasswordForm,
    SetPasswordMixin,
)
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from accounts import usernames, values
from accounts.limits import attempts
from accounts.models import User
from web.requestids import RequestIdForm


def _text_field(label: Any, rule: Any, limit: int, **options: Any) -> forms.CharField:
    attrs = {"maxlength": limit} | options.pop("attrs", {})
    widget = options.pop("widget", forms.TextInput)

    def check(text: str) -> None:
        # Django puts it where the bytes that came were no UTF-8: it is not what was typed.
        if "\N{REPLACEMENT CHARACTER}" in text:
            raise ValidationError(_("Use printable characters only."), code="unprintable")
        rule(text)

    return forms.CharField(label=label, validators=[check], widget=widget(attrs=attrs), **options)


def username_field(**options: Any) -> forms.CharField:
    """A new username."""
    attrs = {"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}
    return _text_field(
        _("Username"), values.clean_username, values.USERNAME_MAX_LENGTH, attrs=attrs, **options
    )


def email_field(**options: Any) -> forms.CharField:
    """A new email address."""
    return _text_field(
        _("Email address"),
        values.clean_email,
        values.EMAIL_MAX_LENGTH,
        widget=forms.EmailInput,
        attrs={"autocomplete": "email"},
        **options,
    )


def full_name_field() -> forms.CharField:
    """A person's name, if they like to give it."""
    return _text_field(
        _("Full name"),
        values.clean_text,
        values.TEXT_MAX_LENGTH,
        required=False,
        attrs={"autocomplete": "name"},
    )


def phone_number_field() -> forms.CharField:
    """A phone number, if they like to give it."""
    return _text_field(
        _("Phone number"),
        values.clean_phone_number,
        values.PHONE_MAX_LENGTH,
        required=False,
        widget=forms.TextInput,
        attrs={"autocomplete": "tel", "inputmode": "tel"},
        help_text=_("With the country code, such as +1 202-555-0124."),
    )


class BoundedPasswordsMixin:
    """Refuses passwords that are longer than anybody types."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, forms.Field] = self.fields  # type: ignore[attr-defined]  # a form stands behind
        for field in fields.values():
            if isinstance(field.widget, forms.PasswordInput):
                # The browser is not told, as it would cut off what is pasted without a word.
                field.validators.append(MaxLengthValidator(values.PASSWORD_MAX_LENGTH))


class SignInForm(BoundedPasswordsMixin, AuthenticationForm):
    """Django's, with a label and an error that speak of both ways to say who one is."""

    error_messages = AuthenticationForm.error_messages | {
        "invalid_login": _("No account has this username or email address with this password."),
    }

    remember_me = forms.BooleanField(label=_("Stay signed in on this device"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        username = self.fields["username"]
        username.label = _("Username or email address")
        # Django gives its widget the limit, but does not hold it; to compare a megabyte takes long.
        username.validators.append(MaxLengthValidator(values.EMAIL_MAX_LENGTH))


class AccountForm(forms.Form):
    """What an account consists of, but for its password; commands use it as it is."""

    username = username_field()
    email = email_field()
    full_name = full_name_field()
    phone_number = phone_number_field()

    #: Whether the name may be one of `ACCOUNTS_RESERVED_USERNAMES`.
    may_be_reserved: ClassVar[bool] = False

    def clean_username(self) -> str:
        """Refuse a name that is reserved or can be mistaken for another one."""
        username: str = self.cleaned_data["username"]
        usernames.check_new(username)
        if not self.may_be_reserved:
            usernames.check_reserved(username)
        return username

    def account_values(self) -> dict[str, Any]:
        """The four values as `register` takes them."""
        return {name: self.cleaned_data[name] for name in AccountForm.base_fields}


class OperatorsAccountForm(AccountForm):
    """An account that an operator makes: its name may be a reserved one."""

    may_be_reserved = True


class SignUpForm(BoundedPasswordsMixin, SetPasswordMixin, AccountForm, RequestIdForm):
    """An account, its password, and the request id that names this registration."""

    password1, password2 = SetPasswordMixin.create_password_fields()
    request_id_salt = "accounts.signup"
    request_id_refused = _(
        "This form was open for more than a day, or did not come from this site. "
        "Enter the password again and send the form again."
    )

    def clean(self) -> dict[str, Any]:
        """Check the passwords by Django's own rules, against the values beside them."""
        self.validate_passwords()
        self.validate_password_for_user(
            User(
                username=self.cleaned_data.get("username", ""),
                email=self.cleaned_data.get("email", ""),
                full_name=self.cleaned_data.get("full_name", ""),
            )
        )
        return self.cleaned_data


class _LanguageSelect(forms.Select):
    """Names of languages, each in its own."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        if value:
            option["attrs"]["lang"] = value
        return option


def _languages() -> list[tuple[str, Any]]:
    return [("", _("Use the language of the browser")), *settings.LANGUAGES]


class ProfileForm(forms.Form):
    """What an account says of its person and business."""

    full_name = full_name_field()
    phone_number = phone_number_field()
    business_name = _text_field(
        _("Business name"),
        values.clean_text,
        values.TEXT_MAX_LENGTH,
        required=False,
        attrs={"autocomplete": "organization"},
    )
    business_address = _text_field(
        _("Business address"),
        values.clean_address,
        values.ADDRESS_MAX_LENGTH,
        required=False,
        widget=forms.Textarea,
        attrs={"autocomplete": "street-address", "rows": 3},
    )
    vat_id = _text_field(
        _("VAT number"),
        lambda text: values.clean_text(text, values.VAT_ID_MAX_LENGTH),
        values.VAT_ID_MAX_LENGTH,
        required=False,
        attrs={"autocomplete": "off"},
    )
    language = forms.ChoiceField(
        label=_("Language"),
        choices=_languages,
        required=False,
        widget=_LanguageSelect,
        help_text=_("For these pages and for the mails that we send you."),
    )

    def profile_values(self) -> dict[str, Any]:
        """What is to change. A form that was sent without a language changes nothing of it."""
        values = dict(self.cleaned_data)
        if self.add_prefix("language") not in self.data:
            del values["language"]
        return values


class PasswordConfirmedForm(BoundedPasswordsMixin, forms.Form):
    """A form that asks for the account's password before it does anything."""

    field_order = ("username", "email", "password")

    password = forms.CharField(
        label=_("Current password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_password(self) -> str:
        """Refuse any other password. Raises TooManyAttempts."""
        password: str = self.cleaned_data["password"]
        if not attempts.is_password(self.user, password):
            raise ValidationError(_("This is not your password."), code="password_incorrect")
        return password


class UsernameChangeForm(PasswordConfirmedForm):
    """Another username."""

    username = username_field()

    def clean_username(self) -> str:
        """Refuse a reserved or confusable name, unless the account has it."""
        username: str = self.cleaned_data["username"]
        usernames.check_change(self.user.username, username)
        usernames.check_reserved(username, self.user.username)
        return username


class EmailChangeForm(PasswordConfirmedForm):
    """Another email address."""

    email = email_field()


class AccountDeleteForm(PasswordConfirmedForm):
    """The end of an account."""


class NewPasswordForm(BoundedPasswordsMixin, SetPasswordForm):
    """Django's, for who lost the old password."""


class OwnPasswordChangeForm(BoundedPasswordsMixin, PasswordChangeForm):
    """Django's, whose check of the old password is limited."""

    @sensitive_variables("old_password")
    def clean_old_password(self) -> str:
        """Refuse any other password. Raises TooManyAttempts."""
        old_password: str = self.cleaned_data["old_password"]
        if not attempts.is_password(self.user, old_password):
            raise ValidationError(
                self.error_messages["password_incorrect"], code="password_incorrect"
            )
        return old_password
