"""The list of a model: which Query reads it, and what its page shows.

A page of a list is one Query: of a partition of the table or of an index. A filter names the
partition key, and an order names the sort key. A list without a partition reads the table itself,
with at most three requests for a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib.admin.decorators import display
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.views.main import ORDER_VAR, PAGE_VAR, SEARCH_VAR
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.utils.translation import gettext as djangos_text
from django.views.decorators.debug import sensitive_post_parameters

from dynamo.admin.identity import as_row, id_of, name_of
from dynamo.admin.options import Column, Context, Options
from dynamo.exceptions import BadCursor, DamagedItem
from dynamo.forms import M
from dynamo.model.base import Model
from dynamo.model.pages import Page, scan_page
from dynamo.model.unique import UniqueKey
from dynamo.runtime.threads import together
from dynamo.wire.attributes import StrOrPromise


@dataclass(frozen=True)
class Source:
    """The table or an index that a list can be read from, by the names of its key's attributes."""

    index_name: str | None
    partition: str
    sort: str | None = None


def sources(model: type[Model]) -> list[Source]:
    """The table and its indexes; those that have all attributes come first.

    Indexes whose partition key has several attributes are left out.
    """
    indexes = sorted(
        model._indexes.values(), key=lambda index: index.Meta.projection.projection_type != "ALL"
    )
    listed = (
        Source(str(index.Meta.index_name), *model._key_names(index)[:2])
        for index in indexes
        if len(model._partition_names(index)) == 1
    )
    return [Source(None, *model._key_names()), *listed]


def source_of(model: type[Model], partition: str, ordering: str = "") -> Source | None:
    """The first source with this partition key, and with the sort key `ordering` if it is given."""
    fitting = [source for source in sources(model) if source.partition == partition]
    wanted = ordering.removeprefix("-")
    return next((item for item in fitting if not wanted or item.sort == wanted), None)


class Filter:
    """A filter of the list by a partition key: a list of choices, or a value that is typed."""

    template = "admin/filter.html"

    def __init__(self, name: str, changelist: ChangeList) -> None:
        self.name, self.changelist = name, changelist
        field = changelist.model._meta.get_field(name)
        self.title = field.verbose_name
        self.value = changelist.filters.get(name, "")
        self.pairs = [(str(value), label) for value, label in field.flatchoices]
        if not self.pairs:
            self.template = "dynamo/admin/filter.html"

    def choices(self, changelist: ChangeList) -> Iterator[dict[str, object]]:
        for value, label in [("", djangos_text("All")), *self.pairs]:
            yield {
                "selected": value == self.value,
                "query_string": changelist.get_query_string({self.name: value}),
                "display": label,
            }


