"""Django's generic views for a `Model`, and `get_object_or_404`.

    class MemberCreate(CreateView[Member]):
        model = Member
        fields = ["email", "club"]
        success_url = "/members/{pk}/"

    path("members/<pk>/", MemberDetail.as_view())
    path("halls/<hall>/<int:row>/", SeatDetail.as_view())  # a sort key

Each view is Django's view with a mixin, which your own views can use. `[Member]` is for type
checkers; a form can follow it, as in `CreateView[Member, MemberForm]`.

Everything else is Django's: `form_class`, `template_name`, `get_context_data`, `form_valid`. If a
write is refused, even in an overridden `form_valid`, the page shows the form again with the reasons
(`dynamo.forms`). Templates are found as in Django: `club/member_form.html`.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from django import forms
from django.core.exceptions import ImproperlyConfigured
from django.core.signing import BadSignature
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as djangos_text
from django.views import generic
from django.views.generic.detail import SingleObjectMixin
from django.views.generic.list import MultipleObjectMixin

from dynamo.exceptions import BadCursor, ErrorWithValues
from dynamo.forms import M, ModelForm, modelform_factory
from dynamo.model.base import Model
from dynamo.model.managers import Items
from dynamo.model.pages import Page

__all__ = [
    "CreateMixin",
    "CreateView",
    "DeleteMixin",
    "DeleteView",
    "DetailMixin",
    "DetailView",
    "ListMixin",
    "ListView",
    "UpdateMixin",
    "UpdateView",
    "get_object_or_404",
]

if TYPE_CHECKING:
    from typing_extensions import TypeVar as WithDefault

    F = WithDefault("F", bound=ModelForm[Any], default=Any)
    # With django-stubs 6.1, Django's forms and models are the defaults of these parameters.
    _CreateView = generic.CreateView[Any, Any]
    _UpdateView = generic.UpdateView[Any, Any]
    _DeleteView = generic.DeleteView[Any, Any]
else:
    F = TypeVar("F")
    _CreateView, _UpdateView, _DeleteView = (
        generic.CreateView,
        generic.UpdateView,
        generic.DeleteView,
    )

SUCCESS_URL = "success_url"

#: Options and methods of Django's list that have no effect on a page of DynamoDB.
_PAGINATION = ("paginate_orphans", "get_paginate_orphans", "paginator_class", "get_paginator")

#: For the type checker: the generic view with which a mixin is used.
_View: Any = object


def get_object_or_404(model: type[M], *key: object, **values: object) -> M:
    """The item with this key, or with the values of a `Unique`; otherwise Http404.

        get_object_or_404(Member, pk)
        get_object_or_404(Seat, hall="red", row=1)
        get_object_or_404(Member, email="ann@example.org")

    Texts, such as arguments of URLs, are converted to the attributes' types. Costs as much as `get`
    or `find`.
    """
    names = model._key_names()
    if len(key) > len(names):
        raise TypeError(f"The key of {model.__name__} is {', '.join(names)}, not {key!r}.")
    wanted = typed_or_404(model, dict(zip(names, key, strict=False)) | values)
    try:
        return model._get_by(**wanted)
    except model.DoesNotExist as error:
        raise not_found(model) from error


def typed_or_404(model: type[Model], values: Mapping[str, object]) -> dict[str, Any]:
    """The `values` of a URL with the types of their attributes; otherwise Http404."""
    try:
        return model._typed_values(values)
    except model.DoesNotExist as error:
        raise not_found(model) from error


def not_found(model: type[Model]) -> Http404:
    message = djangos_text("No %(verbose_name)s found matching the query")
    return Http404(message % {"verbose_name": model._noun()})


class _ModelMixin(Generic[M], _View):
    """The base of the views."""

    def __class_getitem__(cls, types: object) -> type[Self]:
        # `Generic` would require all type parameters.
        return cls

    def _known_model(self) -> type[Model] | None:
        """The view's model, or that of the object that its own `get_object` returned, if any."""
        shown = getattr(self, "object", None)
        return self.model or (shown.__class__ if isinstance(shown, Model) else None)

    def _model(self) -> Any:
        if model := self._known_model():
            return model
        raise ImproperlyConfigured(f"{type(self).__name__} needs the attribute `model`.")

    def _refuse(self, base: type, names: Sequence[str], advice: str) -> None:
        """Refuse options and methods of Django's `base` that would have no effect."""
        for name in names:
            if vars(self).get(name, getattr(type(self), name)) is not getattr(base, name):
                text = f"{type(self).__name__}.{name} would change nothing: {advice}."
                raise ImproperlyConfigured(text)

    def get_template_names(self) -> list[str]:
        """The names that Django finds, and `<app>/<model><suffix>.html` unless one is given."""
        opts = getattr(self._known_model(), "_meta", None)
        if not opts or not opts.app_config or self.template_name:
            return list(super().get_template_names())
        names = []
        with suppress(ImproperlyConfigured):
            names = list(super().get_template_names())
        return [*names, f"{opts.app_label}/{opts.model_name}{self.template_name_suffix}.html"]


