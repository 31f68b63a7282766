"""The names that botocore does not publish and this package uses, with their types.

Only type checkers import botocore's classes here. If a version of it lacks a name, `client.sending`
sends everything through botocore.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from botocore.exceptions import ClientError
    from botocore.hooks import BaseEventHooks
    from botocore.model import Shape
    from botocore.signers import RequestSigner
    from urllib3 import HTTPConnectionPool, PoolManager

    from dynamo.wire.types import Answer


class HttpSession(Protocol):
    """The object that keeps the connections of a client."""

    _pool_classes_by_scheme: dict[str, type[HTTPConnectionPool]]
    _verify: object

    def _get_connection_manager(self, url: str) -> PoolManager: ...

    def _setup_ssl_cert(self, conn: HTTPConnectionPool, url: str, verify: object) -> None: ...


class _Endpoint(Protocol):
    http_session: HttpSession


# botocore-stubs lacks the types of the following attributes, or has others.
class _Operation(Protocol):
    output_shape: Shape


class _ServiceModel(Protocol):
    def operation_model(self, name: str) -> _Operation: ...

    def shape_for_error_code(self, code: str) -> Shape | None: ...


class _Exceptions(Protocol):
    def from_code(self, code: str) -> Callable[[Answer, str], ClientError]: ...


class _Config(Protocol):
    user_agent: str


class _Meta(Protocol):
    config: _Config
    endpoint_url: str
    events: BaseEventHooks
    service_model: _ServiceModel


class Client(Protocol):
    """A client of DynamoDB."""

    meta: _Meta
    exceptions: _Exceptions
    _endpoint: _Endpoint
    _request_signer: RequestSigner
    _ruleset_resolver: object
