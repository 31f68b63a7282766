"""Health checks: whether the process answers, and whether it reaches its tables."""

import logging

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin
from django.views.decorators.cache import never_cache

from dynamo.cache.items import CacheItem
from dynamo.client.sending import is_unreachable, send
from dynamo.exceptions import DynamoError
from dynamo.runtime.deadline import within

HEALTH_SECONDS = 2.0

logger = logging.getLogger(__name__)


@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """200 `ok` if one GetItem answers, else 503. Costs 1 request, 1 read unit."""
    try:
        # While pages fail fast, there is only one attempt, so that health checks do not occupy
        # threads.
        with within(0.0 if is_unreachable() else HEALTH_SECONDS):
            send("GetItem", {"TableName": CacheItem.table(), "Key": {"key": {"S": "healthz"}}})
    except DynamoError as error:
        logger.warning("Unhealthy: %s", error)
        return HttpResponse("unavailable\n", status=503, content_type="text/plain")
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
def livez(request: HttpRequest) -> HttpResponse:
    """200 `ok`: this process answers. Costs no request."""
    return HttpResponse("ok\n", content_type="text/plain")


class HealthMiddleware(MiddlewareMixin):
    """Answers `/healthz` and `/livez`. Put it first.

    Load balancers ask by IP address and without TLS, so neither ALLOWED_HOSTS nor the redirect to
    https may apply.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        view = {"/healthz": healthz, "/livez": livez}.get(request.path_info)
        return view(request) if view else None
