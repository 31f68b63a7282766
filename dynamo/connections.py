"""Connections that stood idle are closed, not used again.

A NAT gateway, a firewall or a frozen Lambda drops an idle connection without telling either end.
The next request on it gets no reply, and nobody knows whether it arrived: a repeatable request
loses the time-out, and one that counts up (`ADD`) is lost, as it must not be sent twice. Such
devices wait for minutes before they drop a connection, a frozen process for any time.
"""

from __future__ import annotations

import logging
from typing import Any

from botocore.awsrequest import AWSHTTPConnectionPool, AWSHTTPSConnectionPool
from urllib3 import HTTPConnectionPool

from dynamo.clock import now

#: A connection that was not used for longer is closed. Opening one costs two or three round trips
#: and is rare where requests are frequent: the pool hands out the connection that was used last.
IDLE_SECONDS = 5.0

log = logging.getLogger(__name__)


class _IdleBound(HTTPConnectionPool):
    def _get_conn(self, timeout: float | None = None) -> Any:
        connection: Any = super()._get_conn(timeout)
        # Counted on a clock that runs during suspend. Closed, it connects again by itself.
        if now() - getattr(connection, "idle_since", now()) > IDLE_SECONDS:
            connection.close()
        return connection

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            conn.idle_since = now()
        super()._put_conn(conn)


class _HTTPPool(_IdleBound, AWSHTTPConnectionPool):
    """botocore's, with the bound."""


class _HTTPSPool(_IdleBound, AWSHTTPSConnectionPool):
    """botocore's, with the bound."""


def close_when_idle(client: Any) -> None:
    """Bound the idle time of the `client`'s connections, before it makes the first."""
    try:
        # One dictionary, which its managers of direct and of proxied connections share.
        classes = client._endpoint.http_session._pool_classes_by_scheme
    except AttributeError as error:
        log.warning("Idle connections are not closed: this botocore is unknown (%s).", error)
        return
    classes.update({"http": _HTTPPool, "https": _HTTPSPool})
