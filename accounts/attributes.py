"""The values of an account that people type: their kinds, and the site's own rules for them.

The model declares each attribute once, with its kind. Pages, commands and imports clean what was
typed by `Value.clean`, or by the form field that it makes. The result is marked as clean, so
operations that get it do not clean it again. The rules that every user model has for usernames and
addresses are in `dynamo.auth`.
"""

import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo import IntegerAttribute, TextAttribute
from dynamo.auth.addresses import (
    EMAIL_MAX_LENGTH,
    INVALID_EMAIL,
    clean_email,
    comparable_domain,
    comparable_email,
)
from dynamo.auth.usernames import (
    INVALID_USERNAME,
    USERNAME_MAX_LENGTH,
    check_new_username,
    clean_username,
    comparable_username,
    in_ascii,
)
from web import identifiers, kinds
from web.choices import currency_choices, is_time_zone, time_zone_choices
from web.kinds import Choice, FormField, Kind, SingleLine

MOST_PAYMENT_DAYS = 365
_DAYS = re.compile(r"\d{1,3}", re.ASCII)
_QUOTED_CHARACTER = re.compile(r"\\(.)", re.DOTALL)


class Clean(str):
    """A text that the attribute with the stored name `by` has cleaned."""

    by = ""


def in_camel_case(name: str) -> str:
    """The stored name of a Python name: `fullName`."""
    first, *others = name.split("_")
    return "".join([first, *map(str.capitalize, others)])


class Value:
    """Adds the kind of its values to an attribute of the account, which cleans them by it."""

    label: Any
    help_text: Any
    null: bool
    attr_name: str

    def __init__(
        self, label: Any, kind: Kind, *, attrs: Any = None, null: bool = True, **options: Any
    ) -> None:
        """`attrs` are attributes of the input element. Others are options of the attribute.

        Unless `null` is False, an account may lack it, as older ones do.
        """
        super().__init__(label, null=null, **options)  # type: ignore[call-arg]  # the attribute's
        self.kind, self.attrs = kind, attrs

    def __set_name__(self, owner: Any, name: str) -> None:
        """Unless it is given, the stored name is `name` in camel case: `fullName`."""
        self.attr_name = self.attr_name or in_camel_case(name)

    def clean(self, typed: Any) -> Any:
        """What is stored for a typed text: None if it is empty and may be. `Clean` texts stay.

        Raises:
            ValidationError
        """
        if isinstance(typed, Clean) and typed.by == self.attr_name:
            return typed
        text = "" if typed is None else str(typed)
        if self.null and not text.strip():
            return None
        value = self.kind.clean(text)
        if isinstance(value, str):
            value = Clean(value)
            value.by = self.attr_name
        return value

    def form_field(self, kind: Kind | None = None) -> FormField:
        """A form field for the attribute. With another `kind`, its value is not clean for it."""
        return FormField(
            kind or self.kind,
            kind.clean if kind else self.clean,
            self.attrs,
            label=self.label,
            help_text=self.help_text,
            required=not self.null,
        )


class TextValue(Value, TextAttribute):
    """A text of an account."""


class IntegerValue(Value, IntegerAttribute):
    """A number of an account."""


def clean_phone_number(text: str) -> str:
    """A phone number in E.164 (`+12025550124`).

    Without a `+` it is a number of `ACCOUNTS_PHONE_REGION`.
    """
    import phonenumbers

    region = settings.ACCOUNTS_PHONE_REGION or None
    with suppress(phonenumbers.NumberParseException):
        number = phonenumbers.parse(text, region)
        if not number.extension and phonenumbers.is_possible_number(number):
            return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    if region:
        raise ValidationError(_("Enter a valid phone number."), code="invalid")
    raise ValidationError(_("Enter a valid phone number, with its country code."), code="invalid")


