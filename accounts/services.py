"""Every way in which an account comes, changes and goes; each is one transaction, or nothing.

Nothing is read to learn whether a value is free: the write states the condition, and the answer
decides. Changes and deletions are idempotent by value: what already is so is a success. So an
operation whose reply was lost recognises its own work, also after an hour.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.views.decorators.debug import sensitive_variables

from accounts import metrics, usernames
from accounts import values as rules
from accounts.exceptions import AccountError, RequestIdUsed, StaleUser, UnknownUser, taken
from accounts.models import NO_PENDING_CHANGE, User, new_confirmation_id, new_session_epoch
from accounts.passwords import make_password
from dynamo.exceptions import Refused
from dynamo.transaction import Companion, Transaction
from dynamo.versions import new_version

#: The primary key of an account is the UUIDv5 of its registration's request id in this space.
REQUEST_IDS = uuid.UUID("5b0f6c9e-6d0b-4b43-9a35-0f4c1f1c9c57")

_CLEAN: dict[str, Callable[[str], str | None]] = {
    "username": rules.clean_username,
    "email": rules.clean_email,
    "full_name": rules.clean_text,
    "phone_number": rules.clean_phone_number,
    "business_name": rules.clean_text,
    "business_address": rules.clean_address,
    "vat_id": lambda text: rules.clean_text(text, rules.VAT_ID_MAX_LENGTH),
    "language": rules.clean_language,
}


@sensitive_variables()
def register(
    *,
    username: str,
    email: str,
    password: str | None = None,
    password_hash: str | None = None,
    full_name: str = "",
    phone_number: str = "",
    is_staff: bool = False,
    is_superuser: bool = False,
    email_confirmed: bool = False,
    request_id: str | None = None,
) -> User:
    """Make an account and the guards of its unique values, in one transaction.

    With neither `password` nor `password_hash` no password signs in. `request_id` names this
    registration (drawn when none is given): asked for again with the same id and contents, by
    whomever and whenever, it answers with the account that it made. `email_confirmed` says that the
    address is known to be its owner's.

    Costs 1 request and 6 write units.

    Raises:
        ValidationError: a value breaks its rule (`accounts.values`, `accounts.usernames`).
        UsernameTaken, EmailTaken, ValueTaken: another account holds the value; where several are
            taken, `dynamo.exceptions.Refused` with all of them.
        RequestIdUsed: the request id made an account with other contents.
    """
    values = cleaned(username=username, email=email, full_name=full_name, phone_number=phone_number)
    usernames.check_new(values["username"])
    request_id = request_id or str(uuid.uuid4())
    user = User(
        pk=account_key(request_id),
        password=make_password(password) if password_hash is None else password_hash,
        is_staff=is_staff,
        is_superuser=is_superuser,
        date_joined=datetime.now(UTC),
        email_confirmed_at=datetime.now(UTC) if email_confirmed else None,
        confirmation_id=new_confirmation_id(),
        # So no session of a deleted account fits one that is made under the same key.
        session_epoch=new_session_epoch(),
        version=new_version(),
        **values,
    )
    write = Transaction()
    write.put(user, User.pk.does_not_exist(), otherwise=RequestIdUsed(request_id))
    User.unique.claim(write, user, taken)
    try:
        write.commit()
    except (AccountError, Refused) as error:
        made = write.refusal_of(user)
        if made is None:
            metrics.note_refused(error, User.unique.stored_name)
            raise
        return _made_before(made.stored, user, password, RequestIdUsed(request_id), error)
    user.stored = user.to_dynamodb_dict()
    return user


def account_key(request_id: str) -> str:
    """The primary key that the registration named `request_id` gives its account."""
    return str(uuid.uuid5(REQUEST_IDS, request_id))


def _made_before(
    stored: dict[str, Any] | None,
    asked: User,
    password: str | None,
    used: RequestIdUsed,
    error: Exception,
) -> User:
    """The account of the same request, if it has the contents that are asked for now."""
    if stored is None:
        raise used from error
    user = User.from_raw_data(stored)
    same_values = User.unique.keys_of(user) == User.unique.keys_of(asked)
    same_password = (
        user.check_password(password)
        if password is not None
        else user.has_usable_password() == asked.has_usable_password()
    )
    same_rights = user.has({"is_staff": asked.is_staff, "is_superuser": asked.is_superuser})
    if not (same_values and same_password and same_rights):
        raise used from error
    return user


def change_username(user: User, username: str) -> None:
    """Give `user` another name and free the old one, in one transaction.

    Costs 1 request and 6 write units; 1 unit where only the spelling changes (no guard is
    touched); nothing where it is the name already.

    Raises:
        ValidationError: no user name.
        UsernameTaken: another account has it.
        StaleUser: the account changed, or was deleted, since `user` was read.
    """
    values = cleaned(username=username)
    usernames.check_change(user.username, values["username"])
    change(user, values)


def change_email(user: User, email: str) -> None:
    """Give `user` another address and free the old one, in one transaction.

    Costs as `change_username`. The new address is not confirmed. A change that waits for its
    link is dropped, and its reservation with it.

    Raises:
        ValidationError: no e-mail address.
        EmailTaken: another account has it.
        StaleUser: the account changed, or was deleted, since `user` was read.
    """
    change(user, cleaned(email=email) | NO_PENDING_CHANGE)


def edit_profile(user: User, **texts: str) -> None:
    """Change what else an account says of its person, by attribute name; empty removes.

    Names: full_name, phone_number, business_name, business_address, vat_id, language. Costs
    1 request and 1 write unit, nothing where all is so already.

    Raises:
        ValidationError: a value breaks its rule.
        ValueTaken: another account holds a value that was declared unique.
        StaleUser: the account changed, or was deleted, since `user` was read.
    """
    change(user, cleaned(**texts))


@sensitive_variables()
def change_password(user: User, password: str) -> None:
    """Give `user` another password, which ends the account's other sessions.

    And a change of address that waits for its link: see `User.store`. Costs 1 request and 1 write
    unit.

    Raises:
        StaleUser: the account changed, or was deleted, since `user` was read.
    """
    change(user, {"password": make_password(password)})


def deactivate(user: User, along: Companion | None = None) -> None:
    """Let nobody sign in, and end the sessions that there are. The values stay taken.

    A change of address that waits for its link ends as well: see `User.store`. Costs 1 request
    and 1 write unit, nothing where it is so already. What `along` adds happens with it or not at
    all: not where it is so already; twice the units then, and those of `along`.

    Raises:
        StaleUser: the account changed, or was deleted, since `user` was read.
        what `along` says of its own writes.
    """
    _activity(user, along, is_active=False)


def activate(user: User, along: Companion | None = None) -> None:
    """Let the account sign in again. Costs and raises as `deactivate`."""
    _activity(user, along, is_active=True)


def _activity(user: User, along: Companion | None, *, is_active: bool) -> None:
    values = {"is_active": is_active}
    if not user.has(values):
        user.store(values, along)


def grant_staff(user: User, *, superuser: bool = False) -> None:
    """Let `user` use the staff pages; as a superuser, also act there on other staff.

    Without `superuser`, an account that is a superuser stays one. Costs 1 request and 1 write unit,
    nothing if already so.

    Raises:
        StaleUser: the account changed or was deleted since `user` was read.
    """
    change(user, {"is_staff": True} | ({"is_superuser": True} if superuser else {}))


def revoke_staff(user: User) -> None:
    """Take all rights of staff and superuser from `user`.

    This takes effect at once: every page reads the rights from the stored account, and every staff
    action states them as a condition of its transaction. The account stays signed in, with its own
    pages. Costs and raises as `grant_staff`.
    """
    change(user, {"is_staff": False, "is_superuser": False})


def delete(user: User) -> None:
    """Delete `user` and free its unique values, in one transaction.

    An account that is gone already is a success. Costs 1 request and 6 write units; 2 units more
    where a change of address waits for its link.

    Raises:
        StaleUser: the account changed since `user` was read.
    """

    write = Transaction()
    write.delete(user, user.unchanged(), otherwise=StaleUser(user.pk))
    User.unique.free(write, user)
    try:
        write.commit()
    except StaleUser:
        refusal = write.refusal_of(user)
        if refusal is None or refusal.stored is not None:
            raise
    user.sessions = None


def find_user(who: str) -> User:
    """The account that goes by `who`; see `User.find` for what that may be and costs.

    Raises:
        UnknownUser: nobody does.
    """
    try:
        return User.find(who)
    except User.DoesNotExist:
        raise UnknownUser(who) from None


def cleaned(**texts: str) -> dict[str, Any]:
    """The values by attribute name as they are stored. Raises ValidationError."""
    return {name: _CLEAN[name](text) for name, text in texts.items()}


def change(user: User, values: dict[str, Any], *, asked: dict[str, Any] | None = None) -> None:
    """Give `user` the attributes `values`, and let its guards follow those that are unique.

    Where others changed the account meanwhile it is a success all the same if the stored one has
    `asked`: those of `values`, all by default, that whoever asked cares for.

    Raises:
        StaleUser: the account changed, or was deleted, since `user` was read, and has not `asked`.
        UsernameTaken, EmailTaken, ValueTaken: another account has the value, or a claim to it.
    """
    if user.has(values):
        return
    if not User.unique.touches(user, values):
        user.store(values)
        return
    written = user.raised(_of_new_address(user, values) | values)
    write = Transaction()
    changes = User.set_or_remove(written)
    write.update(user, changes, user.unchanged(), otherwise=StaleUser(user.pk))
    User.unique.move(write, user, values, taken)
    try:
        write.commit()
    except (AccountError, Refused) as error:
        refusal = write.refusal_of(user)
        if refusal is None:
            metrics.note_refused(error, User.unique.stored_name)
            raise
        user.adopt_if_so(refusal.stored, asked or values, error)
    else:
        user.assign(written)


def _of_new_address(user: User, values: dict[str, Any]) -> dict[str, Any]:
    """What changes with the address: it is not confirmed, and links to the old one are void."""
    if "email" not in User.unique.moves(user, values):
        return {}
    return {"email_confirmed_at": None, "confirmation_id": new_confirmation_id()}
