"""Secrets in SecureString parameters of AWS Systems Manager (SSM).

One request, signed by botocore and sent by its HTTP session. botocore's client for SSM would take
0.1 s of CPU and 14 MB at every cold start, to read its description of SSM.
"""

from __future__ import annotations

import json
from contextlib import suppress

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, NoCredentialsError
from botocore.httpsession import URLLib3Session
from botocore.session import Session
from botocore.utils import get_environ_proxies
from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from dynamo.extending import addressing, connections, credentials

#: The time-outs of one attempt.
CONNECT_SECONDS = 1.0
READ_SECONDS = 1.5

_TEMPORARY = {"InternalServerError", "ThrottlingException"}


class ParameterUnavailable(OSError):
    """A parameter was not read, or is not usable; `is_temporary`: another try may help."""

    def __init__(self, name: str, problem: str, *, is_temporary: bool = False) -> None:
        super().__init__(f"{name}: {problem}".rstrip("."))
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
            problem = _in_one_line(f"{code} {text}")
            raise ParameterUnavailable(name, problem, is_temporary=is_temporary)
        kind, value = answer["Parameter"]["Type"], str(answer["Parameter"]["Value"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        # Not with its text, which could contain the secret.
        problem = f"the answer ({status}) is not SSM's"
        raise ParameterUnavailable(name, problem, is_temporary=True) from error
    if kind != "SecureString":
        raise ParameterUnavailable(name, f"it is a {kind}: make it a SecureString")
    return value


@sensitive_variables()
def _exchange(name: str) -> tuple[int, bytes]:
    url = addressing.configured_endpoint("ssm") or _endpoint(settings.AWS_REGION)
    body = json.dumps({"Name": name, "WithDecryption": True})
    headers = {
        "Content-Type": "application/x-amz-json-1.1",
        "X-Amz-Target": "AmazonSSM.GetParameter",
    }
    request = AWSRequest("POST", url, headers, body.encode())
    # A new one each time: minutes later its connection could be dead.
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
        raise ParameterUnavailable(
            name, _in_one_line(str(error)), is_temporary=is_temporary
        ) from error
    finally:
        http.close()


def _endpoint(region: str) -> str:
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://ssm.{region}.{suffix}/"


def _in_one_line(text: str) -> str:
    return " ".join(text.split())[:300]
