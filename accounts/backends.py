"""Django's authentication backend: signing in by username or email address, and password.

The module's name is stored in the sessions of visitors who are signed in.
"""

from functools import partial

from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from accounts.limits import attempts
from accounts.limits.clients import counted_client
from accounts.models import AbstractAccount, account_model
from dynamo.auth.backends import UserBackend
from dynamo.auth.passwords import queued
from dynamo.runtime.threads import together


class AccountBackend(UserBackend):
    """Limits the attempts at passwords."""

    @sensitive_variables()
    def verified(
        self, request: HttpRequest | None, who: str, password: str
    ) -> AbstractAccount | None:
        """The account, if the password is correct and the account is active.

        Sends the same requests and hashes the same, whether or not the account exists. (An imported
        hash of another kind takes its own time until it is upgraded.) Costs 2 requests and 2 read
        units for the account; for the limits 2 requests, 3 more after a success, 1 more for each
        window that has begun already, and after a failure 1 more for each limit that is half used
        up, with 1 write unit each. Some are sent together: 2 round trips, 3 with a success or
        such a failure, and 1 more for each window that has begun already.

        If too many attempts are made at once, it waits for the others; see `Limit.take`.

        Raises:
            TooManyAttempts: too many failed, and the password was not checked; or it is correct,
                but too many sign-ins succeeded from the client's address.
            Busy: too many hashes at once; a `GateFull` if the client itself has too many. The
                password was not checked, and does not count.
        """
        client = counted_client(request) if request else None
        user: AbstractAccount | None = None

        @sensitive_variables()
        def is_right(typed: str) -> bool:
            if user is None:
                # This hashes a password even if there is no account.
                account_model()().set_password(typed)
                return False
            return user.check_password(typed) and user.is_active

        with queued():
            # The client's slot is taken before the account's: see `accounts.limits.attempts`. The
            # call that may wait runs in this thread, because the other threads are shared.
            of_client, pk = together(
                partial(attempts.begin_client, client),
                partial(account_model().key_in_even_time, who),
            )
            attempt, user = together(
                partial(attempts.begin_sign_in, who, pk, client, of_client),
                partial(account_model().get_in_even_time, pk, who),
            )
            if not attempt.is_right(is_right, password):
                return None
            attempt.succeeded()
        return user
