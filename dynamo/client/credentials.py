"""The credentials that a process signs with. No request waits for a hanging provider.

botocore asks a credential provider in the thread of a request, and waits as long as the provider
takes. Here, a daemon thread asks botocore's usual chain. It asks again when a request uses
credentials that expire soon. Requests use its last result. While the provider fails, the old
credentials are used until they expire. A request without valid credentials waits for them until its
deadline.

Credentials that need no request to a provider (environment variables, the keys of a profile) need
no thread.
"""

import bisect
import logging
import math
import os
import time
from dataclasses import dataclass

from botocore.config import Config
from botocore.credentials import (
    Credentials,
    EnvProvider,
    ReadOnlyCredentials,
    RefreshableCredentials,
)
from botocore.exceptions import CredentialRetrievalError, NoCredentialsError
from botocore.session import Session
from django.conf import settings

from dynamo.runtime.deadline import operation_ends_at
from dynamo.runtime.processes import Background, PerProcess

log = logging.getLogger(__name__)

#: A local engine checks no credentials, but botocore signs with some.
LOCAL = ReadOnlyCredentials("local", "local", None)

#: Credentials are refreshed this long before they expire, but never in the first half of their
#: lifetime.
AHEAD_SECONDS = 15 * 60.0

#: The shortest pause between two attempts while the old credentials can be used.
REFRESH_PAUSE_SECONDS = 20.0

#: The shortest pause after a failed attempt while a request waits for credentials.
RETRY_PAUSE_SECONDS = 0.5

#: If a provider has not answered after this time, another thread asks it as well.
STUCK_SECONDS = 60.0

#: The configuration of the providers' own requests to AWS (STS, IAM Identity Center).
_CONFIG = Config(connect_timeout=3, read_timeout=10, retries={"total_max_attempts": 2})

#: Prefixes of the settings of a profile that name a provider.
_PROVIDER_SETTINGS = ("credential_", "login_", "role_", "sso_", "web_identity_")

_WEEK = 7 * 24 * 3600


@dataclass(frozen=True)
class _Held:
    """Credentials, the time to replace them, and the time when they expire, as `time.time()`."""

    frozen: ReadOnlyCredentials
    due_at: float = math.inf
    expires_at: float = math.inf


class ProcessCredentials(Credentials):
    """The credentials with which a botocore client, or `client.lean`, signs. Thread-safe.

    These are the `fixed` credentials, if given; otherwise they are the thread's last result.
    """

    def __init__(self, fixed: ReadOnlyCredentials | None = None) -> None:
        # Credentials.__init__ is not called, because it would set the attributes that `__getattr__`
        # finds.
        self.method = "django-on-dynamodb"
        self._fixed = None if fixed is None else _Held(fixed)
        self._loading = Background("AWS credentials", self._load, stuck_seconds=STUCK_SECONDS)
        self._refresh_at = 0.0

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """The current credentials; waits for the first ones until the operation's deadline.

        Raises:
            CredentialRetrievalError: none were loaded in time.
            NoCredentialsError: no provider has any.
        """
        return self.wait(operation_ends_at())

    def __getattr__(self, name: str) -> object:
        if name in ReadOnlyCredentials._fields:
            return getattr(self.get_frozen_credentials(), name)
        raise AttributeError(name)

    def wait(self, ends_at: float) -> ReadOnlyCredentials:
        """Like `get_frozen_credentials`, but with the deadline `ends_at` (`time.monotonic()`)."""
        while True:
            ended = self._loading.ended
            held = self._fixed or self._loading.value
            now = time.time()
            if held is not None and now < held.expires_at:
                if max(held.due_at, self._refresh_at) <= now:
                    self._refresh_at = now + REFRESH_PAUSE_SECONDS
                    self._loading.start()
                return held.frozen
            if time.monotonic() - self._loading.ended_at >= RETRY_PAUSE_SECONDS:
                self._loading.start()
            error = self._loading.error
            # The last provider of the chain is the instance metadata service. When that fails, it
            # seems to have no credentials, so the error is final only if it is disabled.
            is_final = os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true"
            if is_final and isinstance(error, NoCredentialsError):
                raise NoCredentialsError
            left = ends_at - time.monotonic()
            if left <= 0:
                text = "no answer in time" if error is None else _in_one_line(error)
                raise CredentialRetrievalError(provider="AWS's chain", error_msg=text)
            self._loading.wait(ended, min(left, RETRY_PAUSE_SECONDS))

    def _load(self) -> _Held:
        try:
            return _load()
        except NoCredentialsError:
            # Requests raise this error, and a command prints it in one line.
            raise
        except Exception as error:
            if self._loading.error is None:
                log.warning("AWS credentials cannot be loaded: %s", _in_one_line(error))
            raise


def _load() -> _Held:
    """Ask the whole chain with a new session, because a session that failed may fail again."""
    core = Session()
    if settings.AWS_REGION:
        core.set_config_variable("region", settings.AWS_REGION)
    core.set_default_client_config(_CONFIG)
    found = core.get_credentials()
    if found is None:
        raise NoCredentialsError
    frozen = found.get_frozen_credentials()
    # The token may be absent.
    texts = (frozen.access_key, frozen.secret_key, frozen.token or "none")
    if not all(isinstance(text, str) and text and text.isprintable() for text in texts):
        raise CredentialRetrievalError(provider=found.method, error_msg="they are not text")
    if not isinstance(found, RefreshableCredentials):
        return _Held(frozen)
    # botocore's public method only tells whether less than n seconds are left. The private name of
    # the expiry may be absent in another version of botocore, and then no request could be signed.
    left = bisect.bisect_left(range(_WEEK), True, key=found.refresh_needed) - 1
    if left <= 0:
        # With less than a second left, they would be loaded for every request.
        raise CredentialRetrievalError(provider=found.method, error_msg="they have expired")
    now = time.time()
    return _Held(frozen, now + max(left - AHEAD_SECONDS, left / 2), now + left)


def _in_one_line(error: Exception) -> str:
    """The error without its traceback, which may contain the output of the provider."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _fixed() -> ReadOnlyCredentials | None:
    """The credentials that can be read here without a request; None if there are none."""
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        # This is the first provider of the chain. Setting up the whole chain takes longer than a
        # request.
        found = EnvProvider().load()
    else:
        core = Session(include_builtin_handlers=False)
        profile = core.get_scoped_config()
        asks = "AWS_WEB_IDENTITY_TOKEN_FILE" in os.environ or any(
            key.startswith(_PROVIDER_SETTINGS) for key in profile
        )
        if asks or "aws_access_key_id" not in profile:
            return None
        found = core.get_credentials()
    if found is None or isinstance(found, RefreshableCredentials):
        return None
    return found.get_frozen_credentials()


#: The credentials of this process, which all its clients share.
of_process: PerProcess[ProcessCredentials] = PerProcess(lambda: ProcessCredentials(_fixed()))


def of_engine() -> ProcessCredentials | None:
    """The fixed credentials for an engine on this machine, if there are any."""
    fixed = _fixed()
    return None if fixed is None else ProcessCredentials(fixed)
