"""The client of a request: its address, how rate limits count it, the name of its browser.

Behind proxies the connection comes from the last proxy. Each proxy appends the address of its
client to `X-Forwarded-For`; the entries before can be forged. `ACCOUNTS_TRUSTED_HOPS` is the number
of our proxies.
"""

import ipaddress
import re
from functools import lru_cache

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Each customer of a provider has at least a /64, so single addresses would not limit a client.
#: Source: RFC 6177, section 2.
IPV6_PREFIX = 64
#: Some customers get a whole /48, so they can change their /64 65,536 times.
IPV6_WIDER_PREFIX = 48

_BRACKETED = re.compile(r"\[([^\[\]]*)\](?::\d+)?")
_IPV4_WITH_PORT = re.compile(r"([\d.]+):\d+")


# The order matters, because a browser also names those that it is compatible with.
_BROWSERS = [
    ("Edge", r"\bEdg(e|A|iOS)?/"),
    ("Opera", r"\b(OPR|OPT|Opera)\b"),
    ("Samsung Internet", r"\bSamsungBrowser/"),
    ("Vivaldi", r"\bVivaldi/"),
    ("Firefox", r"\b(Firefox|FxiOS)/"),
    ("Chrome", r"\b(Chrome|CriOS|Chromium|HeadlessChrome)/"),
    ("Safari", r"\bVersion/[\d.]+ .*Safari/"),
    ("Internet Explorer", r"\b(MSIE |Trident/)"),
    ("curl", r"^curl/"),
]
_SYSTEMS = [
    ("iPhone", r"\biPhone\b"),
    ("iPad", r"\biPad\b"),
    ("Android", r"\bAndroid\b"),
    ("Windows", r"\bWindows\b"),
    ("ChromeOS", r"\bCrOS\b"),
    ("macOS", r"\bMac OS X\b|\bMacintosh\b"),
    ("Linux", r"\bLinux\b|\bX11\b"),
]


def client_address(request: HttpRequest) -> Address | None:
    """The client's address; None if the server does not know it, for example with a Unix socket.

    If the header has fewer entries than there are proxies, the request did not come through them.
    Then the header is ignored, and the address is that of the connection.
    """
    hops: int = settings.ACCOUNTS_TRUSTED_HOPS
    entries = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    forwarded = _parsed(entries[-hops]) if 0 < hops <= len(entries) else None
    return forwarded or _parsed(request.META.get("REMOTE_ADDR", ""))


def counted_client(request: HttpRequest) -> str:
    """The client as limits count it: an IPv4 address, an IPv6 /64, or "unknown"."""
    address = client_address(request)
    if address is None:
        return "unknown"
    if address.version == 4:
        return str(address)
    return str(ipaddress.IPv6Network((int(address), IPV6_PREFIX), strict=False))


def wider_network(client: str) -> str | None:
    """The /48 that contains the /64 of `counted_client`; None for any other client."""
    if "/" not in client:
        return None
    return str(ipaddress.IPv6Network(client).supernet(new_prefix=IPV6_WIDER_PREFIX))


@lru_cache(maxsize=1000)
def _parsed(text: str) -> Address | None:
    """The address in a text such as `1.2.3.4:5678` or `[2001:db8::1]:443`, if there is one."""
    bare = text.strip()
    for form in (_BRACKETED, _IPV4_WITH_PORT):
        if match := form.fullmatch(bare):
            bare = match[1]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    # A dual-stack server maps IPv4 clients to IPv6, where they would all be in one network.
    return getattr(address, "ipv4_mapped", None) or address


def browser_name(user_agent: str) -> str:
    """The browser and its system, as far as they are known, in the language of the page.

    People recognize a session by it. It proves nothing, because a browser can send any text.
    """
    browser = _first(_BROWSERS, user_agent)
    system = _first(_SYSTEMS, user_agent)
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system or _("Unknown browser")


def _first(names: list[tuple[str, str]], text: str) -> str:
    return next((name for name, pattern in names if re.search(pattern, text)), "")
