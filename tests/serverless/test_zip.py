"""The zip of the function, run by AWS's runtime client with nothing else on the path."""

import platform
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.parameters import Parameter
from tests.serverless.runtime import Function
from tests.serverless.test_story import issue, post, sign_up

pytestmark = pytest.mark.slow

#: Their check digits, names and currencies come from data of packages.
PAGES = {
    "/accounts/profile/": {"full_name": "Ann Example", "language": "ja", "time_zone": "Asia/Tokyo"},
    "/invoices/seller/": {"address": "1 Road", "country": "DE", "vat_id": "DE136695976"},
    "/invoices/seller/payment/": {
        "iban": "DE89370400440532013000",
        "bic": "COBADEFFXXX",
        "currency": "EUR",
        "payment_days": "14",
    },
}

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
ARCH = {"x86_64": "x86_64", "aarch64": "arm64"}[platform.machine()]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked zip, for the Python and the machine of this test."""
    folder = tmp_path_factory.mktemp("zip")
    packed = folder / "function.zip"
    command = [sys.executable, ROOT / "deploy" / "lambda_zip.py", "--python", VERSION]
    done = subprocess.run(
        [*command, "--arch", ARCH, packed], check=True, capture_output=True, text=True
    )
    assert "MB unpacked" in done.stdout
    with zipfile.ZipFile(packed) as file:
        file.extractall(folder / "task")
    return folder / "task"


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has AWS's runtime client and no other package."""
    folder = tmp_path_factory.mktemp("runtime")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    lock = (ROOT / "requirements-dev.lock").read_text()
    [wanted] = [line for line in lock.splitlines() if line.startswith("awslambdaric==")]
    install = [python, "-I", "-m", "pip", "install", "--quiet", wanted.split(";")[0].strip()]
    subprocess.run(install, check=True)
    return python


def test_the_zip_serves_the_site_alone(
    engine: str,
    unpacked: Path,
    runtime: Path,
    environment: dict[str, str],
    parameter: Parameter,
    tmp_path: Path,
) -> None:
    # The zip has no description of SSM, and needs none.
    environment = environment | parameter.environment
    parameter.put(environment.pop("DJANGO_SECRET_KEY"))
    with Function(environment, folder=unpacked, python=runtime, log=tmp_path / "log") as function:
        sign_up(function)
        for page, values in PAGES.items():
            assert post(function, page, **values) == page
        more = {"customer_country": "FR", "supplied_from": "2026-01-15", "payment_terms": "14 days"}
        invoice = issue(function, **more).rstrip("/")
        pdf = function.request("GET", f"{invoice}.pdf")
        xml = function.request("GET", f"{invoice}.xml")
        found = re.search(r'href="(/static/[^"]+\.css)"', function.request("GET", "/").text)
        assert found is not None
        style = function.request("GET", found[1])

    assert pdf.body.startswith(b"%PDF-")
    assert b"<ram:IBANID>DE89370400440532013000<" in xml.body
    assert style.status == 200
    assert "immutable" in style.headers["cache-control"]
