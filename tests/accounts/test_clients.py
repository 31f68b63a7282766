"""The client of a request: its address, which only trusted proxies may state, and its browser."""

from typing import Any

from django.test import RequestFactory

from accounts.limits.clients import browser_name, client_address, counted_client

PROXY = "10.0.0.1"


def counted(forwarded: str | None = None, remote: str = PROXY) -> str:
    headers = {} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded}
    return counted_client(RequestFactory().get("/", REMOTE_ADDR=remote, **headers))


#: The number of trusted proxies, the header, and the client that they name.
FORWARDED = [
    *((0, header, PROXY) for header in (None, "", "203.0.113.7", "203.0.113.7, 203.0.113.8", "x")),
    # Written by the first trusted proxy
    (1, "203.0.113.7", "203.0.113.7"),
    (1, "6.6.6.6, 203.0.113.7", "203.0.113.7"),
    (1, "6.6.6.6,203.0.113.7", "203.0.113.7"),
    (1, "forged, [, ,203.0.113.7 ", "203.0.113.7"),
    (2, "203.0.113.7, 10.0.0.2", "203.0.113.7"),
    (2, "6.6.6.6, 203.0.113.7, 10.0.0.2", "203.0.113.7"),
    (3, "6.6.6.6, 203.0.113.7, 10.0.0.3, 10.0.0.2", "203.0.113.7"),
    # Too few entries
    *((2, header, PROXY) for header in (None, "", "203.0.113.7", "6.6.6.6")),
    # Entries that are not addresses
    *((1, f"6.6.6.6, {entry}", PROXY) for entry in ("unknown", "_hidden", "", " ", "1.2.3")),
    *((1, f"6.6.6.6, {entry}", PROXY) for entry in ("1.2.3.4.5", "999.1.1.1", "[", "]:1")),
    (1, f"6.6.6.6, {'x' * 9999}", PROXY),
]


def test_the_client_is_the_entry_that_the_first_trusted_proxy_wrote_or_the_connection(
    settings: Any,
) -> None:
    for hops, header, client in FORWARDED:
        settings.ACCOUNTS_TRUSTED_HOPS = hops
        assert counted(header) == client, header


def test_ports_and_brackets_are_removed_and_ipv6_counts_by_network(settings: Any) -> None:
    for written, client in (
        ("203.0.113.7:4711", "203.0.113.7"),
        ("[2001:db8::1]:443", "2001:db8::/64"),
        ("[2001:db8::1]", "2001:db8::/64"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:DB8:0:0:ffff:ffff:ffff:ffff", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("[::ffff:203.0.113.7]:80", "203.0.113.7"),
    ):
        settings.ACCOUNTS_TRUSTED_HOPS = 0
        assert counted(remote=written) == client
        settings.ACCOUNTS_TRUSTED_HOPS = 1
        assert counted(written) == client


def test_clients_without_an_address_share_a_counter() -> None:
    for remote in ("", "unix:", "\0"):
        assert counted(remote=remote) == "unknown"
        assert client_address(RequestFactory().get("/", REMOTE_ADDR=remote)) is None


LINUX_FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


NAMES = [
        (LINUX_FIREFOX, "Firefox on Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/141.0.0.0 Safari/537.36",
         "Chrome on Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0) {WEBKIT} Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0",
         "Edge on Windows"),
        (f"Mozilla/5.0 (X11; CrOS x86_64) {WEBKIT} Chrome/141.0.0.0 Safari/537.36 OPR/120.0",
         "Opera on ChromeOS"),
        (f"Mozilla/5.0 (Linux; Android 15; K) {WEBKIT} SamsungBrowser/28.0 Chrome/130 Safari/537",
         "Samsung Internet on Android"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"
         " Version/18.6 Safari/605.1.15", "Safari on macOS"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
         "Gecko) CriOS/141.0 Mobile/15E148 Safari/604.1", "Chrome on iPhone"),
        ("curl/8.5.0", "curl"),
        ("", "Unknown browser"),
        ("<script>alert(1)</script>", "Unknown browser"),
]  # fmt: skip


def test_a_browser_is_named_in_a_few_words() -> None:
    assert [(said, browser_name(said)) for said, _words in NAMES] == NAMES
