"""Connections that stood idle are closed, not used again.

A NAT gateway, a firewall or a frozen Lambda drops an idle connection without telling either end.
The next request on it gets no reply, and nobody knows whether it arrived: a repeatable request
loses the time-out, and one that counts up (`ADD`) is lost, as it must not be sent twice. Such
devices wait for minutes before they drop a connection, a frozen process for any time.
"""

from __future__ import annotations

from typing import Any

from urllib3 import HTTPConnectionPool

from dynamo.clock import now

#: A connection that was not used for longer is closed. Opening one costs two or three round trips
#: and is rare where requests are frequent: the pool hands out the connection that was used last.
IDLE_SECONDS = 5.0


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


def close_when_idle(client: Any) -> None:
    """Bound the idle time of the botocore `client`'s connections. Before its first request.

    Raises:
        AttributeError, TypeError: botocore lacks a private name that this relies on.
    """
    # The client's pools, direct or through a proxy, are made from the classes in this dictionary.
    classes: dict[str, Any] = client._endpoint.http_session._pool_classes_by_scheme
    for scheme, pool in list(classes.items()):
        classes[scheme] = type("IdleBoundPool", (_IdleBound, pool), {})
