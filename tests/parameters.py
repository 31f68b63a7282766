"""A SecureString parameter on an engine of SSM behind a fault proxy."""

import uuid
from typing import Any

import boto3

from tests.faults.proxy import FaultProxy

READ = "GetParameter"


class Parameter:
    """A parameter that a site may read; without `put` it does not exist."""

    def __init__(self, url: str, proxy: FaultProxy) -> None:
        self.name = f"/site/{uuid.uuid4()}/secret-keys"
        self.proxy = proxy
        self._client: Any = boto3.client("ssm", "us-east-1", endpoint_url=url)

    @property
    def environment(self) -> dict[str, str]:
        """What a site that reads it has in its environment, instead of a key."""
        return {
            "DJANGO_SECRET_KEY_PARAMETER": self.name,
            "AWS_ENDPOINT_URL_SSM": self.proxy.url,
            "AWS_REGION": "us-east-1",
        }

    @property
    def times_read(self) -> int:
        """How often a site has asked for it."""
        return self.proxy.count(READ)

    def put(self, *keys: str, kind: str = "SecureString") -> None:
        """Store these values, one per line."""
        value = "\n".join(keys) + "\n"
        self._client.put_parameter(Name=self.name, Value=value, Type=kind, Overwrite=True)