class ChangeList:
    """The attributes that contrib.admin's template of a list reads."""

    formset = list_editable = date_hierarchy = to_field = None
    preserved_filters = ""
    is_facets_optional = add_facets = show_full_result_count = False

    def __init__(self, request: HttpRequest, model_admin: ListAdmin) -> None:
        self.model_admin, self.model = model_admin, model_admin.model
        self.opts = self.lookup_opts = opts = model_admin.opts
        self.search_fields = model_admin.get_search_fields(request)
        self.search_help_text = model_admin.search_help_text
        # An item read from an index may lack attributes that its `__str__` needs.
        of_item: Column = display(lambda item: name_of(item), description=opts.verbose_name)
        shown = model_admin.get_list_display(request)
        links = model_admin.get_list_display_links(request, shown)
        self.show_admin_actions = bool(model_admin.get_actions(request))
        self.query = request.GET.get(SEARCH_VAR, "").strip() if self.search_fields else ""
        names = () if self.query else model_admin.get_list_filter(request)
        #: The value of the one filter that is chosen, by its name.
        self.filters = {name: request.GET[name] for name in names if request.GET.get(name)}
        self.filters = dict(list(self.filters.items())[:1])
        self.filter_specs = [Filter(item, self) for item in model_admin.get_list_filter(request)]
        self.has_filters = bool(self.filter_specs)
        self.has_active_filters = bool(self.filters)
        #: Whether the list is a look-up, which has its own window.
        self.is_popup = IS_POPUP_VAR in request.GET
        self.params: dict[str, str] = {IS_POPUP_VAR: "1"} if self.is_popup else {}
        self.clear_all_filters_qs = f"?{urlencode(self.params)}"
        self.after = request.GET.get(PAGE_VAR) or None
        ordering = next(iter(model_admin.get_ordering(request)), "")
        #: The source of the one Query that reads the list, and its partition; None for the whole
        #: table.
        self.source, self.partition = self._source(ordering)
        asked = request.GET.get(ORDER_VAR, "")
        if asked.removeprefix("-").isdecimal():
            self.params[ORDER_VAR] = asked
        self.descending = self.params.get(ORDER_VAR, ordering).startswith("-")
        page = model_admin.get_page(request, self)
        self.result_list = page.items
        self.next = page.next
        #: The functions that are shown in place of names in `list_display`.
        self.columns = {"__str__": of_item, **self._reference_columns(request, shown)}
        self.list_display = [self.columns.get(name, name) for name in shown]
        self.list_display_links = links and [self.columns.get(link, link) for link in links]
        if self.show_admin_actions:
            self.list_display.insert(0, "action_checkbox")
        # Both counts are equal, so that the page shows no count and offers no selection of other
        # pages.
        self.result_count = self.full_result_count = len(self.result_list)
        self.count_note = model_admin.count_note(request)
        self.is_too_short = bool(self.query) and model_admin.is_too_short(request, self.query)
        verb = "change" if model_admin.has_change_permission(request) else "view"
        title = "Select %s" if self.is_popup else f"Select %s to {verb}"
        self.title = djangos_text(title) % self.opts.verbose_name

    def _source(self, ordering: str) -> tuple[Source | None, object]:
        for name, value in self.filters.items():
            return source_of(self.model, name, ordering) or source_of(self.model, name), value
        if self.model_admin.list_index is None or self.query:
            return None, None
        indexes = {source.index_name: source for source in sources(self.model)}
        index_name = str(self.model_admin.list_index.Meta.index_name)
        return indexes[index_name], self.model_admin.list_partition

    def _reference_columns(
        self, request: HttpRequest, shown: Sequence[Column]
    ) -> dict[Column, Column]:
        """Columns that show a `Reference` as its item's name, or as its key for other users.

        Costs 1 request for each model that they refer to.
        """
        models = {
            name: admin.model
            for name in shown
            if isinstance(name, str) and (admin := self.model_admin.admin_of(request, name))
        }
        rows = [item for item in self.result_list if not isinstance(item, DamagedItem)]
        keys: dict[type[Model], set[str]] = {}
        for name, model in models.items():
            keys.setdefault(model, set()).update(filter(None, (getattr(row, name) for row in rows)))
        found = together(*(partial(_names_of, *pair) for pair in keys.items())) if keys else ()
        names = dict(zip(keys, found, strict=True))
        return {
            name: _reference_column(name, self.opts.by_name[name].verbose_name, names[model])
            for name, model in models.items()
        }

    def get_query_string(self, new: dict[str, str] | None = None) -> str:
        """The address of this list with other parameters, from its first page."""
        new = new or {}
        now = {**({SEARCH_VAR: self.query} if self.query else {}), **self.filters, **self.params}
        if new.keys() & {spec.name for spec in self.filter_specs}:
            now = dict(self.params)
        return f"?{urlencode({name: value for name, value in {**now, **new}.items() if value})}"

    @property
    def next_query_string(self) -> str:
        return self.get_query_string({PAGE_VAR: self.next}) if self.next else ""

    @property
    def sortable_by(self) -> list[Column | None]:
        """Only the sort key, because the list is always sorted by it."""
        if self.source is None or self.query:
            return []
        return [self.columns.get(self.source.sort or "", self.source.sort)]

    def get_ordering_field_columns(self) -> dict[int, str]:
        order = "desc" if self.descending else "asc"
        columns = enumerate(self.list_display)
        return {number: order for number, name in columns if name in self.sortable_by}

    def url_for_result(self, result: Model) -> str:
        """The page of an item."""
        return str(self.model_admin.url("change", result))


def _names_of(model: type[Model], keys: Iterable[str]) -> dict[object, str]:
    found = model.batch_get(keys, damaged=lambda _stored, _error: None)
    return {item.pk: name_of(item) for item in found}


def _reference_column(name: str, label: StrOrPromise, names: Mapping[object, str]) -> Column:
    def column(item: Model) -> object:
        key = getattr(item, name)
        return names.get(key, key)

    # The name is a class of the column's cells.
    column.__name__ = name
    return display(column, description=label, ordering=name)


