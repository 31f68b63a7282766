"""Sign-ups that wait for their link, so that the form does not reveal who has an account.

With `ACCOUNTS_PREVENT_ENUMERATION` a sign-up makes no account. Its values are stored in the cache
under a random key. A link with that key is sent to the address, and makes the account when it is
followed. If an account has the address already, the mail says so instead. Both cases send the same
requests, hash the same password and send one mail. Only email addresses are hidden like this:
usernames are public, and other unique attributes are checked at once.

A link can be followed twice. Therefore, when it has made its account, the account's key replaces
the stored values.

The page to go to after the sign-up is stored with the values. If it were in the link, anybody could
send their words to any address.
"""

from typing import Any

from django.core.cache import cache
from django.utils.crypto import get_random_string
from django.views.decorators.debug import sensitive_variables

from accounts import services
from accounts.emails import links
from accounts.exceptions import AccountRequestReused, BadLink, UsedLink, taken
from accounts.models import AbstractAccount, account_model
from dynamo import Refused, Transaction, joined
from dynamo.auth import make_password
from dynamo.wire.types import Item


@sensitive_variables()
def hold_sign_up(
    *, password: str, request_id: str, next_page: str = "", **values: Any
) -> str | None:
    """Store a sign-up, with the values for `services.register`, and the page to go to afterwards.

    Returns the key of the link that makes the account, or None if an account has the address.
    Costs 3 requests, 2 read units and 1 write unit per KB in either case; 1 request and 1 read unit
    more for each further unique attribute.

    Raises:
        ValidationError: a value breaks its rule.
        UsernameTaken, ValueTaken: another account has the value. If several are taken,
            `dynamo.exceptions.Refused` with all of them. Never EmailTaken.
    """
    model = account_model()
    values = model.cleaned(**values)
    # These include the defaults of attributes that no page asks for.
    user = model(**values)
    uniques = [{name: getattr(user, name) for name in names} for names in model.uniques()]
    refusals = [
        taken(tuple(unique), unique)
        for unique in uniques
        if "email" not in unique and model.is_taken(**unique)
    ]
    if len(refusals) > 1:
        raise Refused("Several values are taken.", refusals)
    if refusals:
        raise refusals[0]
    is_known = model.is_taken(email=values["email"])
    key = get_random_string(32)
    held = {
        **values,
        "password_hash": make_password(password),
        "request_id": request_id,
        "next_page": next_page,
    }
    cache.set(_cache_key(key), held, links.VALID_SECONDS)
    return None if is_known else key


@sensitive_variables()
def complete_sign_up(
    token: str, *, write: Transaction | None = None
) -> tuple[AbstractAccount, str]:
    """Make the account of the link's sign-up, with a confirmed address.

    Returns the account, even if it was made before, and the page to go to, or "". That page was
    only checked for the host of the sign-up.

    Costs 3 requests, 1 read unit and 7 write units; 2 requests and 2 read units if it was made
    before.

    Raises:
        BadLink: the link is too old, or its account was deleted.
        ValidationError, UsernameTaken, EmailTaken, Refused: see `services.register`. The sign-up is
            kept.
        AccountRequestReused: another link of the same form made the account, with other values or
            another password.
    """
    [key] = links.read(links.SIGN_UP, token, 1)
    held: dict[str, Any] | None = cache.get(_cache_key(key))
    if held is None:
        raise BadLink(links.SIGN_UP)
    next_page: str = held.pop("next_page", "")
    if "made" in held:
        return _made_before(held), next_page

    @sensitive_variables()
    def forget_values(_stored: Item | None) -> None:
        if user.password != held["password_hash"]:
            raise AccountRequestReused(held["request_id"])
        # After the commit: if the process ends before this, the link finds its account.
        made = {"made": user.pk, "joined_at": str(user.date_joined), "next_page": next_page}
        cache.set(_cache_key(key), made, links.VALID_SECONDS)

    with joined(write) as write:
        user = services.register(**held, email_confirmed=True, write=write)
        write.on_commit(user, forget_values)
    return user, next_page


def address_of(token: str) -> str:
    """The email address of the link's sign-up; empty if it is not stored any more.

    Costs 1 request and 1 read unit; 2 of each if the link was followed.

    Raises:
        UsedLink: the link made its account.
        BadLink: the link is too old, or its account was deleted.
    """
    [key] = links.read(links.SIGN_UP, token, 1)
    held: dict[str, Any] = cache.get(_cache_key(key)) or {}
    if "made" in held:
        _made_before(held)
        raise UsedLink(links.SIGN_UP)
    return str(held.get("email", ""))


def _made_before(held: dict[str, Any]) -> AbstractAccount:
    user = links.account_of(links.SIGN_UP, held["made"])
    # If the account was deleted, another link of the same form can make one with the same key.
    if held["joined_at"] != str(user.date_joined):
        raise BadLink(links.SIGN_UP)
    return user


def _cache_key(key: str) -> str:
    return f"accounts.signup.{key}"
