"""What Django's contrib.auth expects of a user class, for one that is not a `django.db` model.

contrib.auth runs unmodified: it finds here the parts of a model that it uses, which are `_meta`, a
manager, and the methods of AbstractBaseUser and PermissionsMixin.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.hashers import is_password_usable
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from accounts.exceptions import StaleUser
from accounts.passwords import make_password, verify_password
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
        # The sign-in form also takes an email address in this field.
        "username": _field("username", _("username"), max_length=EMAIL_MAX_LENGTH, unique=True),
        "email": _field("email", _("email address"), max_length=EMAIL_MAX_LENGTH, unique=True),
        "full_name": _field("full_name", _("full name"), max_length=USERNAME_MAX_LENGTH),
        "password": _field("password", _("password"), max_length=256),
    }

    def get_field(self, name: str) -> models.Field[Any, Any]:
        return self.fields[name]


class UserManager:
    """The part of a model's manager that contrib.auth calls."""

    def __get__(self, instance: object, user_model: type[Any]) -> UserManager:
        manager = UserManager()
        manager.model = user_model
        return manager

    model: type[Any]

    def using(self, alias: str) -> UserManager:
        return self

    def get(self, *, pk: str | None = None, username: str | None = None) -> Any:
        """The account with this primary key, or the one that `User.named` finds.

        Raises:
            DoesNotExist
        """
        if pk is not None:
            # From a link, so it may be any text: the key of a guard item, or an invalid key.
            if as_uuid(pk) != pk:
                raise self.model.DoesNotExist
            return self.model.get(pk)
        return self.model.named(username or "")

    def get_by_natural_key(self, username: str) -> Any:
        return self.model.named(username)


# Typed as Any because its methods are annotated for models of `django.db`.
_permissions: Any = PermissionsMixin


class DjangoUser:
    """The behavior of AbstractBaseUser and PermissionsMixin on our own attributes.

    A superuser may do everything. For other users, the authentication backends decide;
    `AccountBackend` grants nothing. A project can add a backend with `has_perm` to
    `AUTHENTICATION_BACKENDS`.
    """

    USERNAME_FIELD = "username"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["email"]

    is_anonymous = False
    is_authenticated = True

    pk: Any
    username: Any
    password: Any
    session_epoch: Any

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

    def __str__(self) -> str:
        return self.get_username()

    def __repr__(self) -> str:
        # PynamoDB's shows every attribute, the hash included, wherever an account is logged.
        return f"<{type(self).__name__}: {self.pk}>"

    def get_username(self) -> str:
        return str(self.username)

    @classmethod
    def get_email_field_name(cls) -> str:
        return cls.EMAIL_FIELD

    @sensitive_variables()
    def set_password(self, raw_password: str | None) -> None:
        """Hash `raw_password` into `password`; `save` stores it.

        None: the account has no usable password.
        """
        self.password = make_password(raw_password)

    def set_unusable_password(self) -> None:
        self.password = make_password(None)

    def has_usable_password(self) -> bool:
        return is_password_usable(self.password)

    @sensitive_variables()
    def check_password(self, raw_password: str) -> bool:
        """Whether this is the password. If it is and the hash is outdated, upgrade the hash.

        Sends no request. If the hash is outdated: 1 request and 1 write unit.

        Raises:
            Busy: too many hashes at once in this process; the password was not checked.
        """
        is_correct, is_outdated = verify_password(raw_password, self.password)
        if is_correct and is_outdated:
            with suppress(StaleUser):
                self.upgrade_hash(raw_password)
        return is_correct

    @sensitive_variables()
    async def acheck_password(self, raw_password: str) -> bool:
        return bool(await sync_to_async(self.check_password)(raw_password))

    def upgrade_hash(self, raw_password: str) -> None:
        """Store the same password with the current hasher. Raises StaleUser."""
        raise NotImplementedError

    def get_session_auth_hash(self) -> str:
        """The value that each session carries. It changes with the password and the epoch."""
        return self._session_auth_hash(settings.SECRET_KEY)

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        for key in settings.SECRET_KEY_FALLBACKS:
            yield self._session_auth_hash(key)

    def _session_auth_hash(self, secret: str | bytes) -> str:
        salt = "accounts.User.get_session_auth_hash"
        # An account of a version without epochs keeps its hash.
        value = f"{self.password} {self.session_epoch}" if self.session_epoch else self.password
        return salted_hmac(salt, value, secret=secret, algorithm="sha256").hexdigest()
