"""`/metrics`: what was measured, for a Prometheus that has the token.

It is a page of its own only for who knows `DJANGO_METRICS_TOKEN`; for all others, and where none
is set, there is no such page. Where several processes serve, each counts by itself, in files of
`PROMETHEUS_MULTIPROC_DIR`, and whichever is asked adds them up.
"""

from __future__ import annotations

from contextlib import suppress

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.utils.deprecation import MiddlewareMixin
from django.views.decorators.cache import never_cache
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

# When each series began: half of all lines, which nobody here reads.
disable_created_metrics()


@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """All metrics of all processes, in Prometheus' text format. Touches no table.

    Raises:
        Http404: without the token.
    """
    if not _has_token(request):
        raise Http404
    return HttpResponse(generate_latest(_registry()), content_type=CONTENT_TYPE_LATEST)


class MetricsMiddleware(MiddlewareMixin):
    """Answers who has the token before anything else does, as `HealthMiddleware` its probes.

    Prometheus asks each process by address and, within a network of its own, without TLS.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        """The metrics; None for every other request, and without the token: then the site's 404."""
        if request.path_info == "/metrics":
            with suppress(Http404):
                return metrics(request)
        return None


def _has_token(request: HttpRequest) -> bool:
    given = request.META.get("HTTP_AUTHORIZATION", "")
    token: str = settings.METRICS_TOKEN
    return bool(token) and constant_time_compare(given, f"Bearer {token}")


def _registry() -> CollectorRegistry:
    if not settings.METRICS_DIR:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry, settings.METRICS_DIR)
    return registry
