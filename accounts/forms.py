"""Forms that check and normalize what users type. Operations report what is taken or stale.

Forms read and write nothing in DynamoDB, except that each attempt at a password is counted.
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
from web.choices import country_choices, currency_choices, time_zone_choices
from web.requestids import RequestIdForm
from web.selects import LongSelect


def _text_field(label: Any, rule: Any, limit: int, **options: Any) -> forms.CharField:
    attrs = {"maxlength": limit} | options.pop("attrs", {})
    widget = options.pop("widget", forms.TextInput)

    def check(text: str) -> None:
        # Django replaces bytes that are not UTF-8 with it, so it is not what was typed.
        if "\N{REPLACEMENT CHARACTER}" in text:
            raise ValidationError(_("Use printable characters only."), code="unprintable")
        rule(text)

    return forms.CharField(label=label, validators=[check], widget=widget(attrs=attrs), **options)


def username_field() -> forms.CharField:
    attrs = {"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}
    return _text_field(
        _("Username"), values.clean_username, values.USERNAME_MAX_LENGTH, attrs=attrs
    )


def email_field(rule: Any = values.clean_new_email) -> forms.CharField:
    return _text_field(
        _("Email address"),
        rule,
        values.EMAIL_MAX_LENGTH,
        widget=forms.EmailInput,
        attrs={"autocomplete": "email"},
    )


def full_name_field() -> forms.CharField:
    return _text_field(
        _("Full name"),
        values.clean_text,
        values.TEXT_MAX_LENGTH,
        required=False,
        attrs={"autocomplete": "name"},
    )


def phone_number_field() -> forms.CharField:
    return _text_field(
        _("Phone number"),
        values.clean_phone_number,
        values.PHONE_MAX_LENGTH,
        required=False,
        attrs={"autocomplete": "tel", "inputmode": "tel"},
        help_text=_("With the country code, such as +1 202-555-0124."),
    )


class BoundedPasswordsMixin:
    """Refuses passwords that are too long to hash."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, forms.Field] = self.fields  # type: ignore[attr-defined]  # a form's
        for field in fields.values():
            if isinstance(field.widget, forms.PasswordInput):
                # No maxlength attribute: a browser would truncate a pasted password silently.
                field.validators.append(MaxLengthValidator(values.PASSWORD_MAX_LENGTH))


