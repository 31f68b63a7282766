"""The rules for values of an account, besides those of `dynamo.auth` for username and address."""

from __future__ import annotations

import re
from contextlib import suppress

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo.auth.addresses import comparable_domain, comparable_email

_QUOTED_CHARACTER = re.compile(r"\\(.)", re.DOTALL)


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
