"""Sign-ups that wait for their link: nobody learns from a form whether an address is known here.

With `ACCOUNTS_PREVENT_ENUMERATION` a sign-up makes no account. What was typed is held in the cache
under a random key; a link with that key goes to the address, and the account is made when it is
followed. The owner of an address that is known gets a mail that says so. For both, the same
requests are sent, the same password is hashed and one mail is sent. Only the address is hidden in
this way: usernames are public, and another attribute that was declared unique is checked at once.

Programs follow links before people do, so a link that has made its account says so once more. What
was held is dropped then, and the account's key is left in its place.
"""

from __future__ import annotations

from typing import Any

from django.core.cache import cache
from django.utils.crypto import get_random_string
from django.views.decorators.debug import sensitive_variables

from accounts import services, usernames
from accounts.emails import links
from accounts.exceptions import BadLink, RequestIdUsed, taken
from accounts.models import User
from accounts.passwords import make_password
from dynamo.exceptions import Refused

PURPOSE = "signup"


@sensitive_variables()
def hold(values: dict[str, Any], *, password: str, request_id: str) -> str | None:
    """Hold a sign-up, with `values` as `services.register` takes them.

    Returns the token of the link that makes the account; None where the address is known. Costs 3
    requests, 2 read units and 1 write unit per KB; the same whether or not it is. Each further
    unique attribute costs 1 request and 1 read unit more.

    Raises:
        ValidationError: a value breaks its rule.
        UsernameTaken, ValueTaken: another account has the value; `dynamo.exceptions.Refused` with
            all of them if there are several. Never EmailTaken.
    """
    cleaned = services.cleaned(**values)
    usernames.check_new(cleaned["username"])
    refusals = [
        taken(name, cleaned[name])
        for name in User.unique.normalize
        if name != "email" and cleaned.get(name) and User.unique.is_taken(name, cleaned[name])
    ]
    if len(refusals) > 1:
        raise Refused("Several values are taken.", refusals)
    if refusals:
        raise refusals[0]
    is_known = User.unique.is_taken("email", cleaned["email"])
    key = get_random_string(32)
    held = {**values, "password_hash": make_password(password), "request_id": request_id}
    cache.set(_cache_key(key), held, links.VALID_SECONDS)
    token = links.make(PURPOSE, key)
    return None if is_known else token


@sensitive_variables()
def release(token: str) -> User:
    """The account of the sign-up that the link names, made now or before; its address is confirmed.

    Costs 3 requests, 1 read unit and 7 write units; 2 and 2 read units where it was made before.

    Raises:
        BadLink: the link is too old, or its account was deleted.
        ValidationError, UsernameTaken, EmailTaken, Refused: see `services.register`; the sign-up
            stays held.
        RequestIdUsed: another link of the same form made the account, of other contents or with
            a password that was typed then.
    """
    [key] = links.read(PURPOSE, token, 1)
    held: dict[str, Any] | None = cache.get(_cache_key(key))
    if held is None:
        raise BadLink(PURPOSE)
    if "made" in held:
        return _made_before(held)
    user = services.register(**held, email_confirmed=True)
    if user.password != held["password_hash"]:
        raise RequestIdUsed(held["request_id"])
    # Only now: whoever follows the link again after a crash finds the account made.
    made = {"made": user.pk, "joined_at": str(user.date_joined)}
    cache.set(_cache_key(key), made, links.VALID_SECONDS)
    return user


def _made_before(held: dict[str, Any]) -> User:
    user = links.account_of(PURPOSE, held["made"])
    # Another link of the same form makes an account with the same key when this one is deleted.
    # Version 0.1 did not note the time.
    if held.get("joined_at") not in {str(user.date_joined), None}:
        raise BadLink(PURPOSE)
    return user


def _cache_key(key: str) -> str:
    return f"accounts.signup.{key}"
