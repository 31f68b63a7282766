"""The options of a ModelAdmin: what it shows, who may do what, and which Query reads a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import model_format_dict
from django.contrib.auth import get_permission_codename
from django.core.checks import CheckMessage
from django.http import Http404, HttpRequest
from django.utils.text import capfirst
from pynamodb.attributes import UnicodeSetAttribute

from dynamo.admin.changelist import ChangeList, Source, source_of, sources
from dynamo.admin.helpers import LinesField
from dynamo.admin.keys import id_of
from dynamo.admin.models import LogEntry
from dynamo.admin.values import DamagedRow, is_sensitive
from dynamo.exceptions import BadCursor, DamagedItem
from dynamo.forms import ModelForm
from dynamo.models import Model
from dynamo.pages import Page, read_page, read_search, scan_page
from dynamo.unique.declarations import SEARCH_LETTERS
from dynamo.views import _converted

#: Its stubs know relational models only.
_ContribsModelAdmin: Any = admin.ModelAdmin


class BaseModelAdmin(_ContribsModelAdmin):  # type: ignore[misc]  # Any
    """The options and pages of a model: contrib.admin's, as far as one Query serves them.

    `list_index` (`Member.by_club`) and `list_partition` say what the list shows at first; without
    them it reads the table, in no order.
    """

    list_index: Any = None
    list_partition: Any = None
    list_per_page = 50
    ordering: Sequence[str] = ()
    fields: Sequence[Any] | None = None
    exclude: Sequence[str] = ()
    form: type[ModelForm[Any]] = ModelForm
    preserve_filters = False
    #: Which of `add`, `change` and `delete` ask for the password.
    dangerous: Sequence[str] = ()
    #: Whether additions, changes, deletions and actions need a reason.
    reason_required = False

    def __init__(self, model: type[Model], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        for name, function in self._named_actions().items():
            LogEntry.labels.setdefault(name, getattr(function, "short_description", name))

    def check(self) -> list[CheckMessage]:
        from dynamo.admin.checks import check_model_admin

        # A class that overrides the method decides itself who may add items.
        may_add = type(self).has_add_permission is _ContribsModelAdmin.has_add_permission
        return check_model_admin(self, may_add=may_add)

    def permission(self, name: str) -> str:
        return f"{self.opts.app_label}.{get_permission_codename(name, self.opts)}"

    # Forms ----------------------------------------------------------------------------------------

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[Any]:
        """By default each attribute that is editable, those that no form field has included."""
        if self.fields:
            return self.fields
        known = self.opts.fields
        names = [name for name, each in known.items() if each.editable]
        declared = [name for name in self.form.declared_fields if name not in names]
        readonly = [each for each in self.get_readonly_fields(request, obj) if each not in names]
        shown = [*names, *declared, *readonly]
        return [
            each
            for each in shown
            if each not in self.exclude and not is_sensitive(self.model, each)
        ]

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Contrib's, with overrides by the class of the attribute."""
        kind = type(db_field.attribute)
        if kind is UnicodeSetAttribute:
            kwargs = {"form_class": LinesField, "empty_value": "", **kwargs}
        kwargs = {**self.formfield_overrides.get(kind, {}), **kwargs}
        return super().formfield_for_dbfield(db_field, request, **kwargs)

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
        source = next(each for each in sources(self.model) if each.index_name == name)
        return source, self.list_partition

    def get_page(self, request: HttpRequest, changelist: ChangeList) -> Page[Any]:
        """The items of the page. Costs 1 request; of a whole table at most 3."""
        if changelist.query:
            return self.get_search_results(request, changelist.query, changelist.after)
        if changelist.source is None:
            return scan_page(self.model, self.list_per_page, changelist.after, DamagedRow)
        source, value = changelist.source, changelist.partition
        return self._partition(source, value, changelist.after, descending=changelist.descending)

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
            return Page([], None) if source is None else self._partition(source, text, after)
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

    def _partition(
        self, source: Source, text: Any, after: str | None, *, descending: bool = False
    ) -> Page[Any]:
        try:
            value = _converted(self.model, {source.partition: text})[source.partition]
        except Http404:
            return Page([], None)
        query = {"index_name": source.index_name, "scan_index_forward": not descending}
        return read_page(self.model, value, self.list_per_page, after, "admin", query, DamagedRow)

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
                text = str(description) % model_format_dict(self.opts)
                found[name] = function, name, capfirst(text)
        return found

    def _named_actions(self) -> dict[str, Any]:
        named = dict(self.admin_site.actions)
        for each in self.actions or ():
            name = each if isinstance(each, str) else each.__name__
            named[name] = getattr(type(self), each) if isinstance(each, str) else each
        return named

    def get_action_choices(self, request: HttpRequest) -> list[tuple[str, Any]]:
        actions = self.get_actions(request).values()
        return [("", "---------"), *((name, text) for _function, name, text in actions)]
