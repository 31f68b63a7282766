"""Serializers and viewsets of Django REST framework for a `Model` (extra `rest`).

    class MemberSerializer(ModelSerializer):
        class Meta:
            model = Member
            fields = ["pk", "email", "club"]

    class MemberViewSet(ModelViewSet):
        serializer_class = MemberSerializer

        def get_partition(self):            # lists, finds and creates only items of this club
            return self.request.user.club
        index = Member.by_club

    router.register("members", MemberViewSet)

Everything else is the framework's. The write decides what is refused:

    400                a value is not valid, or another item has a unique value (at its field)
    404                no such item, or it is in another partition
    412                the item changed since the client read it (`If-Match`), or meanwhile
    422                the `Idempotency-Key` made an item before, with other values
    503, Retry-After   DynamoDB gave no answer in time

Each item has its version as `ETag`. A `POST` with an `Idempotency-Key` creates one item, however
often it is sent; the keys of two users are different.
"""

import copy
import json
import uuid
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import ImproperlyConfigured
from django.db.models import Model as DjangosModel
from django.http import Http404
from django.utils.http import parse_etags
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers, status, viewsets
from rest_framework.exceptions import APIException, NotFound, ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.response import Response
from rest_framework.settings import api_settings

from dynamo.exceptions import BadCursor, DoesNotExist, RequestIdReused, Stale, Unavailable
from dynamo.forms import key_names
from dynamo.middleware import RETRY_AFTER_SECONDS
from dynamo.model.pages import Page, scan_page
from dynamo.views import _converted, _not_found
from dynamo.wire.fields import ShownEncoder

__all__ = [
    "CursorPagination",
    "GenericViewSet",
    "ModelMixin",
    "ModelSerializer",
    "ModelViewSet",
    "ReadOnlyModelViewSet",
]

#: The longest `Idempotency-Key`.
KEY_MAX_LENGTH = 255
#: Between the parts of a key with a sort key, in a URL.
SEPARATOR = ","


class ItemChanged(APIException):
    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_detail = _("It was changed or deleted meanwhile. Read it again.")
    default_code = "stale"


class KeyReused(APIException):
    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_detail = _("This Idempotency-Key was used before, with other values.")
    default_code = "request_id_reused"


class NoAnswer(APIException):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = _("The service is not available for the moment. Try again.")
    default_code = "unavailable"
    #: The framework's handler of exceptions makes `Retry-After` of it.
    wait = RETRY_AFTER_SECONDS


class ShownField(serializers.ReadOnlyField):
    """A value of PynamoDB's attributes: sets, binary values, maps."""

    def to_representation(self, value: Any) -> Any:
        return json.loads(json.dumps([value], cls=ShownEncoder))[0]


# The classes below have no docstrings: schemas and pages would show them for subclasses.


