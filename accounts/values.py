"""The rules for each value of an account: what is accepted, what is stored, what is compared.

`clean_…` takes a typed text and returns what is stored, or raises ValidationError. `comparable_…`
takes a stored value and returns the form in which equal values are compared. The value is stored
and shown as typed.
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

from web import identifiers
from web.choices import is_country, is_currency, is_time_zone

USERNAME_MAX_LENGTH = 150
#: RFC 3696, erratum 1690: a path of 256 octets, less its angle brackets.
EMAIL_MAX_LENGTH = 254
TEXT_MAX_LENGTH = 150
LINES_MAX_LENGTH = 500
TAX_ID_MAX_LENGTH = 32
#: An IBAN has at most 34 characters, and is often typed in groups of four.
IBAN_MAX_LENGTH = 50
BIC_MAX_LENGTH = 20
MOST_PAYMENT_DAYS = 365
PHONE_MAX_LENGTH = 40
#: Longer passwords are refused before they are hashed.
PASSWORD_MAX_LENGTH = 1024

# Django's UnicodeUsernameValidator without "@", so that a username is not an email address.
_USERNAME = re.compile(r"[\w.+-]+")
_QUOTED_CHARACTER = re.compile(r"\\(.)", re.DOTALL)
_DAYS = re.compile(r"\d{1,3}", re.ASCII)
_DIRECTION_OVERRIDES = re.compile("[\u202a-\u202e\u2066-\u2069]")
# Control characters, lone surrogates, line and paragraph separators.
_UNPRINTABLE_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}

_validate_email = EmailValidator()


def as_uuid(text: str) -> str | None:
    """The UUID in `text` in its usual spelling, or None."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None


def clean_username(text: str) -> str:
    """A username of letters, digits and . + - _, at most 150, and not a UUID.

    So a username is never an email address (with "@") or a primary key (a UUID).
    """
    name = text.strip()
    plain = unicodedata.normalize("NFKC", name) if len(name) <= USERNAME_MAX_LENGTH else name
    _refuse_longer(plain, USERNAME_MAX_LENGTH)
    if not _USERNAME.fullmatch(plain):
        raise ValidationError(
            _("Use letters, digits and the characters . + - _ only."), code="invalid"
        )
    if as_uuid(plain):
        raise ValidationError(_("A username cannot be a UUID."), code="uuid")
    return name


def comparable_username(name: str) -> str:
    """NFKC and case folding until nothing changes: `Bob`, `BOB` and `ＢＯＢ` become equal."""
    folded = unicodedata.normalize("NFKC", name)
    while (again := unicodedata.normalize("NFKC", folded.casefold())) != folded:
        folded = again
    return folded


def clean_email(text: str) -> str:
    """An email address of at most 254 characters with a domain that IDNA accepts."""
    address = text.strip()
    _refuse_longer(address, EMAIL_MAX_LENGTH)
    _refuse_unprintable(address, _("Enter a valid email address."))
    _validate_email(address)
    try:
        comparable_email(address)
    except ValueError as error:
        raise ValidationError(_("Enter a valid email address."), code="invalid") from error
    return address


def clean_new_email(text: str) -> str:
    """An email address that an account may get: as `clean_email`, but without quotes.

    `"ann"@example.org` is the mailbox of `ann@example.org`, but would be another account. Accounts
    that older versions gave such an address can keep it.
    """
    address = clean_email(text)
    if '"' in address:
        raise ValidationError(_("Enter a valid email address."), code="invalid")
    return address


def comparable_email(address: str) -> str:
    """The local part case-folded, the domain as punycode.

    Raises:
        ValueError: not a valid domain (idna's errors are ValueErrors).
    """
    local, _at, domain = address.rpartition("@")
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


def clean_text(text: str, limit: int = TEXT_MAX_LENGTH) -> str | None:
    """One line of text, or None if it is empty."""
    line = text.strip()
    _refuse_longer(line, limit)
    _refuse_unprintable(line, _("Use printable characters only."))
    return line or None