#: The shape of a username. New ones must also not be confusable (`dynamo.auth`).
USERNAME = SingleLine(USERNAME_MAX_LENGTH, clean_username, INVALID_USERNAME)
#: Any email address, also one that no account may get any more.
EMAIL = SingleLine(EMAIL_MAX_LENGTH, clean_email, INVALID_EMAIL, forms.EmailInput)
PHONE_NUMBER = SingleLine(40, clean_phone_number)
NAME = SingleLine(150)
TAX_ID = SingleLine(32)
#: An IBAN has at most 34 characters, and is often typed in groups of four.
IBAN = SingleLine(50, identifiers.clean_iban)
BIC = SingleLine(20, identifiers.clean_bic)


LANGUAGE = Choice(
    lambda code: code in dict(settings.LANGUAGES),
    lambda: [("", _("Use the language of the browser")), *settings.LANGUAGES],
    _("This site is not available in this language."),
    "{}",
)
#: The names of time zones are English in every language.
TIME_ZONE = Choice(is_time_zone, time_zone_choices, language="en")
CURRENCY = replace(kinds.CURRENCY, choices=lambda: [("", "–"), *currency_choices()])


class PaymentDays(Kind):
    """A number of days from 0 to 365."""

    def clean(self, typed: str) -> int:
        digits = typed.strip()
        days = int(digits) if _DAYS.fullmatch(digits) else -1
        if not 0 <= days <= MOST_PAYMENT_DAYS:
            raise ValidationError(
                _("Enter a number of days from 0 to %(limit)s."),
                "payment_days",
                {"limit": MOST_PAYMENT_DAYS},
            )
        return days

    def widget(self) -> forms.Widget:
        return forms.TextInput({"maxlength": 3, "inputmode": "numeric"})


def readable_phone_number(number: str | None) -> str:
    """A stored number for people: `+1 202-555-0124`."""
    if not number:
        return ""
    import phonenumbers

    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        return number
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.INTERNATIONAL)


def keeps_older(old: str, new: str) -> bool:
    """Whether `new` is the username `old` in another case, and `old` could not be chosen any more.

    An account keeps its username if the rules change (`dynamo.auth.usernames`).
    """
    with suppress(ValidationError):
        check_new_username(old)
        return False
    return comparable_username(old) == comparable_username(new)


def check_reserved(name: str, old: str = "") -> None:
    """Refuse a username that is reserved for operators or looks so, unless the account has it.

    Raises:
        ValidationError: with the code `reserved`.
    """
    if comparable_username(name) == comparable_username(old):
        return
    if in_ascii(name) in map(in_ascii, settings.ACCOUNTS_RESERVED_USERNAMES):
        raise ValidationError(_("This username is reserved."), code="reserved")


def mailbox_of(address: str) -> str:
    """The mailbox that gets the mails to `address`: without quotes, and without a `+tag`.

    Sources: RFC 5321, section 4.1.2 (quotes and backslashes do not count); RFC 5233 (tags).

    Raises:
        ValueError: as `comparable_email`.
    """
    local, _at, domain = comparable_email(address).rpartition("@")
    if local.startswith('"'):
        local = _QUOTED_CHARACTER.sub(r"\1", local[1:-1])
    return f"{local.partition('+')[0] or local}@{domain}"


def deliverable_email(address: str) -> str:
    """`address` as a mail server gets it: with the comparable domain, in ASCII.

    Python would map the domain by IDNA 2003, where `straße.example` is the domain of another owner.

    Raises:
        ValueError: no mail can be sent there, because programs differ in how they read its local
            part.
    """
    local, _at, domain = address.rpartition("@")
    if not local.isascii() or "=?" in local:
        raise ValueError("The local part is not plain ASCII.")
    return f"{local}@{comparable_domain(domain)}"


def is_deliverable(address: str) -> bool:
    """Whether a mail can be sent to `address`; see `deliverable_email`."""
    try:
        deliverable_email(address)
    except ValueError:
        return False
    return True