# The framework's, for a `Model`. `create` and `change` of the model store the values. The key of a
# stored item is read-only. Unique values are checked by the write alone.
class ModelSerializer(serializers.ModelSerializer):
    def get_default_field_names(self, declared_fields: Any, model_info: Any) -> list[str]:
        return [*dict.fromkeys([*model_info.fields, *declared_fields])]

    def build_standard_field(self, field_name: str, model_field: Any) -> tuple[Any, Any]:
        # The framework would look for the value before the write.
        model_field = copy.copy(model_field)
        model_field._unique = False
        field_class, options = super().build_standard_field(field_name, model_field)
        if issubclass(field_class, serializers.DecimalField):
            options = {"max_digits": 38, "decimal_places": None, **options}
        if issubclass(field_class, serializers.JSONField) and model_field.formfield() is None:
            return ShownField, {}
        if self.instance is not None and field_name in key_names(self.Meta.model):
            return field_class, self.include_extra_kwargs(options, {"read_only": True})
        return field_class, options

    def get_uniqueness_extra_kwargs(self, _names: Any, _declared: Any, extra: Any) -> Any:
        return extra, {}

    def get_validators(self) -> Any:
        return [*(getattr(self.Meta, "validators", None) or [])]

    def create(self, validated_data: dict[str, Any]) -> Any:
        model = self.Meta.model
        request_id = self._request_id()
        if "request_id" not in model._meta.by_name:
            return model.create(request_id=request_id, **validated_data)
        # A numbered item: each has a request id.
        item = model(**validated_data)
        return item.insert_for(request_id or str(uuid.uuid4()), validated_data)

    def update(self, instance: Any, validated_data: dict[str, Any]) -> Any:
        keys = key_names(self.Meta.model)
        instance.change(**{k: value for k, value in validated_data.items() if k not in keys})
        return instance

    def save(self, **values: Any) -> Any:
        """As the framework's. Raises the errors of `create` and `change`, which views answer."""
        try:
            return super().save(**values)
        except (ArithmeticError, ValueError) as error:
            # A number of too many digits, or a key that is too long.
            raise ValidationError({api_settings.NON_FIELD_ERRORS_KEY: [str(error)]}) from error

    def _request_id(self) -> str | None:
        """The `Idempotency-Key` of this user; None without one."""
        request = self.context.get("request")
        key = request and request.headers.get("Idempotency-Key", "").strip()
        if not key:
            return None
        model = self.Meta.model
        try:
            if len(key) > KEY_MAX_LENGTH or "#" in key:
                raise ValueError
            if not model._has_default_key() and "request_id" not in model._meta.by_name:
                model.check_request_ids()
        except (TypeError, ValueError) as error:
            raise ValidationError({"Idempotency-Key": [_("This key cannot be used.")]}) from error
        return f"{getattr(request.user, 'pk', None) or ''}:{key}"


