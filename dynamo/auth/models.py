"""`AbstractUser`: users on DynamoDB, for all of django.contrib.auth.

    class Member(AbstractUser):                # AUTH_USER_MODEL = "members.Member"
        class Meta:
            table_name = "members"

        full_name = TextAttribute(_("full name"), null=True)

    ann = Member.objects.create_user("ann", "ann@example.org", "correct horse battery")

contrib.auth runs unmodified. The class has the parts of a model that contrib.auth uses: `_meta`, a
manager, and the methods of AbstractBaseUser and PermissionsMixin.

Usernames and email addresses are unique in any spelling. `base_user` has the methods of passwords
and sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self

from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser as DjangosBaseUser, PermissionsMixin
from django.core.exceptions import ValidationError
from django.utils.functional import classproperty

# Under another name, `make messages` leaves out the texts of Django's own catalogues.
from django.utils.translation import gettext_lazy as djangos_lazy
from pynamodb.attributes import Attribute

from dynamo.auth.addresses import EMAIL_MAX_LENGTH, clean_new_email, comparable_email
from dynamo.auth.base_user import AbstractBaseUser, new_session_epoch
from dynamo.auth.managers import UserManager
from dynamo.auth.permissions import AbstractGroup, NamesAttribute, check_groups, check_permissions
from dynamo.auth.usernames import (
    USERNAME_MAX_LENGTH,
    as_uuid,
    clean_new_username,
    comparable_username,
)
from dynamo.client.plain import per_class
from dynamo.model.unique import Unique
from dynamo.wire.attributes import BooleanAttribute, DateTimeAttribute, FormAttribute, TextAttribute
from dynamo.wire.fields import AttributeField, Options


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
    """The options (`_meta`) of a user model."""

    @cached_property
    def by_name(self) -> dict[str, AttributeField]:
        """Like that of other models, but forms require the attributes in REQUIRED_FIELDS."""
        fields = super().by_name
        for name in self.model.REQUIRED_FIELDS:
            fields[name].blank = False
        return fields

    def get_field(self, name: str) -> AttributeField:
        field = super().get_field(name)
        if name == self.model.USERNAME_FIELD:
            field = copy(field)
            # The sign-in form also takes an email address as username.
            field.max_length = max(field.max_length or EMAIL_MAX_LENGTH, EMAIL_MAX_LENGTH)
        return field


# Typed as Any because their methods are annotated for models of `django.db`.
_user: Any = DjangosBaseUser
_permissions: Any = PermissionsMixin


#: Attributes of Django's users that these users lack, and what to do instead.
_INSTEAD = {
    **{
        name: f"Declare it: {name} = TextAttribute(null=True)."
        for name in ("first_name", "last_name")
    },
    **dict.fromkeys(
        ("get_next_by_date_joined", "get_previous_by_date_joined"),
        "Declare an index with the sort key date_joined, and read its pages.",
    ),
    "groups": "Declare the model of its groups: group_model = Group.",
    "id": "Use pk.",
    "user_permissions": "Use permissions, a set of texts.",
    "username_validator": "Declare username = TextAttribute(…, validators=[…]).",
}


def _is_asked(attribute: Attribute | None) -> bool:
    """Whether a person has to type a value for each new user."""
    return (
        isinstance(attribute, FormAttribute)
        and attribute.editable
        and not attribute.null
        and attribute.default is attribute.default_for_new is None
    )


def _absent(user: object, name: str) -> AttributeError:
    text = f"{type(user).__name__} has no {name!r}. {_INSTEAD.get(name, '')}"
    return AttributeError(text.rstrip(), name=name, obj=user)


def _refuse_groups(user: object, _groups: object = None) -> Never:
    raise _absent(user, "groups")


class AbstractUser(AbstractBaseUser):
    """A user with username, email address, password, flags and permissions; see the module.

    A subclass with `username = None` and `USERNAME_FIELD = "email"` has no usernames.
    """

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
    # Forms require it because of REQUIRED_FIELDS. Users that a proxy signs in may lack it.
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
    # New users have one as well, so that the sessions of a deleted user do not fit a new user with
    # its key.
    session_epoch = TextAttribute(
        attr_name="sessionEpoch",
        null=True,
        default=new_session_epoch,
        editable=False,
        sensitive=True,
    )
    permissions = NamesAttribute(check_permissions)
    if TYPE_CHECKING:
        groups = NamesAttribute(check_groups)
    else:
        # Without a group model, the names of groups would have no effect.
        groups = property(_refuse_groups, _refuse_groups)

    unique_username = Unique("username", normalize=comparable_username)
    unique_email = Unique("email", normalize=comparable_email)

    _meta = classproperty(per_class(UserOptions))
    objects: ClassVar[UserManager] = UserManager()

    #: The model of the groups in `groups`; if None, users have no `groups`.
    group_model: ClassVar[type[AbstractGroup] | None] = None

    def __init_subclass__(cls, **options: object) -> None:
        # This runs before the attributes are read.
        for name in ("username", "email"):
            if getattr(cls, name) is None:
                setattr(cls, f"unique_{name}", None)
        named: Any = getattr(cls, cls.USERNAME_FIELD, None)
        if named and named.null:
            named = copy(named)
            named.null = False
            setattr(cls, cls.USERNAME_FIELD, named)
        declared: Any = cls.groups
        if cls.group_model and isinstance(declared, property):
            cls.groups = NamesAttribute(check_groups)
            cls.groups.__set_name__(cls, "groups")
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
        if "REQUIRED_FIELDS" not in vars(cls):
            inherited = (name for name in cls.REQUIRED_FIELDS if getattr(cls, name, None))
            attributes = cls.get_attributes()
            # PynamoDB sorts them by name.
            declared = (name for base in cls.__mro__[::-1] for name in vars(base))
            needed = [item for item in declared if _is_asked(attributes.get(item))]
            names = dict.fromkeys([*inherited, *needed])
            cls.REQUIRED_FIELDS = [name for name in names if name != cls.USERNAME_FIELD]
        if unknown := cls._unknown(cls.REQUIRED_FIELDS):
            raise TypeError(f"REQUIRED_FIELDS: {unknown}")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            raise _absent(self, name)

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

    def get_username(self) -> str:
        return getattr(self, self.USERNAME_FIELD)

    natural_key = _user.natural_key
    normalize_username = _user.normalize_username

    @classmethod
    def get_email_field_name(cls) -> str:
        return cls.EMAIL_FIELD

    def get_full_name(self) -> str:
        """`full_name`, or first and last name, if the model declares them; else an empty text."""
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
        """Send a mail to the user, like Django's method.

        Raises:
            ValueError: the user has no email address.
        """
        address = getattr(self, self.EMAIL_FIELD)
        if not address:
            raise ValueError(f"{self} has no email address.")
        # Imported here, because few processes send mails.
        from django.core.mail import send_mail

        send_mail(subject, message, from_email, [address], **options)

    def clean(self) -> None:
        """Normalize the name and the email address, as Django does.

        Unique values are compared in a form that is the same for all spellings.
        """
        setattr(self, self.USERNAME_FIELD, self.normalize_username(self.get_username()))
        if address := getattr(self, self.EMAIL_FIELD, None):
            setattr(self, self.EMAIL_FIELD, UserManager.normalize_email(address))

    @classmethod
    def needed(cls) -> tuple[str, ...]:
        """The attributes that people type for a new user, except the password."""
        return cls.USERNAME_FIELD, *cls.REQUIRED_FIELDS

    @classmethod
    def cleaned(cls, **typed: object) -> dict[str, Any]:
        """The typed values as they are stored, by attribute name.

        Raises:
            ValidationError: values break the rules of these attributes.
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
        """The unique attribute whose value `who` is. `who` is not a primary key."""
        unique = cls.unique_names()
        if "@" in who and "email" in unique:
            return "email"
        is_other = cls.USERNAME_FIELD == "email" and "username" in unique
        return "username" if is_other else cls.USERNAME_FIELD

    @classmethod
    def find_in_even_time(cls, who: str) -> Self | None:
        """The user with this username or email address, or None; both take the same time.

        A primary key finds no user. Costs 2 requests and 2 read units in any case.
        """
        return cls.get_in_even_time(cls.key_in_even_time(who), who)

    @classmethod
    def key_in_even_time(cls, who: str) -> str | None:
        """The first step of `find_in_even_time`: the primary key, from the guard item."""
        return cls.find_owner(**{cls.attribute_of(who): who})

    @classmethod
    def get_in_even_time(cls, pk: str | None, who: str) -> Self | None:
        """The second step: the user with the key `pk`, if `who` is its name."""
        try:
            # Without a key, an item is read as well, so that the time does not show whether the
            # user exists.
            return cls.find_from(pk or "nobody", **{cls.attribute_of(who): who})
        except cls.DoesNotExist:
            return None
