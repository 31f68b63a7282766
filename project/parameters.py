"""Secrets in SecureString parameters of AWS Systems Manager (SSM), such as Django's secret keys.

Each read is one request, signed by botocore and sent by its HTTP session. botocore's client for SSM
would take 0.1 s of CPU and 14 MB at every cold start, to read its description of SSM.

The parameter of the secret keys contains one key per line. The first key signs. Signatures of the
other keys are valid as well. Therefore, a key can be replaced without signing anybody out.

The keys are read at the start, in every process restored from a snapshot, and by the first page
that begins `FRESH_SECONDS` or more after that. There is no thread for this, because a frozen
function would not run it, and an idle function would be charged for it.
"""

import json
import logging
import math
import random
import threading
import time
from contextlib import suppress

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, NoCredentialsError
from botocore.httpsession import URLLib3Session
from botocore.session import Session
from botocore.utils import get_environ_proxies
from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from dynamo.client import connections, credentials, endpoints
from dynamo.runtime.deadline import within
from dynamo.runtime.processes import PerProcess

log = logging.getLogger(__name__)

#: The time-outs of one attempt.
CONNECT_SECONDS = 1.0
READ_SECONDS = 1.5

#: The seconds after which the keys are read again.
FRESH_SECONDS = 300.0

#: A start must read the keys within these seconds. AWS Lambda ends a start after 10 s.
START_SECONDS = 5.0

_TEMPORARY = {"InternalServerError", "ThrottlingException"}


class ParameterUnavailable(OSError):
    """A parameter was not read, or is not usable. If `is_temporary`, another try may help."""

    def __init__(self, name: str, problem: str, *, is_temporary: bool = False) -> None:
        super().__init__(f"{name}: {' '.join(problem.split())[:300]}".rstrip("."))
        self.is_temporary = is_temporary


@sensitive_variables()
def read(name: str) -> str:
    """The value of the SecureString parameter with this name or ARN. Costs 1 request to SSM.

    Raises:
        ParameterUnavailable
    """
    status, body = _exchange(name)
    try:
        answer = json.loads(body)
        if status != 200:
            code = answer["__type"].rpartition("#")[2]
            text = answer.get("message") or answer.get("Message") or ""
            is_temporary = status >= 500 or code in _TEMPORARY
            raise ParameterUnavailable(name, f"{code} {text}", is_temporary=is_temporary)
        kind = answer["Parameter"]["Type"]
        value = str(answer["Parameter"]["Value"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        # The text of the answer is left out, because it could contain the secret.
        problem = f"the answer ({status}) is not SSM's"
        raise ParameterUnavailable(name, problem, is_temporary=True) from error
    if kind != "SecureString":
        raise ParameterUnavailable(name, f"it is a {kind}: make it a SecureString")
    return value


@sensitive_variables()
def _exchange(name: str) -> tuple[int, bytes]:
    suffix = "com.cn" if settings.AWS_REGION.startswith("cn-") else "com"
    usual = f"https://ssm.{settings.AWS_REGION}.amazonaws.{suffix}/"
    url = endpoints.configured_endpoint("ssm") or usual
    body = json.dumps({"Name": name, "WithDecryption": True})
    headers = {
        "Content-Type": "application/x-amz-json-1.1",
        "X-Amz-Target": "AmazonSSM.GetParameter",
    }
    request = AWSRequest("POST", url, headers, body.encode())
    # A new session is used each time, because after some minutes an idle connection could be dead.
    http = URLLib3Session(
        verify=Session().get_config_variable("ca_bundle") or True,
        proxies=get_environ_proxies(url),
        timeout=(CONNECT_SECONDS, READ_SECONDS),  # type: ignore[arg-type]  # the stubs know one number
    )
    # If botocore lacks the private name, a slow name server delays the request.
    with suppress(AttributeError, TypeError):
        connections.bound(http)
    try:
        frozen = credentials.of_process().get_frozen_credentials()
        SigV4Auth(frozen, "ssm", settings.AWS_REGION).add_auth(request)
        answer = http.send(request.prepare())
        return answer.status_code, answer.content
    except BotoCoreError as error:
        is_temporary = not isinstance(error, NoCredentialsError)
        raise ParameterUnavailable(name, str(error), is_temporary=is_temporary) from error
    finally:
        http.close()


#: The time when this process, or its parent before a fork, last began to read the keys. It is by
#: the wall clock, because other clocks may stop while a function is frozen.
_read_at = -math.inf
_reading = PerProcess(threading.Lock)


def load_keys() -> None:
    """Read the keys for a process that starts. Takes at most `START_SECONDS` and one attempt.

    Raises:
        SystemExit: they cannot be read. Its text is one line for the operator.
    """
    global _read_at
    ends_at = time.monotonic() + START_SECONDS
    while True:
        try:
            with within(ends_at - time.monotonic()):
                _use(_read_keys())
            _read_at = time.time()
            return
        except ParameterUnavailable as error:
            pause = random.uniform(0.1, 0.5)  # noqa: S311 - spreads load
            if not error.is_temporary or time.monotonic() + pause >= ends_at:
                problem = f"DJANGO_SECRET_KEY_PARAMETER cannot be used: {error}."
                raise SystemExit(f"The site cannot start: {problem}") from error
        time.sleep(pause)


def refresh_keys() -> None:
    """Read the keys again if they are old, with one attempt. If it fails, the old keys are kept.

    One thread reads, and the others use the old keys in the meantime. Costs nothing while they are
    fresh.
    """
    global _read_at
    with _reading():
        # `abs`, because the clock may have been set back.
        if abs(time.time() - _read_at) < FRESH_SECONDS:
            return
        _read_at = time.time()
    try:
        with within(CONNECT_SECONDS):
            _use(_read_keys())
    except ParameterUnavailable as error:
        log.warning("The secret keys cannot be read again, so the old ones are used: %s", error)


@sensitive_variables()
def _use(keys: list[str]) -> None:
    # Each assignment is one step for other threads. With this order, and with all keys as
    # fallbacks, every key is valid at any time.
    settings.SECRET_KEY_FALLBACKS = keys
    settings.SECRET_KEY = keys[0]


@sensitive_variables()
def _read_keys() -> list[str]:
    """The keys in the parameter, at least one. Costs 1 request.

    Raises:
        ParameterUnavailable
    """
    lines = [line.strip() for line in read(settings.SECRET_KEY_PARAMETER).splitlines()]
    keys = list(dict.fromkeys(filter(None, lines)))
    if not keys:
        problem = "it contains no key: put one key in each line"
        raise ParameterUnavailable(settings.SECRET_KEY_PARAMETER, problem)
    return keys