def clean_lines(text: str) -> str | None:
    """Several lines of text, or None if they are empty."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    for line in lines:
        _refuse_unprintable(line, _("Use printable characters only."))
    joined = "\n".join(lines)
    _refuse_longer(joined, LINES_MAX_LENGTH)
    return joined or None


def clean_phone_number(text: str) -> str | None:
    """A phone number in E.164 (`+12025550124`), or None if it is empty.

    Without a `+` it is a number of `ACCOUNTS_PHONE_REGION`.
    """
    if not text.strip():
        return None
    import phonenumbers

    region = settings.ACCOUNTS_PHONE_REGION or None
    try:
        number = phonenumbers.parse(text[: PHONE_MAX_LENGTH + 1], region)
    except phonenumbers.NumberParseException as error:
        raise ValidationError(_invalid_phone_number(region), code="invalid") from error
    whole = phonenumbers.is_possible_number(number) and not number.extension
    if len(text) > PHONE_MAX_LENGTH or not whole:
        raise ValidationError(_invalid_phone_number(region), code="invalid")
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _invalid_phone_number(region: str | None) -> Any:
    if region:
        return _("Enter a valid phone number.")
    return _("Enter a valid phone number with its country code, such as +44 20 7946 0000.")


def clean_language(code: str) -> str | None:
    """The code of a language of the site, or None if it is empty."""
    language = code.strip()
    if language and language not in dict(settings.LANGUAGES):
        raise ValidationError(_("This site is not available in this language."), code="language")
    return language or None


def clean_tax_id(text: str) -> str | None:
    """A tax number, or a VAT ID whose country is not known: one line, or None if it is empty."""
    return clean_text(text, TAX_ID_MAX_LENGTH)


def clean_vat_id(text: str, country: str | None) -> str | None:
    """The VAT ID of a business in `country`, or None if it is empty."""
    line = clean_tax_id(text)
    return identifiers.clean_vat_id(line, country or "") if line else None


def clean_iban(text: str) -> str | None:
    """An IBAN without spaces, or None if it is empty."""
    line = clean_text(text, IBAN_MAX_LENGTH)
    return identifiers.clean_iban(line) if line else None


def clean_bic(text: str) -> str | None:
    """A BIC, or None if it is empty."""
    line = clean_text(text, BIC_MAX_LENGTH)
    return identifiers.clean_bic(line) if line else None


def clean_country(text: str) -> str | None:
    """The ISO 3166 code of a country, or None if it is empty."""
    code = text.strip().upper()
    if code and not is_country(code):
        raise ValidationError(_("Select one of the choices."), code="country")
    return code or None


def clean_currency(text: str) -> str | None:
    """The ISO 4217 code of a currency in use, or None if it is empty."""
    code = text.strip().upper()
    if code and not is_currency(code):
        raise ValidationError(_("Select one of the choices."), code="currency")
    return code or None


def clean_time_zone(text: str) -> str | None:
    """A time zone such as `Europe/Berlin`, or None if it is empty."""
    name = text.strip()
    if name and not is_time_zone(name):
        raise ValidationError(_("Select one of the choices."), code="time_zone")
    return name or None


def clean_payment_days(text: str) -> int | None:
    """A number of days from 0 to 365, or None if it is empty."""
    digits = text.strip()
    if not digits:
        return None
    days = int(digits) if _DAYS.fullmatch(digits) else -1
    if not 0 <= days <= MOST_PAYMENT_DAYS:
        raise ValidationError(
            _("Enter a number of days from 0 to %(limit)s."),
            "payment_days",
            {"limit": MOST_PAYMENT_DAYS},
        )
    return days


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


def _refuse_longer(text: str, limit: int) -> None:
    if len(text) > limit:
        raise ValidationError(
            _("Use at most %(limit)s characters."), "max_length", {"limit": limit}
        )


def _refuse_unprintable(text: str, message: Any) -> None:
    unprintable = any(unicodedata.category(char) in _UNPRINTABLE_CATEGORIES for char in text)
    if unprintable or _DIRECTION_OVERRIDES.search(text):
        raise ValidationError(message, code="unprintable")
