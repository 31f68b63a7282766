"""Pages of a list, by cursors."""

from typing import Any
from urllib.parse import urlencode

from rest_framework.exceptions import NotFound
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from dynamo.exceptions import BadCursor
from dynamo.model.base import Model
from dynamo.model.pages import Page


class CursorPagination(BasePagination):
    """Pages by the signed cursors of `Model.page`: `?cursor=`, and `next` in the answer."""

    cursor_query_param = "cursor"
    page_size = api_settings.PAGE_SIZE or 50

    _page: Page[Model]
    _url = ""

    def paginate_queryset(
        self, queryset: object, request: Request, view: Any = None
    ) -> list[Model]:
        after = request.query_params.get(self.cursor_query_param) or None
        try:
            self._page = view.get_page(after=after, limit=self.page_size)
        except BadCursor as error:
            raise NotFound(str(error)) from error
        self._url = request.build_absolute_uri(request.path)
        self._query = request.query_params.copy()
        return self._page.items

    def get_paginated_response(self, data: object) -> Response:
        following = None
        if self._page.next:
            self._query[self.cursor_query_param] = self._page.next
            following = f"{self._url}?{urlencode(self._query, doseq=True)}"
        return Response({"next": following, "results": data})

    def get_paginated_response_schema(self, schema: object) -> dict[str, object]:
        """The schema of an answer, for OpenAPI."""
        following = {"type": "string", "nullable": True, "format": "uri"}
        return {
            "type": "object",
            "required": ["results"],
            "properties": {"next": following, "results": schema},
        }

    def get_schema_operation_parameters(self, view: object) -> list[dict[str, object]]:
        """The query parameters, for OpenAPI."""
        cursor = {"name": self.cursor_query_param, "required": False, "in": "query"}
        return [{**cursor, "schema": {"type": "string"}}]
