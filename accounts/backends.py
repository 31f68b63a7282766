"""Who may sign in: Django's authentication backend, over the guards."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from accounts.limits import attempts
from accounts.limits.client_address import counted_client
from accounts.models import User
from accounts.services import find_in_even_time
from dynamo.exceptions import Busy


class AccountBackend(BaseBackend):
    """Signs in by username or email address, and a password.

    As Django's ModelBackend, without its permissions, which are rows of a relational database.
    """

    @sensitive_variables()
    def authenticate(  # type: ignore[override]  # the stubs know users of the ORM only
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **_credentials: Any,
    ) -> User | None:
        """The account, if the password is right and it is active.

        Takes the same requests and the same hashing whether or not the account exists; but one
        whose hash is of another kind (imported, and not made anew yet) takes as long as that kind.
        Costs 2 requests and 2 read units for the search, and those of the limits beside them: 2,
        and 3 more after a success; each 1 write unit. One more for each window that has begun
        already, after others from the client's address or failures of this account.

        Raises:
            TooManyAttempts: too many failed, and the password was not looked at; or it was right,
                but too many sign-ins succeeded from the client's address.
            Busy: too many hashes at once; the password was not looked at, and it does not count.
        """
        if username is None or password is None:
            return None
        user = find_in_even_time(username)
        attempt = attempts.begin_sign_in(
            username, user, counted_client(request) if request else None
        )
        try:
            if user is None:
                User().set_password(password)
                return None
            is_right = user.check_password(password)
        except Busy:
            attempt.was_not_made()
            raise
        if not (is_right and user.is_active):
            return None
        attempt.succeeded()
        return user

    def get_user(self, user_id: str) -> User | None:  # type: ignore[override]  # as above
        """The account of a session, if it is there and active. Costs 1 request, 1 read unit."""
        try:
            user = User.get(user_id)
        except User.DoesNotExist:
            return None
        return user if user.is_active else None