class CursorPagination(BasePagination):
    """Pages by the signed cursors of `Model.page`: `?cursor=`, and `next` in the answer."""

    cursor_query_param = "cursor"
    page_size = api_settings.PAGE_SIZE or 50

    _page: Page[Any]
    _url = ""

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> Any:
        after = request.query_params.get(self.cursor_query_param) or None
        try:
            self._page = view.get_page(after=after, limit=self.page_size)
        except BadCursor as error:
            raise NotFound(str(error)) from error
        self._url = request.build_absolute_uri(request.path)
        self._query = request.query_params.copy()
        return self._page.items

    def get_paginated_response(self, data: Any) -> Response:
        following = None
        if self._page.next:
            self._query[self.cursor_query_param] = self._page.next
            following = f"{self._url}?{urlencode(self._query, doseq=True)}"
        return Response({"next": following, "results": data})

    def get_paginated_response_schema(self, schema: Any) -> dict[str, Any]:
        """Describes the parameters for OpenAPI."""
        following = {"type": "string", "nullable": True, "format": "uri"}
        return {
            "type": "object",
            "required": ["results"],
            "properties": {"next": following, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Describes the parameters for OpenAPI."""
        cursor = {"name": self.cursor_query_param, "required": False, "in": "query"}
        return [{**cursor, "schema": {"type": "string"}}]


# For viewsets and generic views of a `ModelSerializer`.
#
# They list the items of `get_partition`, of the table or of `index`, in the order of its sort key
# (`descending`). Without a partition they list the whole table, in no order. An item of another
# partition does not exist for them, and new items get this one.
#
# The URL of an item with a sort key has both parts: `red,1`. `lookup_field` can name an attribute
# that is unique.
class ModelMixin:
    index: Any = None
    partition: Any = None
    descending = False
    pagination_class: Any = CursorPagination
    lookup_value_regex = "[^/]+"

    #: For the type checker: what `viewsets.GenericViewSet` has.
    serializer_class: Any
    queryset: Any = None
    request: Any
    kwargs: Any

    _item: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        model = getattr(
            getattr(getattr(cls, "serializer_class", None), "Meta", None), "model", None
        )
        if "get_queryset" in vars(cls) or getattr(getattr(cls, "queryset", None), "_read", None):
            raise TypeError(
                f"{cls.__name__} would ignore a part of the items. Override get_partition; or "
                "get_page and get_object."
            )
        if model is not None and cls.queryset is None:
            # Routers, permissions and schemas look at its model.
            cls.queryset = model.objects.all()

    def get_queryset(self) -> Any:
        return self.model.objects.all()

    def paginate_queryset(self, queryset: Any) -> Any:
        view: Any = super()
        if not isinstance(view.paginator, CursorPagination):
            raise ImproperlyConfigured(
                f"{type(self).__name__}.pagination_class must be a CursorPagination of dynamo.rest."
            )
        return view.paginate_queryset(queryset)

    @property
    def model(self) -> Any:
        return self.serializer_class.Meta.model

    def get_partition(self) -> Any:
        """The partition whose items exist here; None for all. The default is the value in the
        URL."""
        return self.kwargs.get(self._partition_name()) if self.partition is None else self.partition

    def _partition_name(self) -> str:
        return key_names(self.model, self.index)[0]

    def _given(self) -> dict[str, Any]:
        """The partition, by the name of its attribute."""
        partition = self.get_partition()
        name = self._partition_name()
        return {} if partition is None else _converted(self.model, {name: partition})

    def get_page(self, **options: Any) -> Page[Any]:
        """A page of items; `options` are `after` and `limit`."""
        if not (given := self._given()):
            if self.index is not None:
                raise ImproperlyConfigured(f"{type(self).__name__}: `index` needs get_partition.")
            return scan_page(self.model, options["limit"], options["after"])
        [partition] = given.values()
        read = (self.index or self.model).page
        page: Page[Any] = read(partition, scan_index_forward=not self.descending, **options)
        return page

    def get_object(self) -> Any:
        view: Any = self
        item = self._found(
            view.lookup_field, self.kwargs[view.lookup_url_kwarg or view.lookup_field]
        )
        for name, value in self._given().items():
            if getattr(item, name) != value:
                raise _not_found(self.model)
        view.check_object_permissions(self.request, item)
        wanted = self.request.headers.get("If-Match")
        if wanted and not {"*", _etag(item)} & {*parse_etags(wanted)}:
            # If it changes from here on, the write is refused.
            raise ItemChanged
        self._item = item
        return item

    def _found(self, name: str, text: str) -> Any:
        names = key_names(self.model)
        wanted: dict[str, Any] = {name: text}
        if name == "pk" and names != ("pk",):
            parts = text.rsplit(SEPARATOR, len(names) - 1)
            if len(parts) != len(names):
                raise _not_found(self.model)
            wanted = dict(zip(names, parts, strict=True))
        try:
            return self.model._get_by(**_converted(self.model, wanted))
        except DoesNotExist as error:
            raise _not_found(self.model) from error

    def perform_create(self, serializer: Any) -> None:
        self._item = serializer.save(**self._given())

    def perform_update(self, serializer: Any) -> None:
        self._item = serializer.save(**self._given())

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        view: Any = super()
        response = view.finalize_response(request, response, *args, **kwargs)
        if self._item is not None and response.status_code in {200, 201}:
            response["ETag"] = _etag(self._item)
        return response

    def handle_exception(self, error: Exception) -> Any:
        view: Any = super()
        return view.handle_exception(_as_api_exception(error, self.model) or error)


def _etag(item: Any) -> str:
    return f'"{item.version}"'


def _as_api_exception(error: Exception, model: Any) -> Exception | None:
    general = api_settings.NON_FIELD_ERRORS_KEY
    uniques: list[tuple[str, ...]] = []
    if isinstance(error, model.Taken):
        uniques = error.uniques
    elif isinstance(error, model.AlreadyExists):
        uniques = [key_names(model)]
    if uniques:
        fields: dict[str, list[str]] = {}
        instance: Any = model()
        for names in uniques:
            text = DjangosModel.unique_error_message(instance, model, names)
            fields.setdefault(general if names[1:] else names[0], []).extend(text.messages)
        return ValidationError(fields, code="unique")
    for kind, answer in _ANSWERS.items():
        if isinstance(error, kind):
            return answer()
    return None


_ANSWERS: dict[type[Exception], Any] = {
    DoesNotExist: Http404,
    RequestIdReused: KeyReused,
    Stale: ItemChanged,
    Unavailable: NoAnswer,
}


class GenericViewSet(ModelMixin, viewsets.GenericViewSet):
    pass


class ReadOnlyModelViewSet(ModelMixin, viewsets.ReadOnlyModelViewSet):
    pass


class ModelViewSet(ModelMixin, viewsets.ModelViewSet):
    pass
