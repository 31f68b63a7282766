"""System checks of the settings that concern accounts, run by `check --deploy`.

accounts.W001   behind a proxy, all visitors count as one client
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register


@register(Tags.security, deploy=True)
def check_trusted_hops(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A warning where a proxy is believed about TLS but not about whom it serves."""
    is_behind_proxy = settings.SECURE_PROXY_SSL_HEADER is not None
    if not is_behind_proxy or settings.ACCOUNTS_TRUSTED_HOPS:
        return []
    return [
        Warning(
            "The site is behind a proxy and ACCOUNTS_TRUSTED_HOPS is 0: all visitors have the "
            "proxy's address, and share the limits of one client.",
            hint="Set ACCOUNTS_TRUSTED_HOPS to the number of proxies that write X-Forwarded-For.",
            id="accounts.W001",
        )
    ]
