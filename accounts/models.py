"""The table `users`: accounts, and the guard items that keep usernames and email addresses unique.

    pk (S)                     the item
    <UUID>                     a user: userName, email, fullName, phoneNumber, password (hash),
                               isActive, isStaff, isSuperuser, joinedAt, lastLoginAt,
                               emailConfirmedAt, confirmationId, timeZone, language, sessions,
                               sessionEpoch, version; while an email change waits for its link:
                               pendingEmail, pendingId, pendingUntil (epoch seconds)
    userName#<comparable>      a guard item: owner = the pk of the user with this username
    email#<comparable>         a guard item: owner = the pk of the user with this address;
                               with ACCOUNTS_PREFIX_SEARCH both are in an index by first letters

Every change increases `version` under the condition that it is still the one that was read. It
starts at random, so a stale copy never matches another account that later gets the same `pk`. Only
writes of `lastLoginAt`, `sessions` and an upgraded hash keep the version, because no form depends
on them. Their condition is that `joinedAt` is the same.

`sessions` maps the random id of each session to browser, address, signedInAt, seenAt and expiresAt
(`accounts.sessions.services`). `sessionEpoch` is random and part of the session auth hash: a new
epoch ends every session, also for code that reads only Django's session.
"""

import time
import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar, cast

from django import forms
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.utils.translation import gettext_lazy as _
from pynamodb.attributes import MapAttribute, UTCDateTimeAttribute
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path

from accounts.attributes import Email, clean_phone_number, is_time_zone, time_zone_choices
from accounts.exceptions import AccountRequestReused, StaleUser, ValueTaken, taken
from accounts.signals import value_taken
from dynamo import IntegerAttribute, TextAttribute, Unique
from dynamo.auth import AbstractUser
from dynamo.auth.addresses import clean_new_email, comparable_email
from dynamo.auth.usernames import (
    INVALID_USERNAME,
    USERNAME_MAX_LENGTH,
    clean_new_username,
    comparable_username,
)
from dynamo.client.plain import per_class
from dynamo.forms import INVALID
from dynamo.inputs import Choice, InputAttribute, SingleLine
from dynamo.wire.attributes import FormAttribute
from dynamo.wire.fields import AttributeField
from dynamo.wire.types import Item
from dynamo.wire.values import typed_value

#: This attribute never changes, so it tells apart two accounts that had the same key.
_JOINED_AT = "joinedAt"


def new_confirmation_id() -> str:
    """A random id for links that concern one address of one account (`accounts.emails`)."""
    return uuid.uuid4().hex


#: The phone number is asked for if the extra `phone` is installed, which parses it.
_PHONE = ("phone_number",) if find_spec("phonenumbers") else ()

#: Values of an account without an email change that waits for its link.
NO_PENDING_CHANGE: dict[str, None] = dict.fromkeys(("pending_email", "pending_id", "pending_until"))


