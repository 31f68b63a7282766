"""Serializers and viewsets of a `Model`, and their answers to refused writes."""

import copy
import json
import uuid
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ImproperlyConfigured
from django.http import Http404
from django.utils.http import parse_etags
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers, status, viewsets
from rest_framework.exceptions import APIException, ErrorDetail, MethodNotAllowed, ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from dynamo import exceptions
from dynamo.forms import TOO_LARGE
from dynamo.middleware import RETRY_AFTER_SECONDS
from dynamo.model.base import Model
from dynamo.model.objects import VERSION
from dynamo.model.pages import Page, scan_page
from dynamo.model.references import Reference
from dynamo.rest.pagination import CursorPagination
from dynamo.views import PartitionMixin, get_object_or_404, not_found
from dynamo.wire.fields import ShownEncoder
from dynamo.wire.types import Item
from dynamo.wire.values import ITEM_MAX_BYTES, digest_of, item_bytes

#: The longest `Idempotency-Key`.
KEY_MAX_LENGTH = 255
#: The separator between partition key and sort key in a URL.
SEPARATOR = ","


#: Fields of the framework that show an attribute of the item that a reference names.
_OF_OBJECTS = (
    serializers.HyperlinkedRelatedField,
    serializers.Serializer,
    serializers.SlugRelatedField,
)


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
    #: The framework's exception handler sends this as `Retry-After`.
    wait = RETRY_AFTER_SECONDS


class ShownField(serializers.ReadOnlyField):
    """A value that JSON does not have: sets, binary values, maps."""

    def to_representation(self, value: object) -> object:
        return json.loads(json.dumps([value], cls=ShownEncoder))[0]


# The classes below have no docstrings: schemas and pages would show them for subclasses.


# The framework's serializer for a `Model`. `create` and `change` of the model store the values. The
# key of a stored item is read-only. Only the write checks unique values.
class ModelSerializer(serializers.ModelSerializer):
    def get_default_field_names(self, declared_fields: Iterable[str], model_info: Any) -> list[str]:
        return [*dict.fromkeys([*model_info.fields, *declared_fields])]

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        attributes = self.Meta.model.get_attributes()
        for name, field in fields.items():
            is_reference = isinstance(attributes.get(field.source or name), Reference)
            if is_reference and isinstance(field, _OF_OBJECTS):
                raise ImproperlyConfigured(
                    f"{type(self).__name__}.{name} is a {type(field).__name__}, but the value of a "
                    "Reference is a key: take a PrimaryKeyRelatedField, or read the item in a "
                    "SerializerMethodField."
                )
        return fields

    def build_standard_field(
        self, field_name: str, model_field: Any
    ) -> tuple[type, dict[str, object]]:
        # Otherwise, the framework would look for the value before the write.
        model_field = copy.copy(model_field)
        model_field._unique = False
        field_class, options = super().build_standard_field(field_name, model_field)
        if issubclass(field_class, serializers.DecimalField):
            options = {"max_digits": 38, "decimal_places": None, **options}
        if issubclass(field_class, serializers.JSONField) and model_field.formfield() is None:
            return ShownField, {}
        if self.instance is not None and field_name in self.Meta.model._key_names():
            return field_class, self.include_extra_kwargs(options, {"read_only": True})
        return field_class, options

    def get_unique_together_constraints(self, _model: object) -> Iterable[object]:
        return ()

    def _view(self) -> "ModelMixin | None":
        """The view that shows and stores items by this serializer; None for another one."""
        view = self.context.get("view")
        return view if isinstance(view, ModelMixin) and view.model is self.Meta.model else None

    def _with_partition(self, validated_data: dict[str, Any]) -> dict[str, Any]:
        """The validated values, with those that the view sets on all of its items."""
        view = self._view()
        return validated_data if view is None else {**validated_data, **view._partition_values()}

    def create(self, validated_data: dict[str, Any]) -> Model:
        model = self.Meta.model
        validated_data = self._with_partition(validated_data)
        request_id = self._request_id()
        if "request_id" not in model._meta.by_name:
            return model.create(request_id=request_id, **validated_data)
        # Every numbered item has a request id.
        item = model(**validated_data)
        return item.insert_for(request_id or str(uuid.uuid4()), validated_data)

    def update(self, instance: Model, validated_data: dict[str, Any]) -> Model:
        keys = self.Meta.model._key_names()
        values = self._with_partition(validated_data)
        instance.change(**{k: value for k, value in values.items() if k not in keys})
        return instance

    def save(self, **values: object) -> Model:
        """Like the framework's method.

        Raises the errors of `create` and `change`, which views answer.
        """
        try:
            item: Model = super().save(**values)
        except (ArithmeticError, ValueError) as error:
            # A number of too many digits, or a key that is too long.
            raise ValidationError({api_settings.NON_FIELD_ERRORS_KEY: [str(error)]}) from error
        except exceptions.DynamoError as error:
            if item_bytes(self._refused_item(values)) <= ITEM_MAX_BYTES:
                raise
            raise ValidationError({api_settings.NON_FIELD_ERRORS_KEY: [TOO_LARGE]}) from error
        if view := self._view():
            view._item = item
        return item

    def _refused_item(self, values: dict[str, object]) -> Item:
        """The item that `save` would have stored."""
        stored = {} if self.instance is None else self.instance.stored
        given = self._with_partition({**self.validated_data, **values})
        new = {name: value for name, value in given.items() if value is not None}
        return {**stored, **self.Meta.model(**new).serialize(null_check=False)}

    def _request_id(self) -> str | None:
        """The `Idempotency-Key` of this user; None without one."""
        request = self.context.get("request")
        key = request and request.headers.get("Idempotency-Key", "").strip()
        if not key:
            return None
        model = self.Meta.model
        try:
            # All items of a list would have this key.
            if len(key) > KEY_MAX_LENGTH or "#" in key or self.parent is not None:
                raise ValueError
            if not model._has_default_key() and "request_id" not in model._meta.by_name:
                model.check_request_ids()
        except (TypeError, ValueError) as error:
            raise ValidationError({"Idempotency-Key": [_("This key cannot be used.")]}) from error
        return f"{getattr(request.user, 'pk', None) or ''}:{key}"


