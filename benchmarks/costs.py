"""What does the site cost in a month? `python -m benchmarks.costs`

Measures each page of a mix on one instance of the Lambda function (AWS's runtime client) and a new
dynoxide: units of DynamoDB, CPU, bytes sent and logged. Then it multiplies by AWS's prices and
prints a table in Markdown. Takes half a minute.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.cookies import SimpleCookie
from pathlib import Path

from benchmarks.arguments import asked
from benchmarks.scale import prices
from tests import engines
from tests.serverless.runtime import Function, Reply

LOADS = (100, 10_000, 1_000_000)

HOURS = 730.0
GB = 1e9

# Prices of us-east-1, on demand, without free tiers, in dollars. AWS's pages build their tables by
# script, so most were read in stored copies of the pages and in articles of 2024 to 2026.
READ_ON = "2026-11-22"

#: https://aws.amazon.com/lambda/pricing/ (arm64; since August 2025 the start of a process, too)
LAMBDA_REQUEST = 0.20e-6
LAMBDA_GB_SECOND = 0.0000133334
#: https://aws.amazon.com/api-gateway/pricing/ (HTTP API)
API_REQUEST = 1.00e-6
#: https://aws.amazon.com/s3/pricing/ (PUT and LIST: `prices.PUT_DOLLARS`)
S3_GB_MONTH = 0.023
#: https://aws.amazon.com/cloudwatch/pricing/
LOG_GB = 0.50
LOG_GB_MONTH = 0.03
#: https://aws.amazon.com/ec2/pricing/on-demand/ (from AWS to the internet)
TRANSFER_GB = 0.09
#: https://aws.amazon.com/cloudfront/pricing/ (North America and Europe; the price of a request was
#: not in the copy that was read)
CLOUDFRONT_GB = 0.085
CLOUDFRONT_REQUEST = 0.01 / 10_000
#: https://aws.amazon.com/fargate/pricing/ (Linux, ARM)
FARGATE_CPU_HOUR = 0.03238
FARGATE_GB_HOUR = 0.00356
#: https://aws.amazon.com/elasticloadbalancing/pricing/ and https://aws.amazon.com/vpc/pricing/
BALANCER_HOUR = 0.0225
IPV4_HOUR = 0.005
#: https://aws.amazon.com/rds/postgresql/pricing/ (db.t4g.micro, one zone, and gp3)
RDS_HOUR = 0.016
RDS_GB_MONTH = 0.115

# Assumptions

MEMORY_GB = 1.0
#: A function has this much memory for one vCPU.
#: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
GB_OF_VCPU = 1.769
#: A request to DynamoDB from the same region; those of a page are counted one after another.
DYNAMODB_SECONDS = 0.005
#: Requests of one visit. Each visit is taken to start a process: too many on a busy site.
VISIT_REQUESTS = 20
#: Files that a visitor's browser has not stored yet, which CloudFront has: bytes and requests.
STATIC_BYTES, STATIC_REQUESTS = 25_000, 3
#: The lines START, END and REPORT of an invocation.
LAMBDA_LOG_BYTES = 400
#: Invoices are kept for so long; logs for a month.
MONTHS = 12
#: One export of 1 MB in so many requests, kept for a day. It takes 5 PUT and LIST requests.
EXPORT_EVERY, EXPORT_GB, EXPORT_REQUESTS = 1_000, 0.001, 5
ZIP_GB = 0.06
FARGATE_CPU, FARGATE_GB = 0.25, 1.0
RDS_GB = 20

#: How often a page is among 100 requests.
MIX = {
    "start page, signed in": 25,
    "list of invoices": 20,
    "an invoice": 20,
    "an invoice as PDF": 5,
    "form of a new invoice": 7,
    "issuing an invoice": 7,
    "form to sign in": 5,
    "signing in": 5,
    "start page, signed out": 6,
}


@dataclass(frozen=True)
class Cost:
    """What one request takes."""

    cpu_seconds: float
    requests: float
    reads: float
    writes: float
    sent_bytes: float
    log_bytes: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(self._all(), other._all(), strict=True)))

    def __mul__(self, times: float) -> Cost:
        return Cost(*(item * times for item in self._all()))

    def _all(self) -> tuple[float, ...]:
        return tuple(vars(self).values())

    @property
    def seconds(self) -> float:
        """How long it runs in a function."""
        share = min(1.0, MEMORY_GB / GB_OF_VCPU)
        return self.cpu_seconds / share + self.requests * DYNAMODB_SECONDS


NOTHING = Cost(0, 0, 0, 0, 0, 0)


class Meter:
    """Reads what an instance of the function has taken so far."""

    def __init__(self, function: Function, log: Path) -> None:
        self._function = function
        self._log = log

    def cost_of(self, acts: Sequence[Callable[[], Reply]], status: int) -> Cost:
        """The mean of the requests that `acts` send."""
        began = self.cpu_seconds()
        offset = self._log.stat().st_size
        replies = [act() for act in acts]
        cpu = self.cpu_seconds() - began
        wrong = [reply for reply in replies if reply.status != status]
        if wrong:
            raise SystemExit(f"The site answered {wrong[0].status}: {wrong[0].body[:500]!r}")
        logged = self._log.read_bytes()[offset:]
        lines = [json.loads(line) for line in logged.splitlines() if b"milliseconds" in line]

        def of_lines(name: str) -> float:
            return float(sum(line[name] for line in lines))

        total = Cost(
            cpu,
            of_lines("dynamodbRequests"),
            of_lines("readUnits"),
            of_lines("writeUnits"),
            sum(map(_bytes_of, replies)),
            len(logged),
        )
        return total * (1 / len(acts))

    def cpu_seconds(self) -> float:
        """The CPU time of the process. Source: proc(5), utime and stime."""
        stat = Path(f"/proc/{self._function.process.pid}/stat").read_text()
        user, system = stat.rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _bytes_of(reply: Reply) -> int:
    headers = sum(len(name) + len(value) + 4 for name, value in reply.headers.items())
    return len(reply.body) + headers + sum(map(len, reply.cookies))


def main() -> None:
    """Measure, compute and print."""
    [times] = asked(__doc__, times=50)
    with _function() as (function, log):
        meter = Meter(function, log)
        # With what only the first page and the first request to DynamoDB take.
        for path in ("/accounts/login/", "/healthz"):
            function.request("GET", path)
        start = meter.cpu_seconds()
        measured = dict(_measured(function, meter, times))
        for line in _page(measured, start):
            print(line)


@contextmanager
def _function() -> Iterator[tuple[Function, Path]]:
    """An instance of the site's function on a new engine, and its log."""
    with engines.running("dynoxide") as url, tempfile.TemporaryDirectory() as name:
        os.environ.update(
            DJANGO_SETTINGS_MODULE="project.settings",
            DJANGO_DEBUG="on",
            DJANGO_SECRET_KEY="of-the-benchmarks-alone",  # noqa: S106 - signs nothing that lasts
            DYNAMODB_TABLE_PREFIX="",
            AWS_ENDPOINT_URL_DYNAMODB=url,
            AWS_REGION="us-east-1",
            AWS_ACCESS_KEY_ID="benchmarks",
            AWS_SECRET_ACCESS_KEY="benchmarks",  # noqa: S106 - opens nothing
        )
        import django

        django.setup()

        from dynamo.tables import definitions as tables
        from tests.production import PRODUCTION, checkout_in, collect_into

        for table in tables.all_tables():
            tables.create(table)
        folder = Path(name)
        checkout_in(folder)
        collect_into(folder / "staticfiles")
        environment = PRODUCTION | {
            "AWS_ENDPOINT_URL_DYNAMODB": url,
            "AWS_REGION": "us-east-1",
            "ACCOUNTS_PREVENT_ENUMERATION": "off",
            "EMAIL_URL": "dummymail://",
        }
        log = folder / "log"
        with Function(environment, folder=folder, log=log) as function:
            yield function, log


