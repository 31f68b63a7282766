"""What every test of locks leaves behind: no lease that is still renewed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from locks import heartbeats


@pytest.fixture(autouse=True)
def _nothing_is_renewed_afterwards() -> Iterator[None]:
    yield
    for lease in list(heartbeats._of_process._due):
        heartbeats.drop(lease)
