"""The manager of a user model. It has the methods that contrib.auth calls."""

from __future__ import annotations

from typing import Any, Never, Self, cast

from django.contrib.auth.models import BaseUserManager
from django.views.decorators.debug import sensitive_variables

from dynamo.auth.passwords import check_new_password
from dynamo.model.managers import Manager
from dynamo.runtime.threads import asynchronous
from dynamo.transactions import Transaction


class UserManager(Manager[Any]):
    """The manager of an `AbstractUser`, with the methods that contrib.auth calls."""

    _alters_data = "create_user create_superuser"

    def __get__(self, instance: object, model: type) -> Self:
        return cast(Self, super().__get__(instance, model))

    @sensitive_variables()
    def create_user(
        self,
        username: str | None = None,
        email: str | None = None,
        password: str | None = None,
        *,
        request_id: object = None,
        write: Transaction | None = None,
        **values: object,
    ) -> Any:
        """Store a new user. Without `password` the user cannot sign in.

        `request_id` works as in `Model.create`; another password counts as another value. Costs 1
        request and 6 write units.

        Raises:
            ValidationError: the username, email address or password breaks its rules; the
                validators of AUTH_PASSWORD_VALIDATORS are not asked.
            Taken: other users have them.
            RequestIdReused: the request id made a user with other values.
            ValueError: a required value is missing.
            TypeError: the model has no such attribute.
            Busy: too many hashes at once in this process. Nothing was sent.
        """
        model = self.model
        if username is not None and not model.username:
            needed = ", ".join(f"{name}=…" for name in (*model.needed(), "password"))
            raise TypeError(f"{model.__name__} has no username: call create_user({needed}).")
        names = {"username": username, "email": email}
        asked = values | {name: value for name, value in names.items() if value is not None}
        asked |= model.cleaned(**{n: asked[n] for n in {*names, model.USERNAME_FIELD} & {*asked}})
        if password is not None:
            check_new_password(password)
        user = model(**asked)
        user.set_password(password)
        if request_id is None:
            return user.insert(write=write)
        return user.insert_for(str(request_id), asked, write)

    acreate_user = asynchronous(create_user)

    def create_superuser(
        self,
        username: str | None = None,
        email: str | None = None,
        password: str | None = None,
        **values: Any,
    ) -> Any:
        """Like `create_user`, but with all permissions."""
        for right in ("is_staff", "is_superuser"):
            if values.setdefault(right, True) is not True:
                raise ValueError(f"A superuser must have {right}=True.")
        return self.create_user(username, email, password, **values)

    acreate_superuser = asynchronous(create_superuser)

    def create(self, **values: Any) -> Any:
        """Like `create_user`."""
        return self.create_user(**values)

    def get(self, *conditions: Never, **values: object) -> Any:
        """Like `get` of other models.

        USERNAME_FIELD accepts everything that `AbstractUser.named` accepts.
        """
        if values.keys() == {self.model.USERNAME_FIELD}:
            return self.model.named(values[self.model.USERNAME_FIELD])
        return super().get(*conditions, **values)

    def get_by_natural_key(self, username: str) -> Any:
        return self.model.find(**{self.model.USERNAME_FIELD: username})

    aget_by_natural_key = asynchronous(get_by_natural_key)

    normalize_email = staticmethod(BaseUserManager.normalize_email)

    def filter(self, **values: Any) -> list[Any]:  # type: ignore[override]  # see there
        """A list of the user with the email address, for Django's PasswordResetForm."""
        model = self.model
        name = self.model.EMAIL_FIELD
        if {*values} != {f"{name}__iexact", "is_active"} or name not in model.unique_names():
            raise TypeError(
                f"filter is for Django's PasswordResetForm, and takes {name}__iexact and is_active "
                f"of a model whose {name} is unique. Find users with get(…)."
            )
        address = values[f"{name}__iexact"]
        user = model.find_in_even_time(address) if "@" in address else None
        return [user] if user and user.is_active == values["is_active"] else []