def _measured(function: Function, meter: Meter, times: int) -> Iterator[tuple[str, Cost]]:
    from tests.factories import PASSWORD
    from tests.serverless.test_story import hidden, issue, sign_up

    def get(path: str) -> Sequence[Callable[[], Reply]]:
        return [partial(function.request, "GET", path)] * times

    sign_up(function)
    invoice = issue(function)
    function.request("GET", invoice.rstrip("/") + ".pdf")  # the first one loads fonts
    for name, path in (
        ("start page, signed in", "/"),
        ("list of invoices", "/invoices/"),
        ("an invoice", invoice),
        ("an invoice as PDF", invoice.rstrip("/") + ".pdf"),
        ("form of a new invoice", "/invoices/new/"),
    ):
        yield name, meter.cost_of(get(path), 200)

    forms = []
    for _number in range(times):
        page = function.request("GET", "/invoices/new/").text
        forms.append({name: hidden(page, name) for name in ("csrfmiddlewaretoken", "request_id")})
    line = {"description": "Work", "quantity": "8", "unit_price": "95.50", "vat_rate": "19"}
    values = {
        "customer_name": "A customer",
        "customer_address": "1 Road",
        "currency": "EUR",
        "lines-TOTAL_FORMS": "1",
        "lines-INITIAL_FORMS": "0",
    } | {f"lines-0-{name}": value for name, value in line.items()}
    acts = [partial(function.request, "POST", "/invoices/new/", values | form) for form in forms]
    yield "issuing an invoice", meter.cost_of(acts, 302)

    pages: list[tuple[SimpleCookie, str]] = []

    def form_to_sign_in() -> Reply:
        function.cookies = SimpleCookie()
        reply = function.request("GET", "/accounts/login/")
        pages.append((function.cookies, hidden(reply.text, "csrfmiddlewaretoken")))
        return reply

    yield "form to sign in", meter.cost_of([form_to_sign_in] * times, 200)
    number = itertools.count()

    def sign_in() -> Reply:
        function.cookies, token = pages[next(number)]
        sent = {"username": "ann", "password": PASSWORD, "csrfmiddlewaretoken": token}
        return function.request("POST", "/accounts/login/", sent)

    yield "signing in", meter.cost_of([sign_in] * times, 302)
    function.cookies = SimpleCookie()
    yield "start page, signed out", meter.cost_of(get("/"), 200)


