"""Which usernames the site's rules exempt, and which they reserve for operators.

An account keeps its username if the rules change (`dynamo.auth.usernames`), and may change its
case.
"""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo.auth.usernames import check_new_username, comparable_username, in_ascii


def keeps_older(old: str, new: str) -> bool:
    """Whether `new` is `old` in another case, and `old` could not be chosen any more."""
    return comparable_username(old) == comparable_username(new) and not _is_choosable(old)


def check_reserved(name: str, old: str = "") -> None:
    """Refuse a username that is reserved for operators or looks so, unless the account has it.

    Raises:
        ValidationError: with the code `reserved`.
    """
    if comparable_username(name) == comparable_username(old):
        return
    if in_ascii(name) in map(in_ascii, settings.ACCOUNTS_RESERVED_USERNAMES):
        raise ValidationError(_("This username is reserved."), code="reserved")


def _is_choosable(name: str) -> bool:
    try:
        check_new_username(name)
    except ValidationError:
        return False
    return True
