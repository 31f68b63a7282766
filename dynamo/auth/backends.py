"""The authentication backend: signing in by username or email address, and permissions."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth import backends, get_user_model
from django.contrib.auth.backends import BaseBackend
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from dynamo.auth.models import AbstractUser
from dynamo.auth.permissions import all_permissions, permissions_of_groups

# Typed as Any, because Django's stubs know only users of relational models.
_Base: Any = BaseBackend
_RemoteUserBackend: Any = backends.RemoteUserBackend


class UserBackend(_Base):
    """Django's ModelBackend for an `AbstractUser`.

    The permissions of a user without groups cost no request.
    """

    @sensitive_variables()
    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **credentials: object,
    ) -> AbstractUser | None:
        """The user with this username or email address, if active and the password is right.

        As in Django, the value of USERNAME_FIELD can also be passed under its name: `email=…`.
        Costs as much as `verified`, and raises its errors.
        """
        model: Any = get_user_model()
        who: Any = credentials.get(model.USERNAME_FIELD) if username is None else username
        if who is None or password is None:
            return None
        return self.verified(request, who, password)

    @sensitive_variables()
    def verified(self, request: HttpRequest | None, who: str, password: str) -> AbstractUser | None:
        """The user with this username or email address, if active and the password is right.

        Sends the same requests and makes the same hash, whether or not the user exists. Costs 2
        requests and 2 read units.

        Raises:
            Busy: too many hashes at once in this process. The password was not checked.
        """
        model: Any = get_user_model()
        user = model.find_in_even_time(who)
        if user is None:
            model().set_password(password)
            return None
        is_right = user.check_password(password) and self.user_can_authenticate(user)
        return user if is_right else None

    user_can_authenticate = backends.ModelBackend.user_can_authenticate

    def get_user(self, user_id: str) -> AbstractUser | None:
        """The user of a session, if active. Costs 1 request and 1 read unit."""
        model: Any = get_user_model()
        user = model.get_or_none(user_id)
        return user if user and self.user_can_authenticate(user) else None

    def get_user_permissions(self, user_obj: AbstractUser, obj: object = None) -> set[str]:
        """The user's own permissions; all permissions for a superuser.

        As in Django, nobody has permissions on a single `obj`.
        """
        if not user_obj.is_active or user_obj.is_anonymous or obj is not None:
            return set()
        return set(all_permissions() if user_obj.is_superuser else user_obj.permissions or ())

    def get_group_permissions(self, user_obj: AbstractUser, obj: object = None) -> set[str]:
        """The permissions of the user's groups, which may be a minute old."""
        if not user_obj.is_active or user_obj.is_anonymous or obj is not None:
            return set()
        model = user_obj.group_model
        return permissions_of_groups(model, user_obj.groups or ()) if model else set()

    def has_perm(self, user_obj: AbstractUser, perm: str, obj: object = None) -> bool:
        """Whether the user or one of the groups has the permission."""
        # Groups are read only if the user's own permissions do not contain it.
        return perm in self.get_user_permissions(user_obj, obj) or (
            perm in self.get_group_permissions(user_obj, obj)
        )

    def has_module_perms(self, user_obj: AbstractUser, app_label: str) -> bool:
        """Whether the user has any permission of the app."""
        found = self.get_all_permissions(user_obj)
        return any(item.partition(".")[0] == app_label for item in found)

    async def ahas_module_perms(self, user_obj: AbstractUser, app_label: str) -> bool:
        """Like `has_module_perms`."""
        return await sync_to_async(self.has_module_perms)(user_obj, app_label)


class RemoteUserBackend(UserBackend, _RemoteUserBackend):
    """Django's backend for users that the web server signs in; permissions as in `UserBackend`.

    `create_unknown_user`, `clean_username` and `configure_user` work as in Django. A new user has
    no password, and an email address only if that is its USERNAME_FIELD.
    """

    authenticate = _RemoteUserBackend.authenticate
    aauthenticate = _RemoteUserBackend.aauthenticate
    # These methods come from BaseBackend, because those of ModelBackend need the ORM.
    aget_user = _Base.aget_user
    get_all_permissions = _Base.get_all_permissions
    aget_user_permissions = _Base.aget_user_permissions
    aget_group_permissions = _Base.aget_group_permissions
    aget_all_permissions = _Base.aget_all_permissions
    ahas_perm = _Base.ahas_perm
