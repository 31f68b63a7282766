"""The rules for the values of an account that people type.

The model declares each value once (`dynamo.inputs`). The rules that every user model has for
usernames and addresses are in `dynamo.auth`.
"""

import re
import zoneinfo
from contextlib import suppress
from functools import cache, partial

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo.auth.addresses import (
    EMAIL_MAX_LENGTH,
    INVALID_EMAIL,
    clean_email,
    comparable_domain,
    comparable_email,
)
from dynamo.auth.usernames import check_new_username, comparable_username, in_ascii
from dynamo.inputs import Choices, SingleLine

_QUOTED_CHARACTER = re.compile(r"\\(.)", re.DOTALL)


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


#: Accepts any valid email address, even if it breaks the rules for new accounts.
Email = partial(
    SingleLine,
    max_length=EMAIL_MAX_LENGTH,
    rule=clean_email,
    unprintable=INVALID_EMAIL,
    input=forms.EmailInput,
)


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
    """Whether `new` is the username `old` in another case, and new accounts may not choose `old`.

    An account keeps its username if the rules change (`dynamo.auth.usernames`).
    """
    with suppress(ValidationError):
        check_new_username(old)
        return False
    return comparable_username(old) == comparable_username(new)


def check_reserved(name: str, old: str = "") -> None:
    """Refuse a username that is reserved or looks like a reserved one, unless the account has it.

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


# Time zones ---------------------------------------------------------------------------------------


def is_time_zone(name: str) -> bool:
    """Whether `name` is a time zone of the IANA database, such as `Europe/Berlin`."""
    return name in _time_zones()


@cache
def time_zone_choices() -> Choices:
    """The choices of a form: an empty one, and the time zones by name."""
    return (("", "–"), *((name, name.replace("_", " ")) for name in sorted(_time_zones())))


@cache
def _time_zones() -> frozenset[str]:
    # Offers only names such as `Europe/Berlin`. Names such as `EST` or `GB` are old or
    # abbreviations.
    return frozenset(
        name
        for name in zoneinfo.available_timezones()
        if "/" in name and not name.startswith(("Etc/", "SystemV/", "US/", "Canada/", "Brazil/"))
    ) | {"UTC"}
