"""Every operation that makes, changes or deletes an account. Each is one transaction.

No operation reads whether a value is free: its write states the condition. Changes and deletions
may be repeated, even an hour later: if the account has the wanted values already, they succeed
(`dynamo.ensure`). In a caller's transaction they raise StaleUser instead.

If not stated otherwise, a change costs 1 request and 1 write unit per KB, and raises StaleUser if
the account changed or was deleted since `user` was read.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from accounts.attributes import keeps_older
from accounts.exceptions import StaleUser, UnknownUser
from accounts.models import NO_PENDING_CHANGE, AbstractAccount, account_model
from accounts.signals import account_deleting
from dynamo import DynamoError, Stale, Transaction, ensure, joined
from dynamo.auth import check_password
from dynamo.auth.usernames import clean_username
from dynamo.client.sending import read_item
from dynamo.client.writes import Refusal, Write
from dynamo.transactions import unwrapped
from dynamo.wire.types import Item


@sensitive_variables()
def register(
    *,
    email: str,
    password: str | None = None,
    password_hash: str | None = None,
    is_staff: bool = False,
    is_superuser: bool = False,
    email_confirmed: bool = False,
    request_id: str | None = None,
    sign_in: Mapping[str, Any] | None = None,
    is_password: Callable[[AbstractAccount, str], bool] | None = None,
    write: Transaction | None = None,
    **profile: Any,
) -> AbstractAccount:
    """Make an account and its guard items. `profile` are its username and further attributes.

    Without `password` and `password_hash` the account has no usable password.

    `request_id` names this registration (default: a new id). A repeated call with the same id and
    values returns the account that the first call made, as it is stored now. It raises
    AccountRequestReused if the account has another username, email address, password or other
    rights now. (A call whose reply was lost repeats its request by itself, and returns the changed
    account.) To recognize the account, `is_password` checks the password; a page passes one that
    counts the attempt.

    Unlike other items (`Model.create`), an account stores no digest of its request. The stored
    account is compared, because an import names a registration by its username and address. If the
    account has another one now, a repeated import must report this. The profile is not compared, so
    a repeated import accepts a file with other profiles, and changes no account.

    `sign_in` are attributes of the first session (`sessions.services.first_session`); an account
    that was made before does not get them.

    Costs 1 request and 8 write units, 6 without `ACCOUNTS_PREFIX_SEARCH`, as other writes of
    usernames and addresses do.

    Raises:
        ValidationError: a value breaks its rule (`accounts.attributes`).
        UsernameTaken, EmailTaken, ValueTaken: another account has the value. If several are taken,
            `dynamo.exceptions.Refused` with all of them.
        AccountRequestReused: the request id made an account with other values.
    """
    attributes = account_model().typed_attributes().items()
    missing = [name for name, one in attributes if not one.null and one.default is None]
    values = account_model().cleaned(**dict.fromkeys(missing) | profile | {"email": email})
    user = account_model()(
        password=password_hash,
        is_staff=is_staff,
        is_superuser=is_superuser,
        email_confirmed_at=datetime.now(UTC) if email_confirmed else None,
        **(sign_in or {}),
        **values,
    )
    if password_hash is None:
        user.set_password(password)

    @sensitive_variables()
    def is_same(stored: Item) -> bool:
        made = account_model().from_raw_data(stored)
        has_same_values = made.guard_keys_of(made.stored) == user.guard_keys_of(user.serialize())
        has_same_rights = (made.is_staff, made.is_superuser) == (is_staff, is_superuser)
        if not (has_same_values and has_same_rights):
            return False
        if password is None:
            return made.has_usable_password() == user.has_usable_password()
        if is_password:
            return is_password(made, password)
        # An outdated hash is not replaced, because the caller's copy of the account would not have
        # the new one.
        return check_password(password, made.password)

    if not request_id:
        return user.insert(write=write)
    return user.insert_once(request_id, is_same, write=write)


def change_username(
    user: AbstractAccount, username: str, *, write: Transaction | None = None
) -> None:
    """Give `user` another username and free the old one.

    Costs 1 request and 8 write units; 1 unit if only the spelling changes.

    Raises:
        ValidationError, UsernameTaken, StaleUser
    """
    ensure(user, username=another_username(user, username), write=write)


def another_username(user: AbstractAccount, typed: str) -> str:
    """The username to store if `user` takes another one. Raises ValidationError.

    The case of an older username can change even if new accounts may not choose it.
    """
    attribute = user.typed_attributes().get("username")
    if attribute is None:
        raise ValidationError(_("Accounts have no usernames here."), code="no_usernames")
    if keeps_older(user.username, typed.strip()):
        attribute = attribute.variant(rule=clean_username)
    return str(attribute.clean(typed))


def change_email(user: AbstractAccount, email: str, *, write: Transaction | None = None) -> None:
    """Give `user` another email address, which is not confirmed, and free the old one.

    An email change that waits for its link is dropped. The costs are those of `change_username`.

    Raises:
        ValidationError, EmailTaken, StaleUser
    """
    ensure(user, **user.cleaned(email=email), **NO_PENDING_CHANGE, write=write)


def edit_profile(
    user: AbstractAccount, *, write: Transaction | None = None, **typed: object
) -> None:
    """Change other attributes of the account, by name (`typed_attributes`).

    An empty text removes one.

    Raises:
        ValidationError: a value breaks its rule.
        StaleUser
        ValueTaken: another account has a value of an attribute that was declared unique.
    """
    ensure(user, **user.cleaned(**typed), write=write)


def deactivate(user: AbstractAccount, *, write: Transaction | None = None) -> None:
    """Prevent `user` from signing in and end all sessions. Its unique values remain reserved.

    An email change that waits for its link is dropped: see `AbstractAccount._implied`.
    """
    ensure(user, is_active=False, write=write)


def activate(user: AbstractAccount, *, write: Transaction | None = None) -> None:
    """Let the account sign in again."""
    ensure(user, is_active=True, write=write)


def grant_staff(
    user: AbstractAccount, *, superuser: bool = False, write: Transaction | None = None
) -> None:
    """Let `user` use the staff pages; as a superuser, also act there on other staff.

    Without `superuser`, an account that is a superuser remains one.
    """
    ensure(user, is_staff=True, is_superuser=superuser or user.is_superuser, write=write)


def revoke_staff(user: AbstractAccount, *, write: Transaction | None = None) -> None:
    """Take all rights of staff and superuser from `user`.

    This takes effect at once, because every page reads the rights from the stored account and every
    staff action states them as a condition of its transaction. The user remains signed in.
    """
    ensure(user, is_staff=False, is_superuser=False, write=write)


def delete(user: AbstractAccount, *, write: Transaction | None = None) -> None:
    """Delete `user`, free its unique values, and do the writes of receivers of `account_deleting`.

    Outside a transaction, the call succeeds if the account was deleted already. Costs 1 request and
    8 write units, and on this site 4 for the seller and the task that deletes the address book.

    Raises:
        StaleUser: the account changed since `user` was read, or what receivers delete changed since
            they read it. In a caller's transaction also if the account was deleted already.
    """
    user = unwrapped(user)
    parts = Transaction()
    try:
        account_deleting.send(account_model(), account=user.pk, write=parts)
    except DynamoError:
        # The items that belong to a deleted account are deleted as well.
        stored = read_item(user._address())
        if stored is not None and user.is_same_item(stored):
            raise
        parts = Transaction()

    def note(_stored: Item | None) -> None:
        user.sessions = None
        if whole.refusal_of(user) is None:
            parts.tell_committed()

    with joined(write) as whole:
        user.delete(missing_ok=write is None, write=whole)
        # If the account was deleted already, that transaction deleted them too.
        whole.add(*(_part_of(user, part) for part in parts))
        whole.on_commit(user, note)


def _part_of(user: AbstractAccount, part: Write) -> Write:
    """`part`, which joins the deletion of `user`.

    If the item that it deletes has changed or is gone, the transaction raises StaleUser.
    """

    def otherwise(refusal: Refusal) -> Exception | None:
        answer = replace(refusal, write=part).answer
        return StaleUser(user.pk) if answer is None or isinstance(answer, Stale) else answer

    return replace(part, part_of=user, otherwise=part.otherwise and otherwise)


def find_user(who: str) -> AbstractAccount:
    """The account that `who` names; see `AbstractAccount.named`.

    Raises:
        UnknownUser
    """
    try:
        return account_model().named(who)
    except account_model().DoesNotExist:
        raise UnknownUser(who) from None
