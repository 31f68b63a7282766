"""Passwords, sessions and sign-ins of a user, as in Django's `base_user`.

`session_epoch` is random and part of the session auth hash: a new epoch ends every session.
"""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Self

from asgiref.sync import sync_to_async
from django.contrib.auth.base_user import AbstractBaseUser as DjangosBaseUser
from django.contrib.auth.password_validation import password_changed
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.utils.crypto import salted_hmac
from django.views.decorators.debug import sensitive_variables
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from dynamo.auth.passwords import check_password, make_password, verify_password
from dynamo.client.writes import Otherwise, Refusal, Write
from dynamo.model.base import Model
from dynamo.transactions import Transaction, joined
from dynamo.wire.attributes import DateTimeAttribute, TextAttribute
from dynamo.wire.types import Item, Typed

# Typed as Any because its methods are annotated for models of `django.db`.
_user: Any = DjangosBaseUser


def new_session_epoch() -> str:
    """A random value for `session_epoch`."""
    return secrets.token_urlsafe(16)


class AbstractBaseUser(Model):
    """A user with a password and sessions. `AbstractUser` declares the attributes."""

    if TYPE_CHECKING:
        password = TextAttribute()
        last_login = DateTimeAttribute(null=True)
        session_epoch = TextAttribute(null=True)

    _alters_data = (
        f"{Model._alters_data} set_password set_unusable_password check_password upgrade_hash "
        "end_sessions record_sign_in join"
    )

    #: Whether `record_sign_in` is called after each sign-in.
    records_sign_ins: ClassVar[bool] = True

    #: The password that was set on this object, and its hash, until it is stored.
    _typed: tuple[str, str] | None = None

    # Passwords ------------------------------------------------------------------------------------

    @sensitive_variables()
    def set_password(self, raw_password: str | None) -> None:
        """Hash `raw_password` into `password`; `save` stores it.

        When it is stored, `password_changed` of the password validators is called, as in Django.
        With None, the user has no usable password.

        Raises:
            Busy: too many hashes at once in this process.
        """
        self.password = make_password(raw_password)
        self._typed = None if raw_password is None else (raw_password, self.password)

    def set_unusable_password(self) -> None:
        self.set_password(None)

    has_usable_password = _user.has_usable_password

    @sensitive_variables()
    def check_password(self, raw_password: str) -> bool:
        """Whether this is the password. If it is and the hash is outdated, upgrade the hash.

        Sends no request, unless the hash is outdated: then it costs 1 request and 1 write unit.

        Raises:
            Busy: too many hashes at once in this process; the password was not checked.
        """
        is_correct, is_outdated = verify_password(raw_password, self.password)
        if is_correct and is_outdated and self.stored:
            with suppress(self.Stale):
                self.upgrade_hash(raw_password)
        return is_correct

    @sensitive_variables()
    async def acheck_password(self, raw_password: str) -> bool:
        return bool(await sync_to_async(self.check_password)(raw_password))

    @sensitive_variables()
    def upgrade_hash(self, raw_password: str, *, write: Transaction | None = None) -> None:
        """Store the same password with the current hasher, if the hash is still the one we read.

        If the hash changed, but matches this password (a lost reply, two sign-ins at once), the
        call succeeds, and this object gets the stored user. Otherwise, the session would have the
        outdated hash and end. Costs 1 request and 1 write unit.

        Raises:
            Stale: the user has another password now, or was deleted.
        """
        upgraded = make_password(raw_password)

        @sensitive_variables()
        def otherwise(refusal: Refusal) -> Exception | None:
            stored = refusal.stored
            if stored is None or not self.is_same_item(stored):
                return self._stale(is_deleted=True)
            same = check_password(raw_password, type(self).from_raw_data(stored).password)
            return None if same else self._stale()

        values = {"password": upgraded}
        condition = (type(self).password == self.password) & self.same_account()
        self.join(write, self.set_or_remove(values), condition, values, otherwise)

    # Sessions -------------------------------------------------------------------------------------

    get_session_auth_hash = _user.get_session_auth_hash
    get_session_auth_fallback_hash = _user.get_session_auth_fallback_hash

    def _get_session_auth_hash(self, secret: str | bytes | None = None) -> str:
        """The value that is stored in each session. It changes with the password and the epoch."""
        salt = f"{self._meta.label}.get_session_auth_hash"
        value = f"{self.password} {self.session_epoch}"
        return salted_hmac(salt, value, secret=secret, algorithm="sha256").hexdigest()

    def end_sessions(self, *, write: Transaction | None = None) -> None:
        """End every session of the user. Has the costs and errors of `change`."""
        self.change(session_epoch=new_session_epoch(), write=write)

    def record_sign_in(self, *, write: Transaction | None = None) -> None:
        """Store the time of a sign-in; called after each one (`user_logged_in`).

        The version does not change, because no form depends on the time. Costs 1 request and 1
        write unit per KB.

        Raises:
            Stale: the user was deleted.
        """
        now = self.later_sign_in()

        def otherwise(refusal: Refusal) -> Exception | None:
            # If the user exists, the condition failed because a later sign-in is recorded.
            is_same = refusal.stored is not None and self.is_same_item(refusal.stored)
            return None if is_same else self._stale(is_deleted=True)

        values = {"last_login": now}
        condition = self.same_account() & self.no_later_sign_in(now)
        self.join(write, self.set_or_remove(values), condition, values, otherwise)

    def later_sign_in(self) -> datetime:
        """The current time, or just after the last sign-in, if a fast clock recorded that."""
        now = datetime.now(UTC)
        last: datetime | None = self.last_login
        return now if last is None else max(now, last + timedelta(microseconds=1))

    def no_later_sign_in(self, than: datetime) -> Condition:
        last_login = type(self).last_login
        return last_login.does_not_exist() | (last_login < than)

    def _note_stored(self, stored: Item) -> None:
        super()._note_stored(stored)
        if self._typed:
            self._note_password(stored.get("password"))

    @sensitive_variables()
    def _note_password(self, stored: Typed | None) -> None:
        """After the password was stored, forget it and call `password_changed`."""
        typed, hashed = self._typed or ("", "")
        is_current = self.password == hashed
        if is_current and stored != {"S": hashed}:
            return
        self._typed = None
        if is_current:
            password_changed(typed, self)  # type: ignore[arg-type]  # not a user of django.db

    # Writing --------------------------------------------------------------------------------------

    def same_account(self) -> Condition:
        """The condition that the stored user is this one, even if it changed since it was read."""
        return self._is_same_item_condition()

    def _implied(self, values: Mapping[str, object]) -> dict[str, object]:
        """A deactivation ends every session, also if the user is activated again."""
        implied = super()._implied(values)
        if values.get("is_active") is False:
            implied["session_epoch"] = new_session_epoch()
        return implied

    def join(
        self,
        write: Transaction | None,
        actions: list[Action],
        condition: Condition,
        values: Mapping[str, object],
        otherwise: Otherwise,
    ) -> None:
        """Update the stored user without changing its version, and then update this object.

        This object gets the values of the stored user, or `values` if the commit does not return
        it.
        """
        with joined(write) as write:
            write.add(Write.update(self, actions, condition, otherwise=otherwise))
            write.on_commit(self, lambda stored: self._take_over(stored, values))

    def _take_over(self, stored: Item | None, values: Mapping[str, object]) -> None:
        if stored is None or not self.is_same_item(stored):
            now = {**self.stored, **self._wire_of(values, removals=True)}
            stored = {name: typed for name, typed in now.items() if typed is not None}
        self._become(stored, self.stored, values)

    def insert_for(
        self, request_id: str, asked: Mapping[str, object], write: Transaction | None = None
    ) -> Self:
        """See `UserManager.create_user`."""
        if not self._has_default_key():
            raise TypeError("A user with a request id has the default key: do not declare pk.")
        # The password is left out of the digest, because its hash is salted: see `_has_digest`.
        without = {name: value for name, value in asked.items() if name != "password"}
        return super().insert_for(request_id, without, write)

    @sensitive_variables()
    def _has_digest(self, digest: Typed, stored: Item) -> bool:
        """Whether the digest and the typed password match.

        The digest does not cover the password.
        """
        if not super()._has_digest(digest, stored):
            return False
        if self._typed is None:
            return True
        return check_password(self._typed[0], self.from_raw_data(stored).password)


@receiver(user_logged_in)
def _record_sign_in(user: object, **_signal: object) -> None:
    if isinstance(user, AbstractBaseUser) and user.records_sign_ins:
        user.record_sign_in()
