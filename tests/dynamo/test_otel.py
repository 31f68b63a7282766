"""Spans of OpenTelemetry: what each attempt was, and never a value."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from dynamo import otel
from dynamo.test import throttled
from tests.dynamo.bands import Band

pytestmark = pytest.mark.usefixtures("engine")

SECRET = "a value that nobody may see"


@pytest.fixture
def provider() -> Iterator[tuple[TracerProvider, InMemorySpanExporter]]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for _twice in range(2):
        otel.instrument(provider)
    yield provider, exporter
    otel.uninstrument()


def told(span: ReadableSpan) -> tuple[object, ...]:
    attributes = span.attributes or {}
    names = ("db.operation.name", "dynamo.retries", "dynamo.write_units", "error.type")
    outcome = attributes.get("dynamo.outcome")
    return (*(attributes.get(name) for name in names), outcome, span.status.status_code)


@pytest.mark.fault_of("moto", "counts no units of a transaction")
def test_each_attempt_is_a_span_below_the_callers_without_values(
    provider: tuple[TracerProvider, InMemorySpanExporter],
) -> None:
    tracer = provider[0].get_tracer("test")
    with tracer.start_as_current_span("page") as page, throttled():
        Band.create(pk=SECRET, name=SECRET, site="s")
    with pytest.raises(Band.Taken):
        Band.create(pk="other", name=SECRET, site=SECRET)
    otel.uninstrument()
    Band.get(SECRET)

    *spans, _page = sorted(provider[1].get_finished_spans(), key=lambda span: span.name == "page")
    assert [told(span) for span in spans] == [
        ("TransactWriteItems", 0, 0, "ThrottlingException", "throttled", StatusCode.ERROR),
        ("TransactWriteItems", 1, 6, None, None, StatusCode.UNSET),
        ("TransactWriteItems", 0, 0, "TransactionCanceledException", "refused", StatusCode.UNSET),
    ]
    for span in spans:
        attributes = span.attributes or {}
        assert span.name == f"TransactWriteItems {Band.table()}"
        assert getattr(span.instrumentation_scope, "name", None) == "dynamo.otel"
        assert attributes["db.collection.name"] == Band.table()
        assert attributes["dynamo.read_units"] == 0
        assert (span.kind, attributes["db.system.name"]) == (SpanKind.CLIENT, "aws.dynamodb")
        assert attributes["aws.dynamodb.table_names"] == (Band.table(),)
        assert (span.start_time or 0) <= (span.end_time or 0)
        assert SECRET not in span.to_json()
    assert spans[0].parent == page.get_span_context()
