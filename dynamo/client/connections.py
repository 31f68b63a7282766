"""Connections whose name lookup does not block, and which are closed after they were idle.

`getaddrinfo` obeys no time-out, not even the connection time-out: with a name server that never
answers, `/healthz` took 20 s. Therefore, a daemon thread looks up the host's name, and the time
that a connection waits for it counts against its connection time-out. While the name server does
not answer, the last addresses are used. TLS checks the host's name as usual.

A NAT gateway, a firewall or a frozen Lambda drops an idle connection without telling either end.
The next request on it gets no reply, and it is unknown whether it arrived. A repeatable request is
delayed by the time-out, and an `ADD` fails, because it must not be sent twice. Gateways and
firewalls drop a connection that was idle for minutes. A process may be frozen for any time.
"""

from __future__ import annotations

import ipaddress
import math
import socket
import time
from typing import TYPE_CHECKING, cast

from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util import connection

from dynamo.client.private import HttpSession
from dynamo.runtime.clock import now
from dynamo.runtime.processes import Background, PerProcess

if TYPE_CHECKING:
    from urllib3._base_connection import BaseHTTPConnection

#: Addresses are used for this time before the name is looked up again. DynamoDB's records are valid
#: for the same time.
FRESH_SECONDS = 5.0

#: Addresses are used for this time while the name server does not answer.
STALE_SECONDS = 3600.0

#: When a lookup takes longer than this, another thread looks up the name as well.
STUCK_SECONDS = 10.0

#: The time-out of a connection whose configuration has none.
_DEFAULT_SECONDS = 5.0

#: A connection that was idle for longer is closed. Opening one costs two or three round trips, and
#: is rare under load, because the pool hands out the connection that was used last.
IDLE_SECONDS = 5.0

# The keys are the hosts of the clients' endpoints, so their number does not grow.
_lookups: PerProcess[dict[str, Background[list[str]]]] = PerProcess(dict)


def bound(http_session: object) -> None:
    """Bound the name lookups and the idle time of the connections of botocore's `http_session`.

    Call it before its first request.

    Raises:
        AttributeError, TypeError: botocore lacks a private name that this relies on.
    """
    # The session makes its pools, direct or through a proxy, from the classes in this dictionary.
    classes = cast(HttpSession, http_session)._pool_classes_by_scheme
    for scheme, pool in list(classes.items()):
        connects = type("BoundedConnection", (_Connection, pool.ConnectionCls), {})
        classes[scheme] = type("BoundedPool", (_Pool, pool), {"ConnectionCls": connects})


class _Pool(HTTPConnectionPool):
    """Closes a connection that was idle; a closed one connects again by itself."""

    def _get_conn(self, timeout: float | None = None) -> BaseHTTPConnection:
        connection = super()._get_conn(timeout)
        if now() - cast(_Connection, connection).idle_since > IDLE_SECONDS:
            connection.close()
        return connection

    def _put_conn(self, conn: BaseHTTPConnection | None) -> None:
        if conn is not None:
            cast(_Connection, conn).idle_since = now()
        super()._put_conn(conn)


class _Connection(HTTPConnection):
    """Looks up its host and tries its addresses, all within the connection time-out."""

    #: The time when the connection was given back to its pool; infinity for a new connection.
    idle_since = math.inf

    def _new_conn(self) -> socket.socket:
        seconds = self.timeout if isinstance(self.timeout, (int, float)) else _DEFAULT_SECONDS
        ends_at = time.monotonic() + seconds
        try:
            # `_dns_host` keeps the final dot of a name, which `host` does not have.
            found = addresses(self._dns_host, seconds)
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        failure: OSError = TimeoutError()
        for number, address in enumerate(found, start=1):
            left = ends_at - time.monotonic()
            if left <= 0:
                break
            try:
                return connection.create_connection(
                    (address, self.port),
                    # An address gets half of the time, so that some time is left for the others.
                    left if number == len(found) else left / 2,
                    source_address=self.source_address,
                    socket_options=self.socket_options,
                )
            except OSError as error:
                failure = error
        if isinstance(failure, TimeoutError):
            text = f"Connection to {self.host} timed out. (connect timeout={seconds})"
            raise ConnectTimeoutError(self, text) from failure
        text = f"Failed to establish a new connection: {failure}"
        raise NewConnectionError(self, text) from failure


def addresses(host: str, seconds: float) -> list[str]:
    """The addresses of `host`; waits for its name server for at most `seconds`.

    Raises:
        socket.gaierror: the name is unknown, or no answer came in time.
    """
    bare = host.strip("[]")
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        return _looked_up(bare, seconds)
    return [bare]


def _looked_up(host: str, seconds: float) -> list[str]:
    made = Background(f"Looking up {host}", lambda: _ask(host), stuck_seconds=STUCK_SECONDS)
    lookup = _lookups().setdefault(host, made)
    if lookup.value and time.monotonic() - lookup.value_at < FRESH_SECONDS:
        return lookup.value
    ended = lookup.ended
    lookup.start()
    if lookup.value:
        # If there are old addresses, leave time to connect to them. Only the first callers wait for
        # a lookup that hangs.
        seconds = seconds / 2 - lookup.seconds_under_way
    lookup.wait(ended, seconds)
    if lookup.value and time.monotonic() - lookup.value_at < STALE_SECONDS:
        return lookup.value
    error = lookup.error if lookup.ended > ended else None
    raise socket.gaierror(socket.EAI_AGAIN, str(error or "no answer in time")) from error


def _ask(host: str) -> list[str]:
    family = connection.allowed_gai_family()
    found = socket.getaddrinfo(host, None, family, socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]
