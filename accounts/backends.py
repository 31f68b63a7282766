"""Who may sign in: Django's authentication backend, over the guards."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.http import HttpRequest

from accounts.models import User
from accounts.values import as_uuid


class AccountBackend(BaseBackend):
    """Signs in by user name or e-mail address, and a password.

    As Django's ModelBackend, without its permissions, which are rows of a relational database.
    """

    def authenticate(  # type: ignore[override]  # the stubs know users of the ORM only
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **_credentials: Any,
    ) -> User | None:
        """The account, if the password is right and it is active.

        Takes the same requests and the same hashing whether or not the account exists. Costs 2
        requests and 2 read units.
        """
        if username is None or password is None:
            return None
        user = self._find(username)
        if user is None:
            User().set_password(password)
            return None
        return user if user.check_password(password) and user.is_active else None

    def _find(self, username: str) -> User | None:
        try:
            # A primary key signs nobody in: it is no secret and no name.
            if as_uuid(username):
                raise User.DoesNotExist
            return User.find(username)
        except User.DoesNotExist:
            self._read_in_vain()
            return None

    def _read_in_vain(self) -> None:
        """Read once more, as for an account that exists: time must not tell the two apart."""
        try:
            User.get("nobody")
        except User.DoesNotExist:
            return

    def get_user(self, user_id: str) -> User | None:  # type: ignore[override]  # as above
        """The account of a session, if it is there and active. Costs 1 request, 1 read unit."""
        try:
            user = User.get(user_id)
        except User.DoesNotExist:
            return None
        return user if user.is_active else None
