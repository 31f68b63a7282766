"""S3 for the tests of uploads: ministack, which supports If-None-Match and checks checksums."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.retries.standard import ExponentialBackoff

from tests.uploads.s3_proxy import S3Proxy, through
from tests.uploads.samples import PART_BYTES, Storage
from uploads import claims, contents, s3 as uploads_s3


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="module")
def _modules_s3_proxy(s3_url: str) -> Iterator[S3Proxy]:
    # One for a module, as each takes a client of its own, which is slow to make.
    with pytest.MonkeyPatch.context() as patch, S3Proxy(s3_url) as proxy:
        patch.setattr(uploads_s3, "ATTEMPTS", 3)
        # Otherwise up to three seconds in all.
        patch.setattr(ExponentialBackoff, "delay_amount", lambda _self, _context: 0.01)
        with through(proxy.url):
            yield proxy


@pytest.fixture
def s3_proxy(_modules_s3_proxy: S3Proxy) -> Iterator[S3Proxy]:
    """A proxy before S3, through which all uploads of the module go from its first use on."""
    _modules_s3_proxy.forget()
    yield _modules_s3_proxy
    _modules_s3_proxy.forget()


@pytest.fixture
def logs(engine: str, bucket: str) -> str:
    """Where a command uploads to: a prefix of an empty bucket."""
    return f"s3://{bucket}/logs"


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 1 MiB. `test_contents.py` and `test_stored_rows.py` have real ones."""
    monkeypatch.setattr(contents, "PART_BYTES", PART_BYTES)


@pytest.fixture
def storage(
    engine: str, bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path, small_parts: None
) -> Storage:
    return Storage(bucket, s3, s3_proxy, tmp_path)


@pytest.fixture(autouse=True)
def _often_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at other processes ten times as often, so that tests wait less."""
    monkeypatch.setattr(claims, "POLL_SECONDS", 0.1)
