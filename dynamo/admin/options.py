"""The options of a ModelAdmin: what it shows, who may do what, and which Query reads a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, cast

from django import forms
from django.conf import settings
from django.contrib.admin import widgets
from django.contrib.auth import get_permission_codename
from django.core.checks import CheckMessage
from django.http import Http404, HttpRequest
from django.utils.text import capfirst
from pynamodb.attributes import UnicodeSetAttribute

from dynamo.admin.changelist import ChangeList, Source, source_of, sources
from dynamo.admin.helpers import WIDGETS, LinesField
from dynamo.admin.keys import id_of
from dynamo.admin.models import LogEntry
from dynamo.admin.values import DamagedRow, Options, is_sensitive
from dynamo.exceptions import BadCursor, DamagedItem
from dynamo.forms import ModelForm, modelform_factory
from dynamo.models import Model
from dynamo.pages import Page, read_search, scan_page
from dynamo.unique.declarations import SEARCH_LETTERS
from dynamo.views import _converted


class BaseModelAdmin:
    """The options and pages of a registered model, with the names of contrib.admin's.

    `list_index` (`Member.by_club`) and `list_partition` say what the list shows at first; without
    them it reads the table, in no order.
    """

    list_display: Sequence[Any] = ("__str__",)
    list_display_links: Sequence[str] | None = ()
    list_filter: Sequence[str] = ()
    list_index: Any = None
    list_partition: Any = None
    list_per_page = 50
    search_fields: Sequence[str] = ()
    search_help_text: Any = None
    ordering: Sequence[str] = ()
    fields: Sequence[Any] | None = None
    exclude: Sequence[str] = ()
    fieldsets: Sequence[tuple[Any, dict[str, Any]]] | None = None
    readonly_fields: Sequence[Any] = ()
    form: type[ModelForm[Any]] = ModelForm
    formfield_overrides: ClassVar[Mapping[type[Any], Mapping[str, Any]]] = {}
    actions: Sequence[Any] | None = ()
    #: Which of `add`, `change` and `delete` ask for the password.
    dangerous: Sequence[str] = ()
    #: Whether additions, changes, deletions and actions need a reason.
    reason_required = False
    empty_value_display: Any = None

    add_form_template: str | None = None
    change_form_template: str | None = None
    change_list_template: str | None = None
    delete_confirmation_template: str | None = None
    object_history_template: str | None = None

    def __init__(self, model: type[Model], admin_site: Any) -> None:
        self.model, self.admin_site = model, admin_site
        self.opts = Options(model)
        for name, function in self._named_actions().items():
            LogEntry.labels.setdefault(name, getattr(function, "short_description", name))

    def __str__(self) -> str:
        return f"{self.opts.app_label}.{type(self).__name__}"

    def check(self) -> list[CheckMessage]:
        from dynamo.admin.checks import check_model_admin

        # A class that overrides the method decides itself who may add items.
        may_add = type(self).has_add_permission is BaseModelAdmin.has_add_permission
        return check_model_admin(self, may_add=may_add)

    @property
    def media(self) -> forms.Media:
        extra = "" if settings.DEBUG else ".min"
        names = [f"vendor/jquery/jquery{extra}.js", "jquery.init.js", "core.js", "actions.js"]
        return forms.Media(js=[f"admin/js/{name}" for name in names])

    # Permissions ----------------------------------------------------------------------------------

    def permission(self, name: str) -> str:
        return f"{self.opts.app_label}.{get_permission_codename(name, cast(Any, self.opts))}"

    def _has_perm(self, request: HttpRequest, name: str) -> bool:
        return cast(Any, request.user).has_perm(self.permission(name)) is True

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._has_perm(request, "add")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._has_perm(request, "change")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._has_perm(request, "delete")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._has_perm(request, "view") or self._has_perm(request, "change")

    def has_view_or_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request, obj) or self.has_change_permission(request, obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(cast(Any, request.user).has_module_perms(self.opts.app_label))

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        return {
            "add": self.has_add_permission(request),
            "change": self.has_change_permission(request),
            "delete": self.has_delete_permission(request),
            "view": self.has_view_permission(request),
        }

    # Options that depend on the request -----------------------------------------------------------

    def get_empty_value_display(self) -> Any:
        return self.empty_value_display or self.admin_site.empty_value_display

    def get_list_display(self, request: HttpRequest) -> Sequence[Any]:
        return self.list_display

    def get_list_filter(self, request: HttpRequest) -> Sequence[str]:
        return self.list_filter

    def get_search_fields(self, request: HttpRequest) -> Sequence[str]:
        return self.search_fields

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        return self.ordering

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[Any]:
        return self.readonly_fields

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[Any]:
        """By default each attribute that is editable, those that no form field has included."""
        if self.fields:
            return self.fields
        known = self.model._meta.fields
        names = [name for name, each in known.items() if each.editable]
        declared = [name for name in self.form.declared_fields if name not in names]
        readonly = [each for each in self.get_readonly_fields(request, obj) if each not in names]
        shown = [*names, *declared, *readonly]
        return [
            each
            for each in shown
            if each not in self.exclude and not is_sensitive(self.model, each)
        ]

    def get_fieldsets(
        self, request: HttpRequest, obj: Any = None
    ) -> Sequence[tuple[Any, dict[str, Any]]]:
        return self.fieldsets or [(None, {"fields": self.get_fields(request, obj)})]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> type[ModelForm[Any]]:
        """The form; `fields` are the names that it has, and that are not only shown."""
        defaults = {
            "form": self.form,
            "formfield_callback": partial(self.formfield_for_dbfield, request=request),
            **options,
        }
        return modelform_factory(self.model, **defaults)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """The form field of an attribute, with contrib.admin's widget; None if it has none."""
        kind = type(db_field.attribute)
        if kind is UnicodeSetAttribute:
            kwargs = {"form_class": LinesField, "empty_value": "", **kwargs}
        options = {**self.formfield_overrides.get(kind, {}), **kwargs}
        made = db_field.formfield(**options)
        if (
            "widget" in options
            or "form_class" in options
            or isinstance(made, forms.TypedChoiceField)
        ):
            return made
        if isinstance(made, forms.DateTimeField):
            return db_field.formfield(
                form_class=forms.SplitDateTimeField, widget=widgets.AdminSplitDateTime, **options
            )
        widget = next((WIDGETS[each] for each in type(made).__mro__ if each in WIDGETS), None)
        if made is not None and widget is not None:
            made = db_field.formfield(widget=widget, **options)
        return made

    # Lists ----------------------------------------------------------------------------------------

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        return ChangeList(request, self)

    def get_source(
        self, request: HttpRequest, changelist: ChangeList, ordering: str
    ) -> tuple[Source | None, Any]:
        """What the list is read from, and the value of its partition."""
        for name, value in changelist.filters.items():
            return source_of(self.model, name, ordering) or source_of(self.model, name), value
        if self.list_index is None or changelist.query:
            return None, None
        name = str(self.list_index.Meta.index_name)
        return next(each for each in sources(self.model) if each.index_name == name), (
            self.list_partition
        )

    def get_page(self, request: HttpRequest, changelist: ChangeList) -> Page[Any]:
        """The items of the page. Costs 1 request; of a whole table at most 3."""
        if changelist.query:
            return self.get_search_results(request, changelist.query, changelist.after)
        if changelist.source is None:
            return scan_page(self.model, self.list_per_page, changelist.after, DamagedRow)
        return self._partition(
            changelist.source,
            changelist.partition,
            after=changelist.after,
            descending=changelist.descending,
        )

    def get_search_results(
        self, request: HttpRequest, search_term: str, after: str | None = None
    ) -> Page[Any]:
        """A page of the items that `search_fields` find: those of the first field first.

        Of a unique attribute the item with the value, and if it is searchable those whose value
        begins so; of a partition key the items of that partition. Costs 2 requests for each unique
        attribute, 2 more if it is searchable, 1 for each partition key.

        Raises:
            BadCursor: `after` belongs to another list.
        """
        fields = self.get_search_fields(request)
        place, _dot, cursor = (after or "0.").partition(".")
        if not (len(place) < 4 and place.isdecimal() and int(place) < len(fields)):
            raise BadCursor
        found: dict[Any, Any] = {}
        for number, name in list(enumerate(fields))[int(place) :]:
            page = self._search(name, search_term, cursor or None)
            before = filter(None, map(self._searchable, fields[:number]))
            begins = [each.begins for each in before]
            for item in page:
                # What an earlier field has found may be on a page before.
                if not any(each(item.stored, search_term) for each in begins):
                    found.setdefault(item if isinstance(item, DamagedRow) else id_of(item), item)
            if page.next:
                return Page(list(found.values()), f"{number}.{page.next}")
            cursor = ""
        return Page(list(found.values()), None)

    def _searchable(self, name: str) -> Any:
        uniques = self.model._unique_keys
        return next((each for each in uniques if each.searchable and each.names == (name,)), None)

    def _search(self, name: str, text: str, after: str | None) -> Page[Any]:
        if name not in self.model.unique_names():
            source = source_of(self.model, name)
            return Page([], None) if source is None else self._partition(source, text, after=after)
        found = [] if after else self._find(name, text)
        unique = self._searchable(name)
        if unique is None or len(text) < SEARCH_LETTERS:
            return Page(found, None)
        limit = self.list_per_page
        page: Page[Any] = read_search(self.model, unique, text, limit, after, "admin", DamagedRow)
        return Page([*found, *page], page.next)

    def _find(self, name: str, text: str) -> list[Any]:
        try:
            return [self.model.find(**_converted(self.model, {name: text}))]
        except (Http404, self.model.DoesNotExist):
            return []
        except DamagedItem as error:
            return [DamagedRow({}, error)]

    def _partition(self, source: Source, text: Any, **options: Any) -> Page[Any]:
        try:
            value = _converted(self.model, {source.partition: text})[source.partition]
        except Http404:
            return Page([], None)
        return source.page(self.model, value, limit=self.list_per_page, **options)

    def count_note(self, request: HttpRequest) -> Any:
        """What the list says about the number of items, such as that of a stored report."""
        return ""

    # Actions --------------------------------------------------------------------------------------

    def get_actions(self, request: HttpRequest) -> dict[str, tuple[Any, str, Any]]:
        """By name: the function, its name and its description, of those that the user may call."""
        if self.actions is None:
            return {}
        found = {}
        for name, function in self._named_actions().items():
            needed = getattr(function, "allowed_permissions", ())
            if not needed or any(
                getattr(self, f"has_{each}_permission")(request) for each in needed
            ):
                description = getattr(function, "short_description", name.replace("_", " "))
                found[name] = function, name, capfirst(str(description) % self._nouns())
        return found

    def _named_actions(self) -> dict[str, Any]:
        named = dict(self.admin_site.actions)
        for each in self.actions or ():
            name = each if isinstance(each, str) else each.__name__
            named[name] = getattr(type(self), each) if isinstance(each, str) else each
        return named

    def _nouns(self) -> dict[str, Any]:
        return {
            "verbose_name": self.opts.verbose_name,
            "verbose_name_plural": self.opts.verbose_name_plural,
        }

    def get_action_choices(self, request: HttpRequest) -> list[tuple[str, Any]]:
        actions = self.get_actions(request).values()
        return [("", "---------"), *((name, text) for _function, name, text in actions)]
