"""Every way in which an account comes, changes and goes; each is one transaction, or nothing.

Nothing is read to learn whether a value is free: the write states the condition, and the answer
decides. Changes and deletions are idempotent by value: what already is so is a success. So an
operation whose reply was lost recognises its own work, also after an hour.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from django.views.decorators.debug import sensitive_variables

from accounts import metrics, usernames
from accounts import values as rules
from accounts.exceptions import AccountError, RequestIdUsed, StaleUser, UnknownUser, taken
from accounts.models import NO_PENDING_CHANGE, User, new_confirmation_id, new_session_epoch
from accounts.passwords import check_password, make_password
from accounts.values import as_uuid
from dynamo.exceptions import Refused
from dynamo.models import Item, new_version
from dynamo.transactions import Refusal, Transaction, joined

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
    write: Transaction | None = None,
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

    @sensitive_variables()
    def otherwise(refusal: Refusal) -> Exception | None:
        same = refusal.stored and _is_same_registration(refusal.stored, user, password)
        return None if same else RequestIdUsed(request_id)

    def made(stored: Item | None) -> None:
        if stored is None:
            user.stored = user.to_dynamodb_dict()
        else:
            user.deserialize(stored)

    with _counting_the_taken(), joined(write) as write:
        write.put(user, User.pk.does_not_exist(), otherwise=otherwise)
        User.unique.claim(write, user, taken)
        write.on_commit(user, made)
    return user


@contextmanager
def _counting_the_taken() -> Iterator[None]:
    """Count the values that a refused transaction names as taken."""
    try:
        yield
    except (AccountError, Refused) as error:
        metrics.note_refused(error, User.unique.stored_name)
        raise


def account_key(request_id: str) -> str:
    """The primary key that the registration named `request_id` gives its account."""
    return str(uuid.uuid5(REQUEST_IDS, request_id))


@sensitive_variables()
def _is_same_registration(stored: Item, asked: User, password: str | None) -> bool:
    """Whether the stored account has the contents of the registration `asked`."""
    made = User.from_raw_data(stored)
    same_values = User.unique.keys_of(made) == User.unique.keys_of(asked)
    same_password = (
        check_password(password, made.password)
        if password is not None
        else made.has_usable_password() == asked.has_usable_password()
    )
    same_rights = made.has({"is_staff": asked.is_staff, "is_superuser": asked.is_superuser})
    return same_values and same_password and same_rights


def change_username(user: User, username: str, *, write: Transaction | None = None) -> None:
    """Give `user` another name and free the old one, in one transaction.

    Costs 1 request and 6 write units; 1 unit where only the spelling changes (no guard is
    touched); nothing where it is the name already.

    Raises:
        ValidationError: no username.
        UsernameTaken: another account has it.
        StaleUser: the account changed, or was deleted, since `user` was read.
    """
    values = cleaned(username=username)
    usernames.check_change(user.username, values["username"])
    change(user, values, write=write)


def change_email(user: User, email: str, *, write: Transaction | None = None) -> None:
    """Give `user` another address and free the old one, in one transaction.

    Costs as `change_username`. The new address is not confirmed. A change that waits for its
    link is dropped, and its reservation with it.

    Raises:
        ValidationError: no email address.
        EmailTaken: another account has it.
        StaleUser: the account changed, or was deleted, since `user` was read.
    """
    change(user, cleaned(email=email) | NO_PENDING_CHANGE, write=write)


def edit_profile(user: User, *, write: Transaction | None = None, **texts: str) -> None:
    """Change what else an account says of its person, by attribute name; empty removes.

    Names: full_name, phone_number, business_name, business_address, vat_id, language. Costs
    1 request and 1 write unit, nothing where all is so already.

    Raises:
        ValidationError: a value breaks its rule.
        ValueTaken: another account holds a value that was declared unique.
        StaleUser: the account changed, or was deleted, since `user` was read.
    """
    change(user, cleaned(**texts), write=write)


@sensitive_variables()
def change_password(user: User, password: str, *, write: Transaction | None = None) -> None:
    """Give `user` another password, which ends the account's other sessions.

    And a change of address that waits for its link: see `User.store`. Costs 1 request and 1 write
    unit.

    Raises:
        StaleUser: the account changed, or was deleted, since `user` was read.
    """
    change(user, {"password": make_password(password)}, write=write)


def deactivate(user: User, *, write: Transaction | None = None) -> None:
    """Prevent `user` from signing in, and end all sessions. Its unique values stay taken.

    A change of address that waits for its link ends as well: see `User.store`. Costs 1 request
    and 1 write unit, nothing if already so.

    Raises:
        StaleUser: the account changed or was deleted since `user` was read.
    """
    change(user, {"is_active": False}, write=write)


def activate(user: User, *, write: Transaction | None = None) -> None:
    """Let the account sign in again. Costs and raises as `deactivate`."""
    change(user, {"is_active": True}, write=write)


def grant_staff(user: User, *, superuser: bool = False, write: Transaction | None = None) -> None:
    """Let `user` use the staff pages; as a superuser, also act there on other staff.

    Without `superuser`, an account that is a superuser stays one. Costs 1 request and 1 write unit,
    nothing if already so.

    Raises:
        StaleUser: the account changed or was deleted since `user` was read.
    """
    values = {"is_staff": True} | ({"is_superuser": True} if superuser else {})
    change(user, values, write=write)


def revoke_staff(user: User, *, write: Transaction | None = None) -> None:
    """Take all rights of staff and superuser from `user`.

    This takes effect at once: every page reads the rights from the stored account, and every staff
    action states them as a condition of its transaction. The account stays signed in, with its own
    pages. Costs and raises as `grant_staff`.
    """
    change(user, {"is_staff": False, "is_superuser": False}, write=write)


def delete(user: User, *, write: Transaction | None = None) -> None:
    """Delete `user` and free its unique values, in one transaction.

    An account that is gone already is a success. Costs 1 request and 6 write units; 2 units more
    where a change of address waits for its link.

    Raises:
        StaleUser: the account changed since `user` was read.
    """

    def otherwise(refusal: Refusal) -> Exception | None:
        return None if refusal.stored is None else StaleUser(user.pk)

    with joined(write) as write:
        write.delete(user, user.unchanged(), otherwise=otherwise)
        User.unique.free(write, user)
        write.on_commit(user, lambda _stored: setattr(user, "sessions", None))


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


def change(
    user: User,
    values: dict[str, Any],
    *,
    is_so: Callable[[User], bool] | None = None,
    write: Transaction | None = None,
) -> None:
    """Give `user` the attributes `values`, and let its guards follow those that are unique.

    If the account changed meanwhile, it is a success if `is_so` holds for the stored one. By
    default it must have `values`.

    Raises:
        StaleUser: the account changed or was deleted since `user` was read, and it is not so.
        UsernameTaken, EmailTaken, ValueTaken: another account has the value, or has reserved it.
    """
    if user.has(values):
        return

    def has_values(stored: User) -> bool:
        return stored.has(values)

    with _counting_the_taken(), joined(write) as write:
        written = _of_new_address(user, values) | values
        user.store(written, is_so=is_so or has_values, write=write)
        User.unique.move(write, user, values, taken)


def _of_new_address(user: User, values: dict[str, Any]) -> dict[str, Any]:
    """What changes with the address: it is not confirmed, and links to the old one are void."""
    if "email" not in User.unique.moves(user, values):
        return {}
    return {"email_confirmed_at": None, "confirmation_id": new_confirmation_id()}


def find_evenly(who: str) -> User | None:
    """The account that goes by a username or an address; None where nobody does.

    A primary key finds nobody: it is no secret and no name. Costs 2 requests and 2 read units,
    the same whether or not there is one.
    """
    try:
        if as_uuid(who):
            raise User.DoesNotExist
        return User.find(who)
    except User.DoesNotExist:
        _read_in_vain()
        return None


def _read_in_vain() -> None:
    """Read once more, as for an account that exists."""
    try:
        User.get("nobody")
    except User.DoesNotExist:
        return