class DetailMixin(_ModelMixin[M]):
    """For `DetailView`: the item with the key, or the unique value (`slug_field`), of the URL.

    The arguments of the URL have the names of the key attributes. A single one may be called `pk`.
    """

    def get_object(self, queryset: object = None) -> M:
        if queryset is not None:
            raise TypeError("get_object takes no queryset. Override it, and read the item there.")
        self._refuse(SingleObjectMixin, ("queryset", "get_queryset"), "override get_object")
        model = self._model()
        wanted = self._wanted()
        if self.query_pk_and_slug and self.slug_url_kwarg in self.kwargs:
            wanted[self.get_slug_field()] = self.kwargs[self.slug_url_kwarg]
        return get_object_or_404(model, **wanted)

    def _wanted(self) -> dict[str, Any]:
        """The values in the URL that identify the item: its key, or the unique value."""
        names = self._model()._key_names()
        key = {name: self.kwargs[name] for name in names if name in self.kwargs}
        if len(names) == 1 and self.pk_url_kwarg in self.kwargs:
            key = {names[0]: self.kwargs[self.pk_url_kwarg]}
        if len(key) == len(names):
            return key
        if self.slug_url_kwarg in self.kwargs:
            return {self.get_slug_field(): self.kwargs[self.slug_url_kwarg]}
        raise AttributeError(
            f"{type(self).__name__} must be called with {' and '.join(names)} in the URLconf, or "
            f"with {self.slug_url_kwarg}."
        )

    def get_context_object_name(self, obj: Model) -> str:
        return self.context_object_name or str(obj._meta.model_name)


class _FormMixin(DetailMixin[M], Generic[M, F]):
    """The base of the views with a form."""

    _form: ModelForm | None = None

    if TYPE_CHECKING:

        def form_valid(self, form: F) -> HttpResponse: ...

    def get_form_class(self) -> Any:
        if self.form_class:
            return super().get_form_class()
        model = self._model()
        if self.fields is None:
            raise ImproperlyConfigured(f"{type(self).__name__} needs `fields` or `form_class`.")
        return modelform_factory(model, fields=self.fields)

    def get_form(self, form_class: type | None = None) -> F:
        form_class = form_class or self.get_form_class()
        if not issubclass(form_class, ModelForm):
            raise ImproperlyConfigured(
                f"{type(self).__name__}.form_class must derive from dynamo.forms.ModelForm, which "
                f"{form_class.__name__} does not."
            )
        form: F = super().get_form(form_class)
        self._form = form
        return form

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        try:
            return super().post(request, *args, **kwargs)
        except ErrorWithValues as error:
            if not isinstance(self._form, ModelForm):
                raise
            self._form.add_refusal(error)
            return self.form_invalid(self._form)

    def get_success_url(self) -> str:
        """As in Django: `success_url` may contain attributes, as in `/members/{pk}/`."""
        if self.success_url:
            return str(self.success_url).format(**self.object.attribute_values)
        return str(super().get_success_url())


class CreateMixin(_FormMixin[M, F]):
    """For `CreateView`: a form that is sent twice creates one item."""


class UpdateMixin(_FormMixin[M, F]):
    """For `UpdateView`: if the item changed in the meantime, the page shows an error.

    If the item was deleted in the meantime, the page shows what was typed. `object` then has only
    its key.
    """

    def get_object(self, queryset: object = None) -> M:
        try:
            return super().get_object(queryset)
        except Http404:
            if self.request.method != "POST":
                raise
            model = self._model()
            self.object = model(**typed_or_404(model, self._wanted()))
            if self.get_form().hidden_value() is None:
                raise
            return self.object


class DeleteMixin(UpdateMixin[M, F]):
    """For `DeleteView`: a template with `{{ form }}` deletes the item as the page showed it.

    If it is deleted already, for example because the page is sent twice, this succeeds. Without the
    form, the item is deleted as it is now. A `form_class` is a `dynamo.forms.ModelForm`.
    """

    def get_form_class(self) -> Any:
        if self.form_class is not forms.Form:
            return self.form_class
        form = modelform_factory(self._model(), fields=[])
        form.version_optional = True
        return form

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "instance": self.object}

    def get_form(self, form_class: type | None = None) -> F:
        """The form, with a hidden field for the success URL.

        If the item was deleted in the meantime, the URL cannot be made from its values.
        """
        form = super().get_form(form_class)
        form.fields[SUCCESS_URL] = forms.CharField(widget=forms.HiddenInput, required=False)
        if self.request.method == "GET":
            with suppress(ImproperlyConfigured):
                form.initial[SUCCESS_URL] = form._signer(SUCCESS_URL).sign(self.get_success_url())
        return form

    def form_invalid(self, form: F) -> HttpResponse:
        if not self.object.stored:
            with suppress(BadSignature):
                signed = form.data.get(form.add_prefix(SUCCESS_URL), "")
                return HttpResponseRedirect(form._signer(SUCCESS_URL).unsign(signed))
        return super().form_invalid(form)