# For viewsets and generic views of a `ModelSerializer`.
#
# They list the items of `get_partition`, of the table or of `index`, in the order of its sort key
# (`descending`). Without a partition they list the whole table, in no order. They do not find items
# of other partitions, and new items get this partition.
#
# The URL of an item with a sort key has both parts: `red,1`. `lookup_field` can name an attribute
# that is unique.
class ModelMixin(PartitionMixin):
    descending = False
    pagination_class = CursorPagination
    lookup_value_regex = "[^/]+"
    queryset: Any = None

    _item: Model | None = None

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        model = getattr(
            getattr(getattr(cls, "serializer_class", None), "Meta", None), "model", None
        )
        own = (cls.get_queryset, cls.filter_queryset)
        is_own = own != (ModelMixin.get_queryset, ModelMixin.filter_queryset)
        if is_own or getattr(cls.queryset, "_read", None):
            raise TypeError(
                f"{cls.__name__} would ignore a part of the items. Override get_partition; or "
                "get_page and get_object."
            )
        if model is not None and cls.queryset is None:
            # Routers, permissions and schemas look at its model.
            cls.queryset = model.objects.all()

    def get_queryset(self) -> object:
        return self.model.objects.all()

    def filter_queryset(self, queryset: object) -> object:
        try:
            filtered = super().filter_queryset(queryset)
        except AttributeError:
            # A filter backend called a method of the ORM, such as `filter`.
            filtered = None
        if filtered is not queryset:
            raise ImproperlyConfigured(
                f"{type(self).__name__}.filter_backends would change nothing. Override "
                "get_partition; or get_page and get_object."
            )
        return queryset

    def paginate_queryset(self, queryset: object) -> list[Model]:
        if not isinstance(self.paginator, CursorPagination):
            raise ImproperlyConfigured(
                f"{type(self).__name__}.pagination_class must be a CursorPagination of dynamo.rest."
            )
        return super().paginate_queryset(queryset)

    @property
    def model(self) -> type[Model]:
        return self.get_serializer_class().Meta.model

    def _model(self) -> type[Model]:
        return self.model

    def get_page(self, **options: Any) -> Page[Any]:
        """A page of items; `options` are `after` and `limit`."""
        if not (given := self._partition_values()):
            if self.index is not None and type(self).get_partition is PartitionMixin.get_partition:
                raise ImproperlyConfigured(f"{type(self).__name__}: `index` needs get_partition.")
            return scan_page(self.model, options["limit"], options["after"])
        return self._partition_page(given, scan_index_forward=not self.descending, **options)

    def get_object(self) -> Any:
        self.filter_queryset(self.get_queryset())
        name = self.lookup_field
        item = self._found(name, self.kwargs[self.lookup_url_kwarg or name])
        for name, value in self._partition_values().items():
            if getattr(item, name) != value:
                raise not_found(self.model)
        self.check_object_permissions(self.request, item)
        request = self.request
        wanted = request.headers.get("If-Match")
        unwanted = "" if request.method in SAFE_METHODS else request.headers.get("If-None-Match")
        if (wanted and not _matches(item, wanted)) or (unwanted and _matches(item, unwanted)):
            # If the item changes after this, the write is refused.
            raise ItemChanged
        self._item = item
        return item

    def _found(self, name: str, text: str) -> Model:
        names = self.model._key_names()
        wanted: dict[str, Any] = {name: text}
        if name == "pk" and names != ["pk"]:
            parts = text.rsplit(SEPARATOR, len(names) - 1)
            if len(parts) != len(names):
                raise not_found(self.model)
            wanted = dict(zip(names, parts, strict=True))
        return get_object_or_404(self.model, **wanted)

    def perform_destroy(self, instance: Model) -> None:
        if instance._never_deleted:
            raise MethodNotAllowed(self.request.method)
        # Otherwise, deleting an item that is deleted already would succeed, because deletions are
        # repeatable.
        instance.delete(missing_ok="If-Match" not in self.request.headers)

    def finalize_response(
        self, request: Request, response: Response, *args: object, **kwargs: object
    ) -> Response:
        response = super().finalize_response(request, response, *args, **kwargs)
        if self._item is not None and response.status_code in {200, 201}:
            response["ETag"] = _etag(self._item)
        return response

    def handle_exception(self, error: Exception) -> Response:
        return super().handle_exception(_as_api_exception(error, self.model) or error)