class ListAdmin(Options[M]):
    """The list of a ModelAdmin. One Query reads a page of it."""

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        return ChangeList(request, self)

    @method_decorator(sensitive_post_parameters())
    def changelist_view(self, request: HttpRequest, extra_context: Context = None) -> HttpResponse:
        """Show a page of the list, or run an action on selected items.

        Costs as much as `get_page`.
        """
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        if request.method == "POST" and (actions := self.get_actions(request)):
            return self._act_on_selected(request, actions)
        try:
            changelist = self.get_changelist_instance(request)
        except BadCursor:
            return HttpResponseRedirect(request.path)
        media, action_form = self.media, None
        if changelist.show_admin_actions:
            action_form = self.action_form(auto_id=None)
            action_form.fields["action"].choices = self.get_action_choices(request)
            media += action_form.media
        count = {"cnt": len(changelist.result_list)}
        options = ("actions_on_top", "actions_on_bottom", "actions_selection_counter")
        context = {
            "module_name": self.opts.verbose_name_plural,
            "title": changelist.title,
            "cl": changelist,
            "media": media,
            "action_form": action_form,
            "selection_note": djangos_text("0 of %(cnt)s selected") % count,
            "is_popup": changelist.is_popup,
            # The window of a look-up has no such button, because an added item would not be chosen
            # there.
            "has_add_permission": not changelist.is_popup and self.has_add_permission(request),
            **{option: getattr(self, option) for option in options},
            **(extra_context or {}),
        }
        return self._render(request, "change_list.html", self.change_list_template, context)

    def get_page(self, request: HttpRequest, changelist: ChangeList) -> Page[M]:
        """The items of the page. Costs 1 request; of a whole table at most 3."""
        if changelist.query:
            return self.get_search_results(request, changelist.query, changelist.after)
        if changelist.source is None:
            return scan_page(self.model, self.list_per_page, changelist.after, as_row)
        source = changelist.source
        value = changelist.partition
        return self._partition(source, value, changelist.after, descending=changelist.descending)

    def get_search_results(
        self, request: HttpRequest, search_term: str, after: str | None = None
    ) -> Page[M]:
        """A page of the items that `search_fields` find, in the order of these fields.

        A unique attribute finds the item with the value; if it is searchable, also the items whose
        values begin with it. A partition key finds the items of that partition. Costs 2 requests
        for each unique attribute, 2 more if it is searchable, and 1 for each partition key.

        Raises:
            BadCursor: `after` belongs to another list.
        """
        fields = self.get_search_fields(request)
        place, _dot, cursor = (after or "0.").partition(".")
        if not (len(place) < 4 and place.isdecimal() and int(place) < len(fields)):
            raise BadCursor
        found: dict[object, M] = {}
        for number, name in list(enumerate(fields))[int(place) :]:
            page = self._search(name, search_term, cursor or None)
            before = filter(None, map(self._searchable, fields[:number]))
            begins = [item.begins for item in before]
            for item in page:
                # An earlier field may have found it on a previous page.
                stored = getattr(item, "stored", {})
                if not any(begin(stored, search_term) for begin in begins):
                    found.setdefault(item if isinstance(item, DamagedItem) else id_of(item), item)
            if page.next:
                return Page(list(found.values()), f"{number}.{page.next}")
            cursor = ""
        return Page(list(found.values()), None)

    def _searchable(self, name: str) -> UniqueKey | None:
        uniques = self.model._unique_keys
        return next(
            (unique for unique in uniques if unique.searchable and unique.names == (name,)), None
        )

    def is_too_short(self, request: HttpRequest, search_term: str) -> bool:
        """Whether `search_term` has too few letters to find items by the beginning of a value."""
        for unique in filter(None, map(self._searchable, self.get_search_fields(request))):
            try:
                unique.beginning(search_term)
            except ValueError:
                return True
        return False

    def _search(self, name: str, text: str, after: str | None) -> Page[Any]:
        if name not in self.model.unique_names():
            source = source_of(self.model, name)
            return Page([], None) if source is None else self._partition(source, text, after)
        found = [] if after else self._find(name, text)
        unique = self._searchable(name)
        try:
            begins = unique is not None and unique.beginning(text)
        except ValueError:
            # The text has too few letters for a search.
            begins = ""
        if not begins:
            return Page(found, None)
        page = self.model.search(name, text, **self._page_options(after))
        return Page([*found, *page], page.next)

    def _find(self, name: str, text: str) -> list[Any]:
        try:
            return [self.model._get_by(**self.model._typed_values({name: text}))]
        except self.model.DoesNotExist:
            return []
        except DamagedItem as error:
            return [error]

    def _partition(
        self, source: Source, text: object, after: str | None, *, descending: bool = False
    ) -> Page[M]:
        try:
            value = self.model._typed_values({source.partition: text})[source.partition]
        except self.model.DoesNotExist:
            return Page([], None)
        return self.model.page(
            value,
            index_name=source.index_name,
            scan_index_forward=not descending,
            **self._page_options(after),
        )

    def _page_options(self, after: str | None) -> dict[str, Any]:
        limit = self.list_per_page
        return {"after": after, "limit": limit, "scope": "admin", "damaged": as_row}

    def count_note(self, request: HttpRequest) -> object:
        """The text about the number of items.

        A subclass can take the number from a stored report.
        """
        return ""