class SignInForm(BoundedPasswordsMixin, AuthenticationForm):
    """Django's form, for a username or an email address."""

    error_messages = AuthenticationForm.error_messages | {
        "invalid_login": _("No account has this username or email address with this password."),
    }

    remember_me = forms.BooleanField(label=_("Stay signed in on this device"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        username = self.fields["username"]
        username.label = _("Username or email address")
        # Django only gives the limit to the widget, and a long text takes long to compare.
        username.validators.append(MaxLengthValidator(values.EMAIL_MAX_LENGTH))


class AccountForm(forms.Form):
    """The values of a new account without its password. Commands use it too."""

    username = username_field()
    email = email_field()
    full_name = full_name_field()
    phone_number = phone_number_field()

    #: Whether the username may be one of `ACCOUNTS_RESERVED_USERNAMES`.
    may_be_reserved: ClassVar[bool] = False

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        usernames.check_new(username)
        if not self.may_be_reserved:
            usernames.check_reserved(username)
        return username

    def account_values(self) -> dict[str, Any]:
        """The values as `register` takes them."""
        return {name: self.cleaned_data[name] for name in AccountForm.base_fields}


class OperatorsAccountForm(AccountForm):
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
        """Check the password by Django's rules, which compare it with the other values."""
        self.validate_passwords()
        typed = {
            name: self.cleaned_data.get(name, "") for name in ("username", "email", "full_name")
        }
        self.validate_password_for_user(User(**typed))
        return self.cleaned_data


class _LanguageSelect(forms.Select):
    """Marks each language's name as text in that language."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        if value:
            option["attrs"]["lang"] = value
        return option


class _TimeZoneSelect(LongSelect):
    """The names of time zones are English in every language."""

    option_language = "en"


def _languages() -> list[tuple[str, Any]]:
    return [("", _("Use the language of the browser")), *settings.LANGUAGES]


def _select(label: Any, choices: Any, **options: Any) -> forms.ChoiceField:
    """A list to choose from, or nothing. The texts of `choices` depend on the language."""
    options.setdefault("widget", LongSelect)
    options["widget"] = options["widget"](attrs=options.pop("attrs", {}))
    return forms.ChoiceField(label=label, choices=choices, required=False, **options)


def _currencies() -> list[tuple[str, str]]:
    return [("", "–"), *currency_choices()]


class ProfileForm(forms.Form):
    """The profile, in groups. A form without some of the fields leaves these as they are."""

    full_name = full_name_field()
    phone_number = phone_number_field()
    language = _select(
        _("Language"),
        _languages,
        widget=_LanguageSelect,
        help_text=_("For these pages and for the mails that we send you."),
    )
    time_zone = _select(
        _("Time zone"),
        time_zone_choices,
        widget=_TimeZoneSelect,
        help_text=_("It decides the date of an invoice."),
    )

    business_name = _text_field(
        _("Business name"),
        values.clean_text,
        values.TEXT_MAX_LENGTH,
        required=False,
        attrs={"autocomplete": "organization"},
    )
    business_address = _text_field(
        _("Business address"),
        values.clean_lines,
        values.LINES_MAX_LENGTH,
        required=False,
        widget=forms.Textarea,
        attrs={"autocomplete": "street-address", "rows": 3},
    )
    country = _select(
        _("Country"),
        country_choices,
        attrs={"autocomplete": "country"},
        help_text=_("Invoices are then checked for what the law of this country requires."),
    )
    vat_id = _text_field(
        _("VAT ID"),
        values.clean_tax_id,
        values.TAX_ID_MAX_LENGTH,
        required=False,
        attrs={"autocomplete": "off"},
        help_text=_("In Japan, the registration number: T and 13 digits."),
    )
    tax_number = _text_field(
        _("Tax number"),
        values.clean_tax_id,
        values.TAX_ID_MAX_LENGTH,
        required=False,
        attrs={"autocomplete": "off"},
        help_text=_("In France, the SIREN or SIRET number."),
    )

    account_holder = _text_field(
        _("Account holder"),
        values.clean_text,
        values.TEXT_MAX_LENGTH,
        required=False,
        attrs={"autocomplete": "off"},
    )
    iban = _text_field(
        _("IBAN"),
        values.clean_iban,
        values.IBAN_MAX_LENGTH,
        required=False,
        attrs={"autocomplete": "off", "spellcheck": "false"},
    )
    bic = _text_field(
        _("BIC"),
        values.clean_bic,
        values.BIC_MAX_LENGTH,
        required=False,
        attrs={"autocomplete": "off", "spellcheck": "false"},
    )

    currency = _select(_("Currency"), _currencies)
    payment_days = _text_field(
        _("Days until payment"),
        values.clean_payment_days,
        3,
        required=False,
        attrs={"autocomplete": "off", "inputmode": "numeric"},
        help_text=_("From the date of the invoice."),
    )
    payment_terms = _text_field(
        _("Payment terms"),
        values.clean_lines,
        values.LINES_MAX_LENGTH,
        required=False,
        widget=forms.Textarea,
        attrs={"autocomplete": "off", "rows": 2},
        help_text=_("Printed on each invoice."),
    )

    #: The headings of the page, and the fields below each.
    groups: ClassVar[dict[Any, tuple[str, ...]]] = {
        _("You"): ("full_name", "phone_number", "language", "time_zone"),
        _("Your business"): (
            "business_name",
            "business_address",
            "country",
            "vat_id",
            "tax_number",
        ),
        _("Bank account on invoices"): ("account_holder", "iban", "bic"),
        _("New invoices start with"): ("currency", "payment_days", "payment_terms"),
    }

    def fields_by_group(self) -> list[tuple[Any, list[forms.BoundField]]]:
        return [(title, [self[name] for name in names]) for title, names in self.groups.items()]

    def clean_vat_id(self) -> str:
        """Another VAT ID than the stored one must fit the country."""
        typed: str = self.cleaned_data["vat_id"]
        if typed and typed != self.initial.get("vat_id"):
            sent = self.cleaned_data if self._was_sent("country") else self.initial
            values.clean_vat_id(typed, sent.get("country"))
        return typed

    def profile_values(self) -> dict[str, Any]:
        """The values to store. A field that was not sent stays the same."""
        return {name: text for name, text in self.cleaned_data.items() if self._was_sent(name)}

    def _was_sent(self, name: str) -> bool:
        return self.add_prefix(name) in self.data


class PasswordConfirmedForm(BoundedPasswordsMixin, forms.Form):
    """Asks for the account's password. Raises TooManyAttempts when it is cleaned."""

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
        password: str = self.cleaned_data["password"]
        if not attempts.is_password(self.user, password):
            raise ValidationError(_("This is not your password."), code="password_incorrect")
        return password


class UsernameChangeForm(PasswordConfirmedForm):
    username = username_field()

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        usernames.check_change(self.user.username, username)
        usernames.check_reserved(username, self.user.username)
        return username


class EmailChangeForm(PasswordConfirmedForm):
    email = email_field()


class NewPasswordForm(BoundedPasswordsMixin, SetPasswordForm):
    """Django's form to set a password without the old one."""


class OwnPasswordChangeForm(BoundedPasswordsMixin, PasswordChangeForm):
    """Django's form, with limited attempts. Raises TooManyAttempts when it is cleaned."""

    @sensitive_variables("old_password")
    def clean_old_password(self) -> str:
        old_password: str = self.cleaned_data["old_password"]
        if not attempts.is_password(self.user, old_password):
            raise ValidationError(
                self.error_messages["password_incorrect"], code="password_incorrect"
            )
        return old_password
