"""System checks of the settings of accounts."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.checks import check_settings

BEHIND_PROXY = ("HTTP_X_FORWARDED_PROTO", "https")


def test_a_tls_proxy_without_trusted_hops_is_a_warning(settings: Any) -> None:
    settings.SECURE_PROXY_SSL_HEADER, settings.ACCOUNTS_TRUSTED_HOPS = BEHIND_PROXY, 0

    assert "accounts.W001" in [finding.id for finding in check_settings(None)]


@pytest.mark.parametrize(("header", "hops"), [(None, 0), (BEHIND_PROXY, 1), (None, 1)])
def test_other_settings_give_no_warning(settings: Any, header: Any, hops: int) -> None:
    settings.SECURE_PROXY_SSL_HEADER, settings.ACCOUNTS_TRUSTED_HOPS = header, hops

    assert "accounts.W001" not in [finding.id for finding in check_settings(None)]
