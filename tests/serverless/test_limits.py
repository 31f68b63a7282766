"""The limits of a function: memory, and the time that a mail may take."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.mail.backends.smtp import EmailBackend

from accounts.emails import mails
from dynamo.runtime.deadline import at_most
from tests.serverless.runtime import Function
from tests.serverless.test_story import issue, sign_up, submit

#: docs/lambda.md names it.
MOST_MEGABYTES = 200


def megabytes(function: Function) -> float:
    """The most memory that the function has had."""
    status = Path(f"/proc/{function.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def test_hashes_and_pdfs_fit_into_the_documented_memory(
    new_function: Callable[..., Function],
) -> None:
    # A fork would share memory, and have other packages loaded.
    with new_function(python=Path(sys.executable)) as function:
        sign_up(function)
        for _attempt in range(5):
            reply = submit(function, "/accounts/login/", username="ann", password="wrong")
            assert reply.status == 200
        for customer in ("Bob & Söhne", "株式会社サンプル"):
            invoice = issue(function, customer_name=customer)
            assert function.request("GET", invoice.rstrip("/") + ".pdf").status == 200

        assert megabytes(function) < MOST_MEGABYTES


def test_a_mail_waits_no_longer_than_the_function_has_time(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    waits: list[float] = []

    def opened(backend: EmailBackend) -> None:
        waits.append(float(backend.timeout or 0))
        raise OSError

    monkeypatch.setattr(EmailBackend, "open", opened)
    with at_most(5.0), pytest.raises(OSError):  # noqa: PT011 - that of the line above
        mails.deliver("reset_unknown", "ann@example.org", "en", sign_up="http://testserver/")

    [seconds] = waits
    assert 0 < seconds <= 5.0
