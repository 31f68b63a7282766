"""`AbstractUser`: users on DynamoDB, for all of django.contrib.auth.

    class Member(AbstractUser):                # AUTH_USER_MODEL = "members.Member"
        class Meta:
            table_name = "members"

        full_name = TextAttribute(_("full name"), null=True)

    ann = Member.objects.create_user("ann", "ann@example.org", "correct horse battery")

contrib.auth runs unmodified: it finds here the parts of a model that it uses, which are `_meta`, a
manager, and the methods of AbstractBaseUser and PermissionsMixin.

Usernames and email addresses are unique in any spelling. `session_epoch` is random and part of the
session auth hash: a new epoch ends every session.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self

from asgiref.sync import sync_to_async
from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser, PermissionsMixin
from django.contrib.auth.password_validation import password_changed
from django.contrib.auth.signals import user_logged_in
from django.core.exceptions import ValidationError
from django.dispatch import receiver
from django.utils.crypto import salted_hmac
from django.utils.functional import classproperty

# Under another name `make messages` leaves out what is in Django's own catalogues.
from django.utils.translation import gettext_lazy as djangos_lazy
from django.views.decorators.debug import sensitive_variables
from pynamodb.attributes import UnicodeSetAttribute
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from dynamo.auth.addresses import EMAIL_MAX_LENGTH, clean_new_email, comparable_email
from dynamo.auth.managers import UserManager
from dynamo.auth.passwords import check_password, make_password, verify_password
from dynamo.auth.permissions import check_groups, check_permissions
from dynamo.auth.usernames import (
    USERNAME_MAX_LENGTH,
    as_uuid,
    clean_new_username,
    comparable_username,
)
from dynamo.client.plain import per_class
from dynamo.client.writes import Otherwise, Refusal, Write
from dynamo.model.base import Model
from dynamo.model.unique import Unique
from dynamo.transactions import Transaction, joined
from dynamo.wire.attributes import BooleanAttribute, DateTimeAttribute, TextAttribute
from dynamo.wire.fields import AttributeField, Options
from dynamo.wire.types import Item, Typed


def new_session_epoch() -> str:
    """A random value for `session_epoch`."""
    return secrets.token_urlsafe(16)


class NamesAttribute(UnicodeSetAttribute):
    """A set of names that exist: a form asks `validator`, with the set or with lines of text."""

    def __init__(self, validator: Callable[[Any], None]) -> None:
        super().__init__(null=True, default=set)
        self.validators = [validator]


class _Models(dict[str, Any]):
    """The models of an app, by name, and `users`, which only `get_user_model` finds.

    Code that goes through all models of `django.db` cannot work with them.
    """

    def __init__(self, models: Mapping[str, object]) -> None:
        super().__init__(models)
        self.users: dict[str, type[AbstractUser]] = {}

    def __missing__(self, name: str) -> type[AbstractUser]:
        return self.users[name]


class UserOptions(Options):
    """Of a user model."""

    @cached_property
    def fields(self) -> dict[str, AttributeField]:
        """As of every model, but forms require what REQUIRED_FIELDS names."""
        fields = super().fields
        for name in self.model.REQUIRED_FIELDS:
            fields[name].blank = False
        return fields

    def get_field(self, name: Any) -> Any:
        field: Any = super().get_field(name)
        if name == self.model.USERNAME_FIELD:
            field = copy(field)
            # The sign-in form also takes an email address as username.
            field.max_length = max(field.max_length or EMAIL_MAX_LENGTH, EMAIL_MAX_LENGTH)
        return field


# Typed as Any because their methods are annotated for models of `django.db`.
_user: Any = AbstractBaseUser
_permissions: Any = PermissionsMixin


#: What Django's users have and these do not, and what to do instead.
_INSTEAD = {
    **{
        name: f"Declare it: {name} = TextAttribute(null=True)."
        for name in ("first_name", "last_name")
    },
    **dict.fromkeys(
        ("get_next_by_date_joined", "get_previous_by_date_joined"),
        "Declare an index with the sort key date_joined, and read its pages.",
    ),
    "user_permissions": "Use permissions, a set of texts.",
    "username_validator": "Declare username = TextAttribute(…, validators=[…]).",
}


class AbstractUser(Model):
    """A user with username, email address, password, flags and permissions; see the module.

    A subclass with `username = None` and `USERNAME_FIELD = "email"` has no usernames.
    """

    _alters_data: ClassVar[tuple[str, ...]] = (
        *Model._alters_data,
        "set_password",
        "set_unusable_password",
        "check_password",
        "upgrade_hash",
        "end_sessions",
        "record_sign_in",
        "join",
    )

    USERNAME_FIELD = "username"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["email"]

    is_anonymous = False
    is_authenticated = True

    username = TextAttribute(
        djangos_lazy("username"),
        attr_name="userName",
        max_length=USERNAME_MAX_LENGTH,
        validators=[clean_new_username],
    )
    # Forms require it, because of REQUIRED_FIELDS. Users that a proxy signs in may lack it.
    email = TextAttribute(
        djangos_lazy("email address"),
        max_length=EMAIL_MAX_LENGTH,
        null=True,
        validators=[clean_new_email],
    )
    password = TextAttribute(djangos_lazy("password"), editable=False, sensitive=True)
    is_active = BooleanAttribute(djangos_lazy("active"), attr_name="isActive", default=True)
    is_staff = BooleanAttribute(djangos_lazy("staff status"), attr_name="isStaff", default=False)
    is_superuser = BooleanAttribute(
        djangos_lazy("superuser status"), attr_name="isSuperuser", default=False
    )
    date_joined = DateTimeAttribute(
        djangos_lazy("date joined"),
        attr_name="joinedAt",
        null=True,
        default=lambda: datetime.now(UTC),
        editable=False,
    )
    last_login = DateTimeAttribute(
        djangos_lazy("last login"), attr_name="lastLoginAt", null=True, editable=False
    )
    # New users have one as well: sessions of a deleted user do not fit a new one with its key.
    session_epoch = TextAttribute(
        attr_name="sessionEpoch",
        null=True,
        default=new_session_epoch,
        editable=False,
        sensitive=True,
    )
    permissions = NamesAttribute(check_permissions)
    groups = NamesAttribute(check_groups)

    unique_username = Unique("username", normalize=comparable_username)
    unique_email = Unique("email", normalize=comparable_email)

    _meta: ClassVar[Any] = classproperty(per_class(UserOptions))
    _default_manager = UserManager()
    objects = UserManager()

    #: The model of the groups that `groups` names; None: users cannot be in groups.
    group_model: ClassVar[type[AbstractGroup] | None] = None

    #: Whether `record_sign_in` is called after each sign-in.
    records_sign_ins: ClassVar[bool] = True

    #: The password that this object got, and its hash, until it is stored.
    _typed: tuple[str, str] | None = None

    def __init_subclass__(cls, **options: object) -> None:
        # Before the attributes are read.
        for name in ("username", "email"):
            if getattr(cls, name) is None:
                setattr(cls, f"unique_{name}", None)
        named: Any = getattr(cls, cls.USERNAME_FIELD, None)
        if named and named.null:
            named = copy(named)
            named.null = False
            setattr(cls, cls.USERNAME_FIELD, named)
        if "REQUIRED_FIELDS" not in vars(cls):
            known = (field for field in cls.REQUIRED_FIELDS if getattr(cls, field, None))
            cls.REQUIRED_FIELDS = [item for item in known if item != cls.USERNAME_FIELD]
        super().__init_subclass__(**options)
        cls.install()

    @classmethod
    def _complete(cls) -> None:
        super()._complete()
        if cls.USERNAME_FIELD not in cls.unique_names():
            raise TypeError(
                f"USERNAME_FIELD names {cls.USERNAME_FIELD!r}, which is not unique. Declare "
                f'Unique({cls.USERNAME_FIELD!r}), or USERNAME_FIELD = "email".'
            )
        if unknown := cls._unknown(cls.REQUIRED_FIELDS):
            raise TypeError(f"REQUIRED_FIELDS: {unknown}")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            kind = type(self).__name__
            instead = f": {_INSTEAD[name]}" if name in _INSTEAD else "."
            raise AttributeError(f"{kind} has no {name!r}{instead}", name=name, obj=self)

    @classmethod
    def install(cls) -> None:
        """Let `get_user_model` find this class, which is not a model of `django.db`."""
        if app := apps.get_containing_app_config(cls.__module__):
            models: Any = apps.all_models[app.label]
            if not isinstance(models, _Models):
                models = apps.all_models[app.label] = app.models = _Models(models)
            models.users[cls.__name__.lower()] = cls

    def __str__(self) -> str:
        return str(self.get_username())

    def get_username(self) -> Any:
        return getattr(self, self.USERNAME_FIELD)

    natural_key = _user.natural_key
    normalize_username = _user.normalize_username

    @classmethod
    def get_email_field_name(cls) -> str:
        return cls.EMAIL_FIELD

    def get_full_name(self) -> str:
        """`full_name`, or first and last name, as far as the model declares them; else empty."""
        names = ["first_name", "last_name"]
        if "full_name" in self.get_attributes():
            names = ["full_name"]
        return " ".join(filter(None, (getattr(self, name, None) for name in names)))

    def get_short_name(self) -> str:
        """`first_name`, if the model declares it, or the full name."""
        return getattr(self, "first_name", None) or self.get_full_name()

    def email_user(
        self, subject: str, message: str, from_email: str | None = None, **options: Any
    ) -> None:
        """Send a mail to the user, as Django's `send_mail`.

        Raises:
            ValueError: the user has no email address.
        """
        address = getattr(self, self.EMAIL_FIELD)
        if not address:
            raise ValueError(f"{self} has no email address.")
        # Here, because few processes send mails.
        from django.core.mail import send_mail

        send_mail(subject, message, from_email, [address], **options)

    def clean(self) -> None:
        """As Django's: name and email address in one spelling. Every spelling is compared alike."""
        setattr(self, self.USERNAME_FIELD, self.normalize_username(self.get_username()))
        if address := getattr(self, self.EMAIL_FIELD, None):
            setattr(self, self.EMAIL_FIELD, UserManager.normalize_email(address))

    @classmethod
    def needed(cls) -> tuple[str, ...]:
        """The attributes, besides the password, that people type for a new user."""
        return cls.USERNAME_FIELD, *cls.REQUIRED_FIELDS

    @classmethod
    def cleaned(cls, **typed: object) -> dict[str, Any]:
        """The typed values as they are stored, by attribute name.

        Raises:
            ValidationError: at the attributes whose rules are broken.
        """
        values, errors = {}, {}
        for name, value in typed.items():
            values[name] = value.strip() if isinstance(value, str) else value
            try:
                for validate in getattr(cls.get_attributes()[name], "validators", ()):
                    validate(values[name])
            except ValidationError as error:
                errors[name] = error
        if errors:
            raise ValidationError(errors)
        return values

    # Permissions: the authentication backends decide ----------------------------------------------

    get_user_permissions = _permissions.get_user_permissions
    aget_user_permissions = _permissions.aget_user_permissions
    get_group_permissions = _permissions.get_group_permissions
    aget_group_permissions = _permissions.aget_group_permissions
    get_all_permissions = _permissions.get_all_permissions
    aget_all_permissions = _permissions.aget_all_permissions
    has_perm = _permissions.has_perm
    ahas_perm = _permissions.ahas_perm
    has_perms = _permissions.has_perms
    ahas_perms = _permissions.ahas_perms
    has_module_perms = _permissions.has_module_perms
    ahas_module_perms = _permissions.ahas_module_perms

    # Finding --------------------------------------------------------------------------------------

    @classmethod
    def named(cls, who: str) -> Self:
        """The user that `who` names: an email address (with @), a primary key or a username.

        Without usernames it is a value of USERNAME_FIELD.

        Costs 2 requests and 2 read units; by primary key 1 and 1.

        Raises:
            DoesNotExist
        """
        if pk := as_uuid(who):
            return cls.get(pk)
        return cls.find(**{cls.attribute_of(who): who})

    @classmethod
    def attribute_of(cls, who: str) -> str:
        """The unique attribute that `who`, which is not a primary key, is a value of."""
        unique = cls.unique_names()
        if "@" in who and "email" in unique:
            return "email"
        is_other = cls.USERNAME_FIELD == "email" and "username" in unique
        return "username" if is_other else cls.USERNAME_FIELD

    @classmethod
    def find_in_even_time(cls, who: str) -> Self | None:
        """The user with this username or email address, or None, after the same time.

        A primary key finds no user, because it is not a name. Costs 2 requests and 2 read units in
        any case.
        """
        return cls.get_in_even_time(cls.key_in_even_time(who), who)

    @classmethod
    def key_in_even_time(cls, who: str) -> str | None:
        """The first half of `find_in_even_time`: the primary key, from the guard item."""
        return cls.find_owner(**{cls.attribute_of(who): who})

    @classmethod
    def get_in_even_time(cls, pk: str | None, who: str) -> Self | None:
        """The second half: the user with the key `pk`, if `who` is its name."""
        try:
            # Without a key there is a read, too, as for a user that exists.
            return cls.find_from(pk or "nobody", **{cls.attribute_of(who): who})
        except cls.DoesNotExist:
            return None

    # Passwords ------------------------------------------------------------------------------------

    @sensitive_variables()
    def set_password(self, raw_password: str | None) -> None:
        """Hash `raw_password` into `password`; `save` stores it.

        When it is stored, `password_changed` of the password validators is called, as in Django.
        None: the user has no usable password.

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

        Sends no request. If the hash is outdated: 1 request and 1 write unit.

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

        If the hash changed, but matches this password (a lost reply, two sign-ins at once), it is a
        success, and this object gets the stored user. Otherwise a session would carry the outdated
        hash and end. Costs 1 request and 1 write unit.

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
        """The value that each session carries. It changes with the password and the epoch."""
        salt = f"{self._meta.label}.get_session_auth_hash"
        value = f"{self.password} {self.session_epoch}"
        return salted_hmac(salt, value, secret=secret, algorithm="sha256").hexdigest()

    def end_sessions(self, *, write: Transaction | None = None) -> None:
        """End every session of the user. Costs and errors as `change`."""
        self.change(session_epoch=new_session_epoch(), write=write)

    def record_sign_in(self, *, write: Transaction | None = None) -> None:
        """Store the time of a sign-in; called after each one (`user_logged_in`).

        The version stays, because no form depends on it. Costs 1 request and 1 write unit per KB.

        Raises:
            Stale: the user was deleted.
        """
        now = self.later_sign_in()

        def otherwise(refusal: Refusal) -> Exception | None:
            # If it was not deleted, a later sign-in is recorded already.
            is_same = refusal.stored is not None and self.is_same_item(refusal.stored)
            return None if is_same else self._stale(is_deleted=True)

        values = {"last_login": now}
        condition = self.same_account() & self.no_later_sign_in(now)
        self.join(write, self.set_or_remove(values), condition, values, otherwise)

    def later_sign_in(self) -> datetime:
        """Now, or just after the last sign-in if a clock that is ahead has recorded that."""
        now = datetime.now(UTC)
        last: datetime | None = self.last_login
        return now if last is None else max(now, last + timedelta(microseconds=1))

    def no_later_sign_in(self, than: datetime) -> Condition:
        last_login: Any = type(self).last_login
        return last_login.does_not_exist() | (last_login < than)

    def _is_now(self, stored: Item) -> None:
        super()._is_now(stored)
        if self._typed:
            self._note_password(stored.get("password"))

    @sensitive_variables()
    def _note_password(self, stored: Typed | None) -> None:
        """Forget the typed password if it need not be saved any more; tell that it was stored."""
        typed, hashed = self._typed or ("", "")
        is_current = self.password == hashed
        if is_current and stored != {"S": hashed}:
            return
        self._typed = None
        if is_current:
            password_changed(typed, self)  # type: ignore[arg-type]  # not a user of django.db

    # Writing --------------------------------------------------------------------------------------

    def same_account(self) -> Condition:
        """The condition that the stored user is this one, whatever changed since it was read."""
        return self._is_same_item_condition()

    def _implied(self, values: Mapping[str, object]) -> dict[str, object]:
        """A deactivation ends every session, also if the user is activated again."""
        return {"session_epoch": new_session_epoch()} if values.get("is_active") is False else {}

    def join(
        self,
        write: Transaction | None,
        actions: list[Action],
        condition: Condition,
        values: Mapping[str, object],
        otherwise: Otherwise,
    ) -> None:
        """Update the stored user without another version, and this object after it.

        This object gets the stored user, or `values` if the commit does not return it.
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
        # Its hash is salted, so it is compared with the password itself.
        without = {name: value for name, value in asked.items() if name != "password"}
        return super().insert_for(request_id, without, write)

    @sensitive_variables()
    def _has_digest(self, digest: Typed, stored: Item) -> bool:
        """Also whether `stored` has the typed password, which the digest leaves out."""
        if not super()._has_digest(digest, stored):
            return False
        if self._typed is None:
            return True
        return check_password(self._typed[0], self.from_raw_data(stored).password)


class AbstractGroup(Model):
    """A group of users, which have its permissions. Its key is its name, which never changes."""

    name = TextAttribute(djangos_lazy("name"), hash_key=True, max_length=150)
    permissions = NamesAttribute(check_permissions)

    def __str__(self) -> str:
        return str(self.name)


@receiver(user_logged_in)
def _record_sign_in(user: object, **_signal: object) -> None:
    if isinstance(user, AbstractUser) and user.records_sign_ins:
        user.record_sign_in()
