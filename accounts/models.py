"""The table `users`: accounts, and the guard items that keep usernames and email addresses unique.

    pk (S)                     the item
    <UUID>                     a user: userName, email, fullName, phoneNumber, password (hash),
                               isActive, isStaff, isSuperuser, joinedAt, lastLoginAt,
                               emailConfirmedAt, confirmationId, businessName, businessAddress,
                               vatId, country, taxNumber, iban, bic, accountHolder, currency,
                               paymentDays, paymentTerms, timeZone, language, sessions,
                               sessionEpoch, version; while an email change waits for its link:
                               pendingEmail, pendingReservation, pendingUntil (epoch seconds)
    userName#<comparable>      a guard item: owner = the pk of the user with this username
    email#<comparable>         a guard item: owner = the pk of the user with this address;
                               with ACCOUNTS_PREFIX_SEARCH both are in an index by first letters

Every change increases `version` under the condition that it is still the one that was read. It
starts at random, so a stale copy never matches another account that later gets the same `pk`. Only
writes of `lastLoginAt`, `sessions` and an upgraded hash keep the version, because no form depends
on them. Their condition is that the account is the same one (`joinedAt`).

`sessions` maps the random id of each session to browser, address, signedInAt, seenAt and expiresAt
(`accounts.sessions.services`). `sessionEpoch` is random and part of the session auth hash: a new
epoch ends every session, also for code that reads only Django's session.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_lazy as _
from pynamodb.attributes import (
    BooleanAttribute,
    MapAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path
from pynamodb.expressions.update import Action

from accounts import attributes
from accounts.attributes import IntegerValue, PaymentDays, TextValue, Value
from accounts.auth import DjangoUser, UserManager, UserOptions
from accounts.exceptions import StaleUser, taken
from accounts.passwords import check_password, make_password
from accounts.usernames import clean_new
from accounts.values import (
    as_uuid,
    clean_new_email,
    comparable_email,
    comparable_username,
)
from dynamo import IntegerAttribute, Model, Transaction, Unique, joined
from dynamo.extending import Item, Otherwise, Refusal, Write
from web.kinds import COUNTRY, MultiLine

#: Never changes, so it distinguishes two accounts that had the same key.
_JOINED_AT = "joinedAt"


def new_confirmation_id() -> str:
    """A random id for links that concern one address of one account (`accounts.emails`)."""
    return uuid.uuid4().hex


def new_session_epoch() -> str:
    return secrets.token_urlsafe(16)


#: Values of an account without an email change that waits for its link.
NO_PENDING_CHANGE = {"pending_email": None, "pending_id": None, "pending_until": None}


class User(DjangoUser, Model):
    class Meta:
        table_name = "users"
        verbose_name = _("account")

    pk = UnicodeAttribute(hash_key=True)
    username = TextValue(
        _("Username"),
        replace(attributes.USERNAME, rule=clean_new),
        attr_name="userName",
        attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"},
    )
    email = TextValue(
        _("Email address"),
        replace(attributes.EMAIL, rule=clean_new_email),
        attrs={"autocomplete": "email"},
    )
    full_name = TextValue(
        _("Full name"),
        attributes.NAME,
        attr_name="fullName",
        null=True,
        attrs={"autocomplete": "name"},
    )
    phone_number = TextValue(
        _("Phone number"),
        attributes.PHONE_NUMBER,
        attr_name="phoneNumber",
        null=True,
        attrs={"autocomplete": "tel", "inputmode": "tel"},
        help_text=_("With the country code, such as +1 202-555-0124."),
    )
    language = TextValue(
        _("Language"),
        attributes.LANGUAGE,
        null=True,
        help_text=_("For these pages and for the mails that we send you."),
    )
    time_zone = TextValue(
        _("Time zone"),
        attributes.TIME_ZONE,
        attr_name="timeZone",
        null=True,
        help_text=_("It decides the date of an invoice."),
    )
    business_name = TextValue(
        _("Business name"),
        attributes.NAME,
        attr_name="businessName",
        null=True,
        attrs={"autocomplete": "organization"},
    )
    business_address = TextValue(
        _("Business address"),
        MultiLine(500, rows=3),
        attr_name="businessAddress",
        null=True,
        attrs={"autocomplete": "street-address"},
    )
    country = TextValue(
        _("Country"),
        COUNTRY,
        null=True,
        attrs={"autocomplete": "country"},
        help_text=_("Invoices are then checked for what the law of this country requires."),
    )
    vat_id = TextValue(
        _("VAT ID"),
        attributes.TAX_ID,
        attr_name="vatId",
        null=True,
        help_text=_("In Japan, the registration number: T and 13 digits."),
    )
    tax_number = TextValue(
        _("Tax number"),
        attributes.TAX_ID,
        attr_name="taxNumber",
        null=True,
        help_text=_("In France, the SIREN or SIRET number."),
    )
    account_holder = TextValue(
        _("Account holder"), attributes.NAME, attr_name="accountHolder", null=True
    )
    iban = TextValue(_("IBAN"), attributes.IBAN, null=True, attrs={"spellcheck": "false"})
    bic = TextValue(_("BIC"), attributes.BIC, null=True, attrs={"spellcheck": "false"})
    currency = TextValue(_("Currency"), attributes.CURRENCY, null=True)
    payment_days = IntegerValue(
        _("Days until payment"),
        PaymentDays(),
        attr_name="paymentDays",
        null=True,
        help_text=_("From the date of the invoice."),
    )
    payment_terms = TextValue(
        _("Payment terms"),
        MultiLine(500),
        attr_name="paymentTerms",
        null=True,
        help_text=_("Printed on each invoice."),
    )
    password = UnicodeAttribute()
    is_active = BooleanAttribute(attr_name="isActive", default=True)
    is_staff = BooleanAttribute(attr_name="isStaff", default=False)
    is_superuser = BooleanAttribute(attr_name="isSuperuser", default=False)
    date_joined = UTCDateTimeAttribute(attr_name="joinedAt", null=True)
    last_login = UTCDateTimeAttribute(attr_name="lastLoginAt", null=True)
    email_confirmed_at = UTCDateTimeAttribute(attr_name="emailConfirmedAt", null=True)
    confirmation_id = UnicodeAttribute(attr_name="confirmationId", null=True)
    sessions: Any = MapAttribute(null=True)  # type: ignore[no-untyped-call]  # PynamoDB's
    session_epoch = UnicodeAttribute(attr_name="sessionEpoch", null=True)
    pending_email = UnicodeAttribute(attr_name="pendingEmail", null=True)
    # Version 0.1 named it so; its links are valid.
    pending_id = UnicodeAttribute(attr_name="pendingReservation", null=True)
    pending_until = IntegerAttribute(attr_name="pendingUntil", null=True)
    version = IntegerAttribute(null=True)

    #: On pages, the id of the visitor's session (`accounts.sessions.middleware`). Not stored.
    session_id: str | None = None

    unique_username = Unique(
        "username", normalize=comparable_username, searchable=settings.ACCOUNTS_PREFIX_SEARCH
    )
    unique_email = Unique(
        "email", normalize=comparable_email, searchable=settings.ACCOUNTS_PREFIX_SEARCH
    )

    _meta = UserOptions()
    _default_manager = UserManager()
    objects = UserManager()

    @property
    def is_confirmed(self) -> bool:
        """Whether the owner has confirmed the email address."""
        return bool(self.email_confirmed_at)

    @property
    def awaited_email(self) -> str | None:
        """The address that the account gets when its link is followed. None after it lapsed."""
        return self.pending_email if (self.pending_until or 0) > time.time() else None

    @classmethod
    def named(cls, who: str) -> User:
        """The account that `who` names: an email address (with @), a primary key or a username.

        Costs 2 requests and 2 read units; by primary key 1 and 1.

        Raises:
            DoesNotExist
        """
        if pk := as_uuid(who):
            return cls.get(pk)
        return cls.find(**{cls.attribute_of(who): who})

    @staticmethod
    def attribute_of(who: str) -> str:
        """The unique attribute that `who`, which is not a primary key, is a value of."""
        return "email" if "@" in who else "username"

    def unchanged(self) -> Condition:
        """The condition that the stored account is still the one that was read.

        On pages also that the visitor's session has not ended since.
        """
        same = super().unchanged()
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

    def is_same_item(self, stored: Item) -> bool:
        """Whether `stored` is this account; see `same_account`."""
        return stored.get(_JOINED_AT) == self.stored.get(_JOINED_AT)

    def signed_in(self) -> Condition:
        """The condition that the visitor's session has not ended; without one, `same_account`."""
        if not self.session_id:
            return self.same_account()
        alive: Condition = User.sessions[self.session_id].exists()
        return alive

    def has(self, values: Mapping[str, Any]) -> bool:
        """Whether the account has all of `values` already."""
        return all(getattr(self, name) == value for name, value in values.items())

    def change(
        self,
        *,
        is_so: Callable[[User], bool] | None = None,
        write: Transaction | None = None,
        **values: Any,
    ) -> None:
        """Give the account `values`, by attribute name.

        Another address is not confirmed. Another password ends all other sessions; a deactivation
        ends all. Both drop an email change that waits for its link, because an intruder may have
        requested it. If the account has changed since it was read, it is a success if `is_so` holds
        for the stored one (by default: it has `values`).

        Costs 1 request and 1 write unit per KB, 8 units if a unique value changes.

        Raises:
            StaleUser: the account changed or was deleted since it was read, and it is not so.
            UsernameTaken, EmailTaken: another account has the value.
            Unavailable: no answer in time; or a reply was lost and the account changed twice
                since: `values` may have been written and overwritten.
        """
        wire = self._changed(values)
        if not wire:
            return
        asked = values
        if "email" in wire and self.moves_guard({"email": wire["email"]}):
            # Another address is not confirmed, and links to the old one are void.
            unconfirmed = {"email_confirmed_at": None, "confirmation_id": new_confirmation_id()}
            values = unconfirmed | values
        so = is_so or (lambda stored: stored.has(asked))
        # Also if this copy does not have what ends: sessions begin without another version.
        ended = self._wire_of(self._ended_with(values), removals=True)
        written = self._changed(values) | ended
        self._update(
            written, {}, None, is_so=lambda stored: so(User.from_raw_data(stored)), write=write
        )

    def save(self, *, update_fields: Iterable[str] | None = None, **options: Any) -> None:  # type: ignore[override]
        """As `Model.save`; never stores the sessions, which other requests begin and end."""
        names = self.get_attributes().keys() if update_fields is None else set(update_fields)
        super().save(update_fields=names - {"sessions"}, **options)

    def join(
        self,
        write: Transaction,
        actions: list[Action],
        condition: Condition,
        values: Mapping[str, Any],
        otherwise: Otherwise,
    ) -> None:
        """Let `write` update the stored account, and this object after the commit.

        This object gets the stored account, or `values` if the commit does not return it.
        """
        write.add(Write.update(self, actions, condition, otherwise=otherwise))
        write.on_commit(self, lambda stored: self._take_over(stored, values))

    def _take_over(self, stored: Item | None, values: Mapping[str, Any]) -> None:
        if stored is not None and self.is_same_item(stored):
            self.deserialize(stored)
            return
        for name, value in values.items():
            setattr(self, name, value)
        self.stored = self.to_dynamodb_dict()

    def _stale(self, *, is_deleted: bool = False) -> Exception:
        return StaleUser(self.pk, deleted=is_deleted)

    def _taken(self, names: tuple[str, ...], values: Mapping[str, Any]) -> Exception:
        [name] = names
        return taken(name, values[name])

    def _ended_with(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes that a change to `values` also changes: see `store`."""
        deactivates = values.get("is_active") is False
        if not (deactivates or "password" in values):
            return {}
        here = None if deactivates else self.session_id
        kept = {id_: each for id_, each in self.sessions_read().items() if id_ == here}
        # Another password changes the session auth hash by itself.
        epoch = {"session_epoch": new_session_epoch()} if deactivates else {}
        dropped = NO_PENDING_CHANGE if self.pending_email else {}
        return {"sessions": kept or None, **epoch, **dropped}

    def sessions_read(self) -> dict[str, dict[str, Any]]:
        """The entries of the sessions as they were read, by id."""
        return {} if self.sessions is None else self.sessions.as_dict()

    def upgrade_hash(self, raw_password: str, *, write: Transaction | None = None) -> None:
        """Store the same password with the current hasher, if the hash is still the one we read.

        If the hash changed, but matches this password (a lost reply, two sign-ins at once), it is a
        success, and this object gets the stored account. Otherwise a session would carry the
        outdated hash and end. Costs 1 request and 1 write unit.

        Raises:
            StaleUser: the account has another password now, or was deleted.
        """
        upgraded = make_password(raw_password)

        def otherwise(refusal: Refusal) -> Exception | None:
            stored = refusal.stored
            if stored is None or not self.is_same_item(stored):
                return StaleUser(self.pk, deleted=True)
            same = check_password(raw_password, User.from_raw_data(stored).password)
            return None if same else StaleUser(self.pk)

        values = {"password": upgraded}
        condition = (User.password == self.password) & self.same_account()
        with joined(write) as write:
            self.join(write, self.set_or_remove(values), condition, values, otherwise)


#: The attributes that people type, by name, in the order of the profile.
VALUES: dict[str, Value] = {
    name: each for name, each in vars(User).items() if isinstance(each, Value)
}