def _page(measured: dict[str, Cost], start: float) -> Iterator[str]:
    from benchmarks.scale.operations import stored_bytes

    yield f"Measured on {time.strftime('%Y-%m-%d')}:"
    yield ""
    yield "| page | of 100 | CPU ms | requests to DynamoDB | RCU | WCU | KB sent | KB logged |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for name, share in MIX.items():
        cost = measured[name]
        yield (
            f"| {name} | {share} | {cost.cpu_seconds * 1000:.1f} | {cost.requests:.1f} "
            f"| {cost.reads:.1f} | {cost.writes:.1f} | {cost.sent_bytes / 1000:.1f} "
            f"| {cost.log_bytes / 1000:.2f} |"
        )
    yield f"| start of a process | {100 / VISIT_REQUESTS:g} | {start * 1000:.0f} | | | | | |"
    yield ""
    yield "| dollars a month, for requests | " + " | ".join(f"{load:,}" for load in LOADS) + " |"
    yield "|---|---:|---:|---:|"
    sizes = stored_bytes()
    invoice_bytes = sizes["invoice"] + sizes["guard of an invoice"]
    columns = [_dollars(measured, start, invoice_bytes, load) for load in LOADS]
    for name in columns[0]:
        cells = " | ".join(_money(column[name]) for column in columns)
        yield f"| {name} | {cells} |"


def _money(dollars: float) -> str:
    return f"{dollars:,.2f}" if dollars >= 0.01 else "under 0.01"


def _dollars(
    measured: dict[str, Cost], start: float, invoice_bytes: float, load: int
) -> dict[str, float]:
    """The lines of the bill for `load` requests a month."""
    total = sum((measured[name] * (share / 100) for name, share in MIX.items()), NOTHING) * load
    visits = load / VISIT_REQUESTS
    starts = Cost(start, 0, 0, 0, 0, 0) * visits
    stored_gb = MIX["issuing an invoice"] / 100 * load * MONTHS * invoice_bytes / GB
    log_gb = (total.log_bytes + load * LAMBDA_LOG_BYTES) / GB
    exports = load / EXPORT_EVERY

    lambda_ = (
        load * LAMBDA_REQUEST + (total.seconds + starts.seconds) * MEMORY_GB * LAMBDA_GB_SECOND
    )
    dynamodb = prices.dollars(total.writes, total.reads)
    dynamodb += stored_gb * (prices.STORAGE_DOLLARS + prices.BACKUP_DOLLARS)
    s3 = (ZIP_GB + exports * EXPORT_GB / 30) * S3_GB_MONTH
    s3 += exports * EXPORT_REQUESTS * prices.PUT_DOLLARS
    logs = log_gb * (LOG_GB + LOG_GB_MONTH)
    transfer = total.sent_bytes / GB * TRANSFER_GB
    transfer += visits * (STATIC_BYTES / GB * CLOUDFRONT_GB + STATIC_REQUESTS * CLOUDFRONT_REQUEST)
    task = HOURS * (FARGATE_CPU * FARGATE_CPU_HOUR + FARGATE_GB * FARGATE_GB_HOUR + IPV4_HOUR)
    balancer = HOURS * (BALANCER_HOUR + 2 * IPV4_HOUR)
    rds = HOURS * RDS_HOUR + RDS_GB * RDS_GB_MONTH
    servers = task + balancer + logs + transfer
    return {
        "Lambda": lambda_,
        "HTTP API": load * API_REQUEST,
        "DynamoDB": dynamodb,
        "S3": s3,
        "CloudWatch logs": logs,
        "traffic, CloudFront": transfer,
        "**Lambda and DynamoDB, in all**": (
            lambda_ + load * API_REQUEST + dynamodb + s3 + logs + transfer
        ),
        "One task of Fargate": task,
        "Load balancer": balancer,
        "**Fargate and DynamoDB, in all**": servers + dynamodb,
        "RDS": rds,
        "**Fargate and RDS, in all**": servers + rds,
    }


if __name__ == "__main__":
    main()