class AbstractAccount(AbstractUser):
    """The base of your own user model:

        class Member(AbstractAccount):         # AUTH_USER_MODEL = "members.Member"
            class Meta:
                table_name = "members"

            card = TextAttribute(_("Card"), max_length=20)
            club = TextAttribute(_("Club"))

            unique_card = Unique("club", "card")

            sign_up_fields = ("username", "email", "club", "card")

    A page asks for a further attribute if its fields name it. An operation gets the attribute by
    name, as in `register(…, club="chess")`.
    """

    #: The attributes of the sign-up page, except the password, and those of the profile.
    sign_up_fields: ClassVar[tuple[str, ...]] = ("username", "email", "full_name", *_PHONE)
    profile_fields: ClassVar[tuple[str, ...]] = ("full_name", *_PHONE, "language", "time_zone")

    username = SingleLine(
        _("Username"),
        max_length=USERNAME_MAX_LENGTH,
        rule=clean_new_username,
        unprintable=INVALID_USERNAME,
        attr_name="userName",
        attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"},
    )
    email = Email(_("Email address"), rule=clean_new_email, attrs={"autocomplete": "email"})
    full_name = SingleLine(
        _("Full name"), max_length=150, null=True, attrs={"autocomplete": "name"}
    )
    phone_number = SingleLine(
        _("Phone number"),
        max_length=40,
        rule=clean_phone_number,
        null=True,
        attrs={"autocomplete": "tel", "inputmode": "tel"},
        help_text=_("With the country code, such as +1 202-555-0124."),
    )
    language = Choice(
        _("Language"),
        is_known=lambda code: code in dict(settings.LANGUAGES),
        offered=lambda: [("", _("Use the language of the browser")), *settings.LANGUAGES],
        message=_("This site is not available in this language."),
        language="{}",
        null=True,
        help_text=_("For these pages and for the mails that we send you."),
    )
    #: The names of time zones are in English in every language.
    time_zone = Choice(
        _("Time zone"),
        is_known=is_time_zone,
        offered=time_zone_choices,
        language="en",
        null=True,
        help_text=_("Dates and times on these pages are those of this zone."),
    )
    email_confirmed_at = UTCDateTimeAttribute(attr_name="emailConfirmedAt", null=True)
    confirmation_id = TextAttribute(attr_name="confirmationId", default_for_new=new_confirmation_id)
    sessions: Any = MapAttribute(null=True)
    pending_email = TextAttribute(attr_name="pendingEmail", null=True)
    pending_id = TextAttribute(attr_name="pendingId", null=True)
    pending_until = IntegerAttribute(attr_name="pendingUntil", null=True)

    # `accounts.sessions.visitor` records the sign-in, together with the session.
    records_sign_ins = False

    #: On pages, the id of the visitor's session (`accounts.sessions.middleware`). Not stored.
    session_id: str | None = None

    unique_username = Unique(
        "username", normalize=comparable_username, searchable=settings.ACCOUNTS_PREFIX_SEARCH
    )
    unique_email = Unique(
        "email", normalize=comparable_email, searchable=settings.ACCOUNTS_PREFIX_SEARCH
    )

    def __init_subclass__(cls, **options: object) -> None:
        if getattr(cls, "username", None) is None:
            cls.sign_up_fields = tuple(name for name in cls.sign_up_fields if name != "username")
        # All account models share these errors. Otherwise the library would create its own for each
        # model.
        cls.Stale, cls.Taken, cls.RequestIdReused = StaleUser, ValueTaken, AccountRequestReused  # type: ignore[assignment]  # not of the library's tree
        super().__init_subclass__(**options)

    @property
    def is_confirmed(self) -> bool:
        """Whether the owner has confirmed the email address."""
        return bool(self.email_confirmed_at)

    @property
    def awaited_email(self) -> str | None:
        """The address that the account gets when its link is followed.

        None after the link expired.
        """
        return self.pending_email if (self.pending_until or 0) > time.time() else None

    @classmethod
    @per_class
    def typed_attributes(cls) -> dict[str, Any]:
        """The attributes that people type, by name."""
        asked = cls.sign_up_and_profile_fields()
        return {
            name: attribute
            for name, attribute in cls.get_attributes().items()
            if isinstance(attribute, InputAttribute)
            or (isinstance(attribute, FormAttribute) and name in asked)
        }

    @classmethod
    def sign_up_and_profile_fields(cls) -> tuple[str, ...]:
        return (*dict.fromkeys((*cls.sign_up_fields, *cls.profile_fields)),)

    @classmethod
    def own_fields(cls) -> dict[str, AttributeField]:
        """The attributes that the project's model adds, as fields."""
        common = {"pk", *AbstractAccount.get_attributes()}
        return {name: one for name, one in cls._meta.by_name.items() if name not in common}

    @classmethod
    def uniques(cls) -> list[tuple[str, ...]]:
        """The names of the attributes of each `Unique`."""
        return [unique.names for unique in cls._unique_keys]

    @classmethod
    def form_field(cls, name: str, **changes: Any) -> forms.Field:
        """The form field of an attribute; `changes` as in `InputAttribute.variant`."""
        attribute = cls.get_attributes()[name]
        if isinstance(attribute, InputAttribute):
            return attribute.form_field(**changes)
        field = cast(forms.Field, cls._meta.get_field(name).formfield())
        # Only the forms of a model check them themselves.
        field.validators += [*getattr(attribute, "validators", []), partial(_storable, attribute)]
        return field

    def clean(self) -> None:
        """Do nothing, because attributes clean their values.

        Django's method would change the spelling.
        """

    @classmethod
    def cleaned(cls, **typed: object) -> dict[str, Any]:
        """The values as stored, by attribute name. Raises ValidationError."""
        values = {}
        attributes = cls.typed_attributes()
        for name, value in typed.items():
            attribute = attributes[name]
            if isinstance(attribute, InputAttribute):
                values[name] = attribute.clean(value)
            else:
                cleaned = cls.form_field(name).clean(value)
                values[name] = None if cleaned in (None, "", [], {}) else cleaned
        return values

    def unchanged(self) -> Condition:
        """The condition that the stored account is still the one that was read.

        On pages, the condition also requires that the visitor's session has not ended.
        """
        same = super().unchanged()
        return same & self.signed_in() if self.session_id else same

    def same_account(self) -> Condition:
        """The condition that the stored account is this one, even if it changed since it was read.

        It is false for an account that was registered under the same key after a deletion.
        """
        joined_at = Path([_JOINED_AT])
        if _JOINED_AT in self.stored:
            same: Condition = joined_at == self.stored[_JOINED_AT]
        else:
            same = self.__class__.pk.exists() & joined_at.does_not_exist()
        return same

    def is_same_item(self, stored: Item) -> bool:
        """Whether `stored` is this account; see `same_account`."""
        return stored.get(_JOINED_AT) == self.stored.get(_JOINED_AT)

    def is_as_read(self, stored: Item | None) -> bool:
        """Whether `stored` fulfills `unchanged`."""
        alive = (stored or {}).get("sessions", {}).get("M", {})
        return super().is_as_read(stored) and self.session_id in {None, *alive}

    def signed_in(self) -> Condition:
        """The condition that the visitor's session has not ended; without one, `same_account`."""
        if not self.session_id:
            return self.same_account()
        exists: Condition = self.__class__.sessions[self.session_id].exists()
        return exists

    def has_unique_values(self, **values: str) -> bool:
        """Whether the unique `values` are those of the account, in any spelling.

        Raises:
            ValueError: no account can have one of them.
        """
        return not self.moves_guard(self._wire_of(values))

    def save(self, *, update_fields: Iterable[str] | None = None, **options: Any) -> None:  # type: ignore[override]  # the options are those of `Model.save`
        """Like `Model.save`; never stores the sessions, which other requests begin and end."""
        if self.stored:
            names = self.get_attributes().keys() if update_fields is None else set(update_fields)
            update_fields = names - {"sessions"}
        super().save(update_fields=update_fields, **options)

    def _stale(self, *, is_deleted: bool = False) -> Exception:
        return StaleUser(self.pk, deleted=is_deleted)

    def _taken(self, names: tuple[str, ...], values: Mapping[str, object]) -> Exception:
        stored_names = [str(self.get_attributes()[name].attr_name) for name in names]
        value_taken.send_robust(sender=self.__class__, attribute="#".join(stored_names))
        return taken(names, values)

    def _implied(self, values: Mapping[str, object]) -> dict[str, object]:
        """The further attributes that a change to `values` changes.

        A new address is not confirmed. A new password ends all other sessions, and a deactivation
        ends all sessions. Both drop an email change that waits for its link, because an intruder
        may have requested it.
        """
        implied = super()._implied(values)
        email = values.get("email")
        if email and not self.has_unique_values(email=str(email)):
            # A new address is not confirmed, and links to the old one are void.
            implied |= {"email_confirmed_at": None, "confirmation_id": new_confirmation_id()}
        deactivates = values.get("is_active") is False
        if not (deactivates or "password" in values):
            return implied
        here = None if deactivates else self.session_id
        kept = {id_: value for id_, value in self.sessions_read().items() if id_ == here}
        dropped = NO_PENDING_CHANGE if self.pending_email else {}
        return {**implied, "sessions": kept or None, **dropped}

    def sessions_read(self) -> dict[str, dict[str, object]]:
        """The entries of the sessions by id, as they were read."""
        return {} if self.sessions is None else self.sessions.as_dict()


def _storable(attribute: Any, value: object) -> None:
    try:
        typed_value(attribute, value)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ValidationError(INVALID, "invalid") from error


def account_model() -> type[AbstractAccount]:
    """The model of AUTH_USER_MODEL.

    Raises:
        ImproperlyConfigured: it is not an account.
    """
    model: type = get_user_model()
    if not issubclass(model, AbstractAccount):
        raise ImproperlyConfigured(
            f"AUTH_USER_MODEL is {settings.AUTH_USER_MODEL!r}, which is not an account: set it to "
            '"accounts.User", or to a model that derives from accounts.models.AbstractAccount.'
        )
    return model


# In a project with another user model, this model would have an unused table.
if settings.AUTH_USER_MODEL == "accounts.User":

    class User(AbstractAccount):
        """The account of projects that need no further attributes."""

        class Meta:
            table_name = "users"
            verbose_name = _("account")
            verbose_name_plural = _("accounts")
