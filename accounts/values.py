"""The rules for each value of an account: what is accepted, what is stored, what is compared.

`clean_…` are rules of kinds (`web.kinds`): each takes a line of text and returns what is stored, or
raises ValidationError. `comparable_…` takes a stored value and returns the form in which equal
values are compared. The value is stored and shown as typed.
"""

from __future__ import annotations

import re
import unicodedata
import uuid
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.utils.translation import gettext_lazy as _

from web.kinds import check_text

USERNAME_MAX_LENGTH = 150
#: RFC 3696, erratum 1690: a path of 256 octets, less its angle brackets.
EMAIL_MAX_LENGTH = 254
#: Longer passwords are refused before they are hashed.
PASSWORD_MAX_LENGTH = 1024

# Django's UnicodeUsernameValidator without "@", so that a username is not an email address.
_USERNAME = re.compile(r"[\w.+-]+")
INVALID_USERNAME = _("Use letters, digits and the characters . + - _ only.")
INVALID_EMAIL = _("Enter a valid email address.")
_QUOTED_CHARACTER = re.compile(r"\\(.)", re.DOTALL)

_validate_email = EmailValidator()


def as_uuid(text: str) -> str | None:
    """The UUID in `text` in its usual spelling, or None."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None


def clean_username(name: str) -> str:
    """A username of letters, digits and . + - _, at most 150, and not a UUID.

    So a username is never an email address (with "@") or a primary key (a UUID).
    """
    plain = unicodedata.normalize("NFKC", name)
    check_text(plain, USERNAME_MAX_LENGTH, INVALID_USERNAME)
    if not _USERNAME.fullmatch(plain):
        raise ValidationError(INVALID_USERNAME, code="invalid")
    if as_uuid(plain):
        raise ValidationError(_("A username cannot be a UUID."), code="uuid")
    return name


def comparable_username(name: str) -> str:
    """NFKC and case folding until nothing changes: `Bob`, `BOB` and `ＢＯＢ` become equal."""
    folded = unicodedata.normalize("NFKC", name)
    while (again := unicodedata.normalize("NFKC", folded.casefold())) != folded:
        folded = again
    return folded


def clean_email(address: str) -> str:
    """An email address with a domain that IDNA accepts."""
    _validate_email(address)
    try:
        comparable_email(address)
    except ValueError as error:
        raise ValidationError(INVALID_EMAIL, code="invalid") from error
    return address


def clean_new_email(address: str) -> str:
    """An email address that an account may get: as `clean_email`, but without quotes.

    `"ann"@example.org` is the mailbox of `ann@example.org`, but would be another account. Accounts
    that older versions gave such an address can keep it.
    """
    if '"' in clean_email(address):
        raise ValidationError(INVALID_EMAIL, code="invalid")
    return address


def comparable_email(address: str) -> str:
    """The local part case-folded, the domain as punycode. Also of the first letters of an address.

    Raises:
        ValueError: not a valid domain (idna's errors are ValueErrors).
    """
    local, at, domain = address.rpartition("@")
    if not at:
        return address.casefold()
    return f"{local.casefold()}@{_comparable_domain(domain)}"


def _comparable_domain(domain: str) -> str:
    """The domain mapped by UTS 46. Plain ASCII names need no mapping."""
    lowered = domain.lower()
    if domain.isascii() and "xn--" not in lowered:
        return lowered
    # Here, as with the phone numbers below: few pages need the tables of these packages, and a new
    # process should answer its first page soon.
    import idna

    return idna.encode(domain, uts46=True, std3_rules=True).decode("ascii")


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
    return f"{local}@{_comparable_domain(domain)}"


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
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException as error:
        raise ValidationError(_invalid_phone_number(region), code="invalid") from error
    if number.extension or not phonenumbers.is_possible_number(number):
        raise ValidationError(_invalid_phone_number(region), code="invalid")
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _invalid_phone_number(region: str | None) -> Any:
    if region:
        return _("Enter a valid phone number.")
    return _("Enter a valid phone number with its country code, such as +44 20 7946 0000.")


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