# A comment, not a docstring, which schemas of an API would show for each view.
#
# The partition, of the table or of `index`, whose items a view has.
class PartitionMixin(_View):
    index: Any = None
    partition: Any = None  # a subclass may have a property

    def get_partition(self) -> object:
        """The partition to which the view is limited; None if there is none.

        By default it is `partition` of the class, or else the value in the URL. If the key of
        `index` has several partition attributes, it is a tuple.
        """
        if self.partition is not None:
            return self.partition
        names = self._model()._partition_names(self.index)
        values = tuple(self.kwargs.get(name) for name in names)
        if None in values:
            return None
        return values if len(values) > 1 else values[0]

    def _partition_values(self) -> dict[str, Any]:
        """The values of the partition by the names of their attributes; empty without one.

        Raises:
            Http404: no item can have them. They may be texts of a URL.
        """
        partition, model = self.get_partition(), self._model()
        if partition is None:
            return {}
        names = model._partition_names(self.index)
        values = partition if isinstance(partition, tuple) else (partition,)
        if len(values) != len(names):
            raise ImproperlyConfigured(
                f"The partition of this list is ({', '.join(names)}), not {partition!r}."
            )
        return typed_or_404(model, dict(zip(names, values, strict=True)))

    def _partition_page(self, values: Mapping[str, object], **options: Any) -> Page[Any]:
        key = tuple(values.values())
        source = self.index or self._model()
        return source.page(key if len(key) > 1 else key[0], **options)


class ListMixin(PartitionMixin, _ModelMixin[M]):
    """For `ListView`: a page of one partition, of the table or of `index` (`Member.by_city`).

    The partition is `partition`, or the argument of the URL with the name of the partition key.
    `ordering` is the sort key's name; `-joined` shows the last items first. The template links to
    the next page with `?page={{ page_obj.next|urlencode }}` if there is `page_obj.next`.
    """

    paginate_by: int | None = 50
    #: The page that is shown; None if `get_queryset` is overridden and returns none.
    page: Page[M] | None = None

    def get_page(self, **options: Any) -> Page[M]:
        """The page; `options` are those of `Model.page`: `after`, `limit`, or `scope`."""
        self._refuse(MultipleObjectMixin, ("queryset",), "override get_page or get_queryset")
        model = self._model()
        ordering = self.get_ordering() or ""
        if isinstance(ordering, (list, tuple)) and len(ordering) == 1:
            [ordering] = ordering
        ordering = str(ordering)
        names = model._partition_names(self.index)
        if (
            ordering
            and ordering.removeprefix("-") not in model._key_names(self.index)[len(names) :]
        ):
            raise ImproperlyConfigured(f"{type(self).__name__}.ordering must be the sort key.")
        if not (values := self._partition_values()):
            raise ImproperlyConfigured(
                f"{type(self).__name__} needs the partition that it lists: set `partition`, or "
                f"take {' and '.join(names)} from the URL. With `index` it lists a partition of an "
                "index."
            )
        options = {
            **self._page_options(),
            "scan_index_forward": not ordering.startswith("-"),
            **options,
        }
        return self._partition_page(values, **options)

    def _page_options(self) -> dict[str, Any]:
        limit = self.get_paginate_by(None)
        if not limit:
            raise ImproperlyConfigured(
                f"{type(self).__name__}.paginate_by must be a number: a list shows one page."
            )
        return {"after": self._after(), "limit": limit}

    def _after(self) -> str | None:
        return self.kwargs.get(self.page_kwarg) or self.request.GET.get(self.page_kwarg)

    def get_queryset(self) -> Any:
        try:
            self.page = self.get_page(**self._page_options())
        except BadCursor as error:
            raise Http404(str(error)) from error
        return self.page

    def paginate_queryset(self, queryset: object, page_size: int) -> Any:
        if isinstance(queryset, Page):
            self.page, queryset = queryset, queryset.items
        if self.page is not None:
            self._refuse(MultipleObjectMixin, _PAGINATION, "pages of DynamoDB have no numbers")
            return None, self.page, queryset, bool(self.page.next or self._after())
        if isinstance(queryset, Items) or not hasattr(queryset, "__len__"):
            name = self._model().__name__
            raise ImproperlyConfigured(
                f"{type(self).__name__}.get_queryset must return {name}.page(…), a page of an "
                "index, or a list. To show a small table, return list(…) of its items."
            )
        return super().paginate_queryset(queryset, page_size)

    def get_context_object_name(self, object_list: object) -> Any:
        model = self._known_model()
        return self.context_object_name or (model and f"{model._meta.model_name}_list")


class ListView(ListMixin[M], generic.ListView):
    """Django's, with `ListMixin`."""

    model: type[M]


class DetailView(DetailMixin[M], generic.DetailView):
    """Django's, with `DetailMixin`."""

    model: type[M]
    object: M


class CreateView(CreateMixin[M, F], _CreateView):
    """Django's, with `CreateMixin`."""

    model: type[M]
    object: M


class UpdateView(UpdateMixin[M, F], _UpdateView):
    """Django's, with `UpdateMixin`."""

    model: type[M]
    object: M


class DeleteView(DeleteMixin[M, F], _DeleteView):
    """Django's, with `DeleteMixin`."""

    model: type[M]
    object: M
