"""Whose request this is, by address: as limits count it.

Behind proxies the connection comes from the last of them. Each adds, at the right of
`X-Forwarded-For`, the address that it was asked from; whatever stands further left may be made up.
`ACCOUNTS_TRUSTED_HOPS` says how many proxies of ours there are.
"""

from __future__ import annotations

import ipaddress
import re

from django.conf import settings
from django.http import HttpRequest

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

#: A provider gives each customer a /64 at least, so single addresses of it are no limit to anybody.
#: Source: RFC 6177, section 2.
IPV6_PREFIX = 64
#: Some customers get a whole /48, so they can change their /64 65,536 times.
IPV6_WIDER_PREFIX = 48

_BRACKETED = re.compile(r"\[([^\[\]]*)\](?::\d+)?")
_IPV4_WITH_PORT = re.compile(r"([\d.]+):\d+")


def client_address(request: HttpRequest) -> Address | None:
    """The client's address; None where the server does not know one, as behind a Unix socket.

    A header with fewer entries than there are proxies did not come their way: nothing in it is
    believed, and the address is that of the connection.
    """
    return _forwarded(request) or _parsed(request.META.get("REMOTE_ADDR", ""))


def counted_client(request: HttpRequest) -> str:
    """The client as limits count it: an IPv4 address, an IPv6 network, or all who have none."""
    address = client_address(request)
    if address is None:
        return "unknown"
    if address.version == 4:
        return str(address)
    return _network(int(address), IPV6_PREFIX)


def wider_network(client: str) -> str | None:
    """The /48 around an IPv6 network as `counted_client` gives it; None for any other client."""
    address, slash, _prefix = client.partition("/")
    if not slash:
        return None
    return _network(int(ipaddress.IPv6Address(address)), IPV6_WIDER_PREFIX)


def _network(address: int, prefix: int) -> str:
    host_bits = 128 - prefix
    return f"{ipaddress.IPv6Address(address >> host_bits << host_bits)}/{prefix}"


def _forwarded(request: HttpRequest) -> Address | None:
    hops: int = settings.ACCOUNTS_TRUSTED_HOPS
    entries = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    if not hops or len(entries) < hops:
        return None
    return _parsed(entries[-hops])


def _parsed(text: str) -> Address | None:
    """The address in `1.2.3.4:5678`, `[2001:db8::1]:443` and the like; None where it is none."""
    bare = text.strip()
    for form in (_BRACKETED, _IPV4_WITH_PORT):
        if match := form.fullmatch(bare):
            bare = match[1]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    # A server that listens on both writes IPv4 clients so; as IPv6 they would be one network.
    return getattr(address, "ipv4_mapped", None) or address
