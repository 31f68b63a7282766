"""What Django's contrib.auth asks of a user class, for one that is no `django.db` model.

contrib.auth runs unmodified: it finds here the few things that it would find on a model, its
`_meta`, its manager, the password methods of AbstractBaseUser and PermissionsMixin's methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.hashers import is_password_usable
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from accounts.passwords import check_password, make_password
from accounts.values import EMAIL_MAX_LENGTH, USERNAME_MAX_LENGTH, as_uuid


def _field(name: str, verbose_name: Any, **options: Any) -> models.Field[Any, Any]:
    field: models.Field[Any, Any] = models.CharField(verbose_name, **options)
    field.set_attributes_from_name(name)
    return field


class UserOptions:
    """The part of a model's `_meta` that contrib.auth reads."""

    app_label = "accounts"
    model_name = "user"
    object_name = "User"
    label = "accounts.User"
    label_lower = "accounts.user"
    verbose_name = "user"
    verbose_name_plural = "users"
    abstract = False
    swapped = None

    pk = _field("pk", "primary key", max_length=36, primary_key=True)
    fields: ClassVar[dict[str, models.Field[Any, Any]]] = {
        "pk": pk,
        # Sign-in takes an address in the same field, so it is as long as one.
        "username": _field("username", _("username"), max_length=EMAIL_MAX_LENGTH, unique=True),
        "email": _field("email", _("email address"), max_length=EMAIL_MAX_LENGTH, unique=True),
        "full_name": _field("full_name", _("full name"), max_length=USERNAME_MAX_LENGTH),
        "password": _field("password", _("password"), max_length=256),
    }

    def get_field(self, name: str) -> models.Field[Any, Any]:
        """The form-facing description of the attribute `name`."""
        return self.fields[name]


class UserManager:
    """The part of a model's manager that contrib.auth calls; each call finds one account."""

    def __get__(self, instance: object, user_model: type[Any]) -> UserManager:
        manager = UserManager()
        manager.model = user_model
        return manager

    model: type[Any]

    def using(self, alias: str) -> UserManager:
        """There is one database, DynamoDB, whatever the alias."""
        return self

    def get(self, *, pk: str | None = None, username: str | None = None) -> Any:
        """The account with this primary key, or who goes by `username` (see `User.find`).

        Raises:
            DoesNotExist: there is none.
        """
        if pk is not None:
            # From a link, so it may be any text: a guard's key, or one that DynamoDB refuses.
            if as_uuid(pk) != pk:
                raise self.model.DoesNotExist
            return self.model.get(pk)
        return self.model.find(username or "")

    def get_by_natural_key(self, username: str) -> Any:
        """Who goes by `username`. Raises DoesNotExist."""
        return self.model.find(username)


#: Django's methods ask the authentication backends and read two attributes of the user, so they
#: work on any class; typed as Any because they are annotated for models of `django.db`.
_of_django: Any = PermissionsMixin


class Permissions:
    """What a user may do: a superuser everything, others what an authentication backend says.

    `AccountBackend` says nothing; a project adds a backend with `has_perm` to
    `AUTHENTICATION_BACKENDS`.
    """

    get_user_permissions = _of_django.get_user_permissions
    aget_user_permissions = _of_django.aget_user_permissions
    get_group_permissions = _of_django.get_group_permissions
    aget_group_permissions = _of_django.aget_group_permissions
    get_all_permissions = _of_django.get_all_permissions
    aget_all_permissions = _of_django.aget_all_permissions
    has_perm = _of_django.has_perm
    ahas_perm = _of_django.ahas_perm
    has_perms = _of_django.has_perms
    ahas_perms = _of_django.ahas_perms
    has_module_perms = _of_django.has_module_perms
    ahas_module_perms = _of_django.ahas_module_perms


class DjangoUser(Permissions):
    """AbstractBaseUser's behaviour, word for word where it matters, on attributes of our own."""

    USERNAME_FIELD = "username"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["email"]

    is_anonymous = False
    is_authenticated = True

    pk: Any
    username: Any
    password: Any
    session_epoch: Any

    def __str__(self) -> str:
        return self.get_username()

    def __repr__(self) -> str:
        # PynamoDB's shows every attribute, and so the hash, wherever somebody logs an account.
        return f"<{type(self).__name__}: {self.pk}>"

    def get_username(self) -> str:
        """The username as it was typed."""
        return str(self.username)

    @classmethod
    def get_email_field_name(cls) -> str:
        """The attribute that holds the address."""
        return cls.EMAIL_FIELD

    @sensitive_variables()
    def set_password(self, raw_password: str | None) -> None:
        """Hash `raw_password` into `password`; `save` stores it. None makes it unusable."""
        self.password = make_password(raw_password)

    def set_unusable_password(self) -> None:
        """Make sure that no password signs in."""
        self.password = make_password(None)

    def has_usable_password(self) -> bool:
        """Whether any password could sign in."""
        return is_password_usable(self.password)

    @sensitive_variables()
    def check_password(self, raw_password: str) -> bool:
        """Whether this is the password; an outdated hash is made anew on the way.

        Costs no request, or 1 and 1 write unit where the hash was outdated.

        Raises:
            Busy: too many hashes at once in this process; the password was not checked.
        """
        return check_password(raw_password, self.password, self.upgrade_hash)

    @sensitive_variables()
    async def acheck_password(self, raw_password: str) -> bool:
        """See `check_password`."""
        return bool(await sync_to_async(self.check_password)(raw_password))

    def upgrade_hash(self, raw_password: str) -> None:
        """Store the same password under today's hasher."""
        raise TypeError("The user class says how its hash is stored.")

    def get_session_auth_hash(self) -> str:
        """What a session carries of the account: it ends with the password or the session epoch."""
        return self._session_auth_hash(settings.SECRET_KEY)

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        """The same under the keys that were in use before."""
        for key in settings.SECRET_KEY_FALLBACKS:
            yield self._session_auth_hash(key)

    def _session_auth_hash(self, secret: str | bytes) -> str:
        salt = "accounts.User.get_session_auth_hash"
        # An account without an epoch, of a version that had none, keeps the hash that it had.
        value = f"{self.password} {self.session_epoch}" if self.session_epoch else self.password
        return salted_hmac(salt, value, secret=secret, algorithm="sha256").hexdigest()