def _matches(item: Model, header: str) -> bool:
    # A server that compresses the answer marks the ETag as weak.
    tags = {tag.removeprefix("W/") for tag in parse_etags(header)}
    return bool({"*", _etag(item)} & tags)


def _etag(item: Model) -> str:
    # An item that was never changed may have no version, for example a numbered item.
    has_version = VERSION in item.stored
    return f'"{item.version if has_version else digest_of(item.stored)}"'


def _as_api_exception(error: Exception, model: type[Model]) -> Exception | None:
    errors = error.exceptions if isinstance(error, exceptions.Refused) else (error,)
    fields: dict[str, list[ErrorDetail]] = {}
    for item in errors:
        for name, found in model()._errors_at_fields(item):
            place = api_settings.NON_FIELD_ERRORS_KEY if name == NON_FIELD_ERRORS else name
            # The error code of the framework for an error code of Django.
            code = "does_not_exist" if found.code == "invalid_choice" else found.code
            details = [ErrorDetail(text, code) for text in found.messages]
            fields.setdefault(place, []).extend(details)
    if fields:
        return ValidationError(fields)
    for kind, answer in _ANSWERS.items():
        if any(isinstance(item, kind) for item in errors):
            return answer()
    return None


_ANSWERS: dict[type[Exception], type[Exception]] = {
    exceptions.DoesNotExist: Http404,
    exceptions.RequestIdReused: KeyReused,
    exceptions.Stale: ItemChanged,
    exceptions.Unavailable: NoAnswer,
}


# The framework's stubs accept only querysets of the ORM.
class GenericViewSet(ModelMixin, viewsets.GenericViewSet):
    queryset: Any = None


class ReadOnlyModelViewSet(ModelMixin, viewsets.ReadOnlyModelViewSet):
    queryset: Any = None


class ModelViewSet(ModelMixin, viewsets.ModelViewSet):
    queryset: Any = None
