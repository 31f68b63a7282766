"""Spans of OpenTelemetry, one for each attempt to reach DynamoDB (extra `otel`).

    from dynamo.otel import instrument

    instrument()  # in `AppConfig.ready`, or where the tracer is set up

A span has the operation, the tables, the outcome and the consumed units, under the names of
OpenTelemetry's conventions if they exist. It never has keys, values, or texts of errors.
"""

import time
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider

from dynamo.client.retries import code_of, outcome_of
from dynamo.client.tally import consumed_units, table_names
from dynamo.signals import request_sent

_NAME = "dynamo.otel"


def instrument(tracer_provider: TracerProvider | None = None) -> None:
    """Make a span of each attempt from now on, by default with the global tracer provider."""
    tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)

    def note(
        operation: str,
        request: dict[str, object],
        response: dict[str, object],
        error: BaseException | None,
        retries: int,
        seconds: float,
        **_signal: object,
    ) -> None:
        ended_at = time.time_ns()
        tables = table_names(request)
        units = consumed_units(operation, response)
        attributes: dict[str, Any] = {
            "db.system.name": "aws.dynamodb",
            "db.operation.name": operation,
            "db.collection.name": tables,
            "aws.dynamodb.table_names": tables.split("+"),
            "dynamo.retries": retries,
            "dynamo.read_units": sum(read for _table, read, _write in units),
            "dynamo.write_units": sum(write for _table, _read, write in units),
        }
        if error is not None:
            attributes["error.type"] = code_of(error) or type(error).__name__
            attributes["dynamo.outcome"] = outcome_of(error)
        span = tracer.start_span(
            f"{operation} {tables}",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=ended_at - round(seconds * 10**9),
        )
        if error is not None and attributes["dynamo.outcome"] != "refused":
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended_at)

    # A strong reference, because nothing else refers to it.
    request_sent.connect(note, weak=False, dispatch_uid=_NAME)


def uninstrument() -> None:
    """Make no further spans."""
    request_sent.disconnect(dispatch_uid=_NAME)
