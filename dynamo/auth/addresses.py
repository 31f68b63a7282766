"""Email addresses: which are accepted, and the form in which they are compared.

An address is stored and shown as typed. A domain with letters beyond ASCII needs the package idna.
"""

import unicodedata

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import EmailValidator

# Under another name, `make messages` leaves out the texts of Django's own catalogues.
from django.utils.translation import gettext_lazy as _, gettext_lazy as djangos_lazy

#: RFC 3696, erratum 1690: a path of 256 octets, less its angle brackets.
EMAIL_MAX_LENGTH = 254
INVALID_EMAIL = djangos_lazy("Enter a valid email address.")

_validate_email = EmailValidator()


class MissingIdna(ImproperlyConfigured, ValueError):
    """The domain of an email address cannot be compared without the package idna."""


def clean_email(address: str) -> str:
    """An email address with a domain that IDNA accepts."""
    _validate_email(address)
    try:
        comparable_email(address)
    except MissingIdna as error:
        message = _("This site only accepts domains in ASCII letters.")
        raise ValidationError(message, code="domain") from error
    except ValueError as error:
        raise ValidationError(INVALID_EMAIL, code="invalid") from error
    return address


def clean_new_email(address: str) -> str:
    """An address that a new account may have: like `clean_email`, with one spelling per mailbox.

    `"ann"@example.org` is the mailbox of `ann@example.org`, but would be another account. `sam`
    with a long s (U+017F) is another mailbox, but would be compared as `sam`. Therefore, letters
    beyond ASCII that fold into ASCII are refused. An account that has such an address can keep it.
    """
    local, _at, _domain = clean_email(address).rpartition("@")
    if '"' in local:
        raise ValidationError(INVALID_EMAIL, code="invalid")
    if local.isascii():
        return address
    for char in local:
        folded = char.casefold() + unicodedata.normalize("NFC", char)
        if not char.isascii() and any(map(str.isascii, folded)):
            raise ValidationError(
                _("The character “%(character)s” is not allowed in email addresses."),
                "character",
                {"character": char},
            )
    return address


def comparable_email(address: str) -> str:
    """The local part case-folded, the domain as punycode.

    The beginning of an address is accepted as well.

    Raises:
        ValueError: not a valid domain (idna's errors are ValueErrors).
    """
    local, at, domain = address.rpartition("@")
    if not at:
        return address.casefold()
    return f"{local.casefold()}@{comparable_domain(domain)}"


def comparable_domain(domain: str) -> str:
    """The domain mapped by UTS 46. Plain ASCII names need no mapping."""
    lowered = domain.lower()
    if domain.isascii() and "xn--" not in lowered:
        return lowered
    # Imported here, because few pages need its tables, and a new process should answer its first
    # page soon.
    try:
        import idna
    except ImportError as error:
        raise MissingIdna(
            "An email address with letters beyond ASCII in its domain needs the package idna: "
            "pip install 'django-on-dynamodb[idna]'."
        ) from error

    return idna.encode(domain, uts46=True, std3_rules=True).decode("ascii")
