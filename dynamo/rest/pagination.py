"""Pages of a list, by cursors."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from rest_framework import pagination
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.utils.urls import replace_query_param

from dynamo.exceptions import BadCursor
from dynamo.model.base import Model
from dynamo.model.pages import Page


class CursorPagination(pagination.CursorPagination):
    """Pages by the signed cursors of `Model.page`: `?cursor=`, and `next` in the answer.

    `page_size`, `page_size_query_param` and `max_page_size` are the framework's.
    """

    page_size = api_settings.PAGE_SIZE or 50

    _page: Page[Model]
    _url = ""

    def paginate_queryset(
        self, queryset: object, request: Request, view: Any = None
    ) -> list[Model]:
        if self.ordering != pagination.CursorPagination.ordering:
            raise ImproperlyConfigured(
                f"{type(self).__name__}.ordering changes nothing: the sort key orders a list. For "
                "the other direction, set descending = True in the view."
            )
        after = request.query_params.get(self.cursor_query_param) or None
        try:
            self._page = view.get_page(after=after, limit=self.get_page_size(request))
        except BadCursor as error:
            raise NotFound(str(error)) from error
        self._url = request.build_absolute_uri()
        return self._page.items

    def get_next_link(self) -> str | None:
        following = self._page.next
        return following and replace_query_param(self._url, self.cursor_query_param, following)

    def get_paginated_response(self, data: object) -> Response:
        return Response({"next": self.get_next_link(), "results": data})

    def get_paginated_response_schema(self, schema: object) -> dict[str, object]:
        """The framework's schema for OpenAPI, without the link to the previous page."""
        whole = super().get_paginated_response_schema(schema)
        del whole["properties"]["previous"]
        return whole
