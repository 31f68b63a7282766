"""One cold start of the Lambda function, in a checkout that is first on the path.

    python -P benchmarks/coldstart_worker.py COOKIES

Prints `{"milliseconds": {step: CPU}, "modules", "megabytes"}`. COOKIES are a signed-in browser's.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

HOST = "bench.example"
CONTEXT = SimpleNamespace(aws_request_id="0" * 32, get_remaining_time_in_millis=lambda: 15_000)

milliseconds: dict[str, float] = {}


@contextmanager
def measured(step: str) -> Iterator[None]:
    """Note the CPU time of the body, in all threads."""
    began = time.process_time()
    yield
    milliseconds[step] = (time.process_time() - began) * 1000


def event(path: str, cookies: str) -> dict[str, Any]:
    """A GET request as a function URL sends it."""
    http = {"method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7"}
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "cookies": cookies.split("; "),
        "headers": {"host": HOST},
        "requestContext": {"http": http},
        "isBase64Encoded": False,
    }


def main() -> None:
    with measured("import"):
        from project.serverless import handler
    cookies = sys.argv[1]
    for step, path, sent in (
        ("/livez", "/livez", ""),
        ("first page", "/accounts/login/", ""),
        ("first request", "/healthz", ""),
        ("signed in", "/", cookies),
        ("again", "/", cookies),
    ):
        with measured(step):
            answer = handler(event(path, sent), CONTEXT)
        if answer["statusCode"] != 200:
            raise SystemExit(f"{path}: {answer['statusCode']}")
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {"modules": len(sys.modules), "megabytes": kilobytes / 1024}
    print(json.dumps({"milliseconds": milliseconds} | found))


if __name__ == "__main__":
    main()
