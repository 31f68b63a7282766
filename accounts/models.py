"""The table `users`: accounts, and the guard items that keep usernames and addresses unique.

    pk (S)                     what it is
    <UUID>                     a user: userName, email, fullName, phoneNumber, password (hash),
                               isActive, isStaff, isSuperuser, joinedAt, lastLoginAt,
                               emailConfirmedAt, confirmationId, businessName, businessAddress,
                               vatId, language, sessions, sessionEpoch, version; while a change of
                               address waits for its link: pendingEmail, pendingReservation,
                               pendingUntil (epoch seconds)
    userName#<comparable>      a guard: owner = the pk of the user with this name
    email#<comparable>         a guard: owner = the pk of the user with this address; while only
                               reserved for its change: reservation, expires

Every change raises `version` under the condition that it is still the one that was read. It starts
at random (`dynamo.models`), so no other account that gets the same `pk` later matches a stale
copy. Only `lastLoginAt`, `sessions` and a hash upgrade leave it alone, because no form depends on
them; these writes are made under the condition that the account is the same one (`joinedAt`).

`sessions` is a map: by its random id, for each sign-in that has not ended, browser, address,
signedInAt, seenAt and expiresAt (`accounts.sessions.services`). `sessionEpoch` is random and part
of the session auth hash: another one ends every session, also for code that reads only Django's.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pynamodb.attributes import (
    BooleanAttribute,
    MapAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path
from pynamodb.expressions.update import Action

from accounts.auth import DjangoUser, UserManager, UserOptions
from accounts.exceptions import StaleUser
from accounts.passwords import check_password, make_password
from accounts.values import as_uuid, comparable_email, comparable_username
from dynamo.exceptions import ConditionFailed
from dynamo.models import IntegerAttribute, Item, Model, follows, next_version
from dynamo.transactions import Otherwise, Refusal, Transaction, joined
from dynamo.unique import guards
from dynamo.unique.attributes import UniqueAttributes
from dynamo.unique.guards import Pending

#: When the account was registered, as stored. Set once; tells two accounts with one key apart.
_JOINED_AT = "joinedAt"


def new_confirmation_id() -> str:
    """The random id that a link to confirm an address contains (`accounts.emails.confirmation`)."""
    return uuid.uuid4().hex


def new_session_epoch() -> str:
    """A session epoch that no account has had."""
    return secrets.token_urlsafe(16)


#: What an account notes where no change of address waits for its link.
NO_PENDING_CHANGE = {"pending_email": None, "pending_reservation": None, "pending_until": None}


class User(DjangoUser, Model):
    """An account."""

    class Meta:
        table_name = "users"

    pk = UnicodeAttribute(hash_key=True)
    username = UnicodeAttribute(attr_name="userName")
    email = UnicodeAttribute()
    full_name = UnicodeAttribute(attr_name="fullName", null=True)
    phone_number = UnicodeAttribute(attr_name="phoneNumber", null=True)
    password = UnicodeAttribute()
    is_active = BooleanAttribute(attr_name="isActive", default=True)
    is_staff = BooleanAttribute(attr_name="isStaff", default=False)
    is_superuser = BooleanAttribute(attr_name="isSuperuser", default=False)
    date_joined = UTCDateTimeAttribute(attr_name="joinedAt", null=True)
    last_login = UTCDateTimeAttribute(attr_name="lastLoginAt", null=True)
    email_confirmed_at = UTCDateTimeAttribute(attr_name="emailConfirmedAt", null=True)
    confirmation_id = UnicodeAttribute(attr_name="confirmationId", null=True)
    business_name = UnicodeAttribute(attr_name="businessName", null=True)
    business_address = UnicodeAttribute(attr_name="businessAddress", null=True)
    vat_id = UnicodeAttribute(attr_name="vatId", null=True)
    language = UnicodeAttribute(null=True)
    sessions: Any = MapAttribute(null=True)  # type: ignore[no-untyped-call]  # PynamoDB's
    session_epoch = UnicodeAttribute(attr_name="sessionEpoch", null=True)
    pending_email = UnicodeAttribute(attr_name="pendingEmail", null=True)
    pending_reservation = UnicodeAttribute(attr_name="pendingReservation", null=True)
    pending_until = IntegerAttribute(attr_name="pendingUntil", null=True)
    version = IntegerAttribute(null=True)

    #: The id of the session that a page read the account for (`accounts.sessions.middleware`).
    session_id: str | None = None

    unique: UniqueAttributes[User] = UniqueAttributes(
        username=comparable_username,
        email=comparable_email,
        pending={"email": Pending("pending_email", "pending_reservation", "pending_until")},
    )

    _meta = UserOptions()
    _default_manager = UserManager()
    objects = UserManager()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, User) and self.pk == other.pk

    def __hash__(self) -> int:
        return hash(self.pk)

    @property
    def is_confirmed(self) -> bool:
        """Whether the address is known to be the account's owner's."""
        return bool(self.email_confirmed_at)

    @property
    def awaited_email(self) -> str | None:
        """The address that the account gets when its link is followed; none once it lapsed."""
        return self.pending_email if (self.pending_until or 0) > guards.now() else None

    @classmethod
    def find(cls, who: str) -> User:
        """The account that goes by `who`: with an @ an address, a UUID its key, else a username.

        Costs 2 requests and 2 read units; by key 1 and 1.

        Raises:
            DoesNotExist: nobody does.
        """
        if pk := as_uuid(who):
            return cls.get(pk)
        return cls.unique.get(cls.attribute_of(who), who)

    @staticmethod
    def attribute_of(who: str) -> str:
        """The unique attribute that `who`, which is no key, is a value of."""
        return "email" if "@" in who else "username"

    def unchanged(self) -> Condition:
        """The condition that the stored account is still the one that was read.

        On its owner's pages also that their session has not been ended since: what it was about
        to write is not written.
        """
        if "version" in self.stored:
            same: Condition = User.version == self.version
        else:
            same = User.pk.exists() & User.version.does_not_exist()
        return same & self.signed_in() if self.session_id else same

    def same_account(self) -> Condition:
        """The condition that the stored account is this one, whatever changed since it was read.

        It is false for an account that was registered under the same key after a deletion.
        """
        joined_at = Path([_JOINED_AT])
        if _JOINED_AT in self.stored:
            same: Condition = joined_at == self.stored[_JOINED_AT]
        else:
            same = User.pk.exists() & joined_at.does_not_exist()
        return same

    def is_same_account(self, stored: Item) -> bool:
        """Whether `stored` is this account; see `same_account`."""
        return stored.get(_JOINED_AT) == self.stored.get(_JOINED_AT)

    def signed_in(self) -> Condition:
        """The condition that the session that the account was read for has not been ended.

        Without a session, the condition that the account is the same one.
        """
        if not self.session_id:
            return self.same_account()
        alive: Condition = User.sessions[self.session_id].exists()
        return alive

    def raised(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """`values` and the version that they make."""
        return {**values, "version": next_version(self.version)}

    def assign(self, values: Mapping[str, Any]) -> None:
        """Take `values` over as stored, after a transaction that wrote them."""
        for name, value in values.items():
            setattr(self, name, value)
        self.stored = self.to_dynamodb_dict()

    def has(self, values: Mapping[str, Any]) -> bool:
        """Whether every attribute in `values` is so already."""
        return all(getattr(self, name) == value for name, value in values.items())

    def save(self, *, update_fields: Iterable[str] | None = None, **_options: Any) -> None:  # type: ignore[override]  # Django's, not PynamoDB's
        """Store the attributes that were set since the account was read, as Django's forms ask.

        Never the whole item; never a unique attribute (services move its guard with it). Costs
        1 request and 1 write unit, nothing where nothing changed.

        Raises:
            StaleUser: the account changed, or was deleted, since it was read.
            TypeError: a unique attribute was set.
        """
        values = {
            name: getattr(self, name)
            for name in self._set_since_read()
            if name != "sessions" and (update_fields is None or name in update_fields)
        }
        if unique := values.keys() & self.unique.normalise.keys():
            raise TypeError(f"{sorted(unique)} change by accounts.services, guards included.")
        if values:
            self.store(values)

    def _set_since_read(self) -> list[str]:
        now = self.to_dynamodb_dict()
        # Parsed, so that an attribute which an older version did not store has its default.
        read = User.from_raw_data(self.stored).to_dynamodb_dict()
        return [
            name
            for name, attribute in self.get_attributes().items()
            if now.get(attribute.attr_name) != read.get(attribute.attr_name)
        ]

    def store(
        self,
        values: Mapping[str, Any],
        *,
        is_so: Callable[[User], bool] | None = None,
        write: Transaction | None = None,
    ) -> None:
        """Give the stored account `values`, and take over what is stored then.

        It does not write guards; see `accounts.services.change`. Another password ends all sessions
        but the one it is changed in; a deactivation ends all. Both let a change of address that
        waits for its link lapse, because an intruder may have requested it. If the account has
        changed, it is a success if `is_so` holds for the stored one (by default: it has `values`).

        Costs 1 request and 1 write unit per KB.

        Raises:
            StaleUser: the account changed, or was deleted, since it was read, and it is not so.
            Unavailable: no answer in time; or a reply was lost, and the account changed twice
                since: `values` may have been written, and overwritten.
        """
        written = self.raised({**values, **self._ended_with(values)})

        def has_values(stored: User) -> bool:
            return stored.has(values)

        def otherwise(refusal: Refusal) -> Exception | None:
            return self._why_refused(refusal, is_so or has_values, written["version"])

        with joined(write) as write:
            self.join(write, self.set_or_remove(written), self.unchanged(), written, otherwise)

    def join(
        self,
        write: Transaction,
        actions: list[Action],
        condition: Condition,
        values: Mapping[str, Any],
        otherwise: Otherwise,
    ) -> None:
        """Let `write` update the stored account, and this one after the commit.

        `values` are what `actions` give this one, if the commit does not return the stored account.
        """
        write.update(self, actions, condition, otherwise=otherwise)
        write.on_commit(self, lambda stored: self._take_over(stored, values))

    def _take_over(self, stored: Item | None, values: Mapping[str, Any]) -> None:
        if stored is not None and self.is_same_account(stored):
            self.deserialize(stored)
        else:
            self.assign(values)

    def _why_refused(
        self, refusal: Refusal, is_so: Callable[[User], bool], written: int
    ) -> Exception | None:
        """The error of a refused write that was to make the version `written`; None if it is so.

        It is not so after a deletion, even if another account was registered under the same key.
        """
        stored = refusal.stored
        if stored is None or not self.is_same_account(stored):
            return StaleUser(self.pk, deleted=True)
        if is_so(User.from_raw_data(stored)):
            return None
        # A single write since then is another caller's. Of several, the first may be ours.
        if refusal.repeated and follows(_version_of(stored), written):
            return refusal.unknown()
        return StaleUser(self.pk)

    def _ended_with(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What a change to `values` leaves of what it ends: sessions, and a change that waits."""
        deactivates = values.get("is_active") is False
        if not (deactivates or "password" in values):
            return {}
        here = None if deactivates else self.session_id
        kept = {id_: each for id_, each in self.sessions_read() if id_ == here}
        lapsed = {"pending_until": guards.now()} if self.awaited_email else {}
        # Another password changes the session auth hash by itself.
        epoch = {"session_epoch": new_session_epoch()} if deactivates else {}
        return {"sessions": kept or None, **epoch, **lapsed}

    def sessions_read(self) -> list[tuple[str, dict[str, Any]]]:
        """The sessions as they were read, by their ids (`accounts.sessions.services`)."""
        return [] if self.sessions is None else list(self.sessions.as_dict().items())

    def stored_now(self) -> Item | None:
        """What is stored under this account's key; None where nothing is."""
        try:
            return User.get(self.pk).stored
        except User.DoesNotExist:
            return None

    def upgrade_hash(self, raw_password: str) -> None:
        """Store the same password under today's hasher, if the hash is still the one we read.

        Costs 1 request and 1 write unit; 1 read more where the hash is another by now. What is
        stored then stands, and is taken over where it is made of this password as well (a lost
        reply, two sign-ins at once): a session carries the hash, and would end with the old one.
        """
        fresh = make_password(raw_password)
        try:
            same_hash = User.password == self.password
            self.update([User.password.set(fresh)], same_hash & self.same_account())
        except ConditionFailed:
            stored = self.stored_now()
            if (
                stored
                and self.is_same_account(stored)
                and check_password(raw_password, User.from_raw_data(stored).password)
            ):
                self.deserialize(stored)


def _version_of(stored: Item) -> int:
    """The version of an account as stored; 0 if it has none yet."""
    return int(stored["version"]["N"]) if "version" in stored else 0
