"""`ModelAdmin`: the pages of one model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial, update_wrapper
from typing import Any, ClassVar, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import decorators, helpers, widgets
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth import get_permission_codename
from django.core import signing
from django.core.checks import CheckMessage
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.text import capfirst, get_text_list
from django.utils.translation import (
    gettext as djangos_text,
    gettext_lazy as _,
    gettext_lazy as djangos_lazy,
)
from pynamodb.attributes import UnicodeSetAttribute

from dynamo._internal import bulk
from dynamo.admin.changelist import ChangeList, Source, source_of, sources
from dynamo.admin.keys import id_of, id_of_key, with_id
from dynamo.admin.models import LogEntry, journal_of, list_entries, record
from dynamo.admin.rights import RightsLost
from dynamo.admin.values import DamagedRow, Options, Shown, is_sensitive, label_for, name_of, shown
from dynamo.exceptions import (
    AlreadyDone,
    BadCursor,
    DamagedItem,
    DynamoError,
    Refused,
    Stale,
)
from dynamo.forms import ModelField, ModelForm, model_fields, modelform_factory
from dynamo.models import Model
from dynamo.pages import Page, read_search, scan_page
from dynamo.transactions import Transaction
from dynamo.unique.declarations import SEARCH_LETTERS
from dynamo.views import _converted

DELETE = "delete_selected"
REASON, PASSWORD, SEEN = "_reason", "_password", "_seen"
REASON_MAX_LENGTH = 200

OVERTAKEN = _("It was changed after this page was opened, so nothing was done.")
GONE = _("It was deleted after this page was opened.")

Action = Callable[["ModelAdmin", HttpRequest, Any, Transaction], object]
"""Adds the writes of an action on one item to a transaction, which then gets its log entry."""

#: The widgets of contrib.admin, by form field.
_WIDGETS: dict[type[forms.Field], type[forms.Widget]] = {
    forms.CharField: widgets.AdminTextInputWidget,
    forms.IntegerField: widgets.AdminIntegerFieldWidget,
    forms.DateField: widgets.AdminDateWidget,
    forms.JSONField: widgets.AdminTextareaWidget,
}


def action(
    function: Any = None,
    *,
    permissions: Sequence[str] | None = None,
    description: Any = None,
    dangerous: bool = False,
) -> Any:
    """As contrib's, for a method that is called for each selected item, with its transaction.

        @admin.action(description="Block", permissions=["change"], dangerous=True)
        def block(self, request, obj, write):
            obj.change(is_blocked=True, write=write)

    The transaction also gets the entry in the audit log, and requires that the user still has one
    of the permissions. A dangerous action asks for the password.
    """

    def decorated(made: Any) -> Any:
        made.dangerous = dangerous
        return decorators.action(made, permissions=permissions, description=description)

    return decorated if function is None else decorated(function)


def delete_selected(
    model_admin: ModelAdmin, request: HttpRequest, obj: Any, write: Transaction
) -> None:
    model_admin.delete_model(request, obj, write)


action(
    delete_selected,
    permissions=["delete"],
    description=djangos_lazy("Delete selected %(verbose_name_plural)s"),
)

#: Their stubs know contrib's ModelAdmin only.
_helpers: Any = helpers


class LinesField(forms.CharField):
    """A set of texts, one in each line."""

    widget = widgets.AdminTextareaWidget

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else "\n".join(sorted(value))

    def clean(self, value: Any) -> Any:
        return set(filter(None, map(str.strip, super().clean(value).splitlines()))) or None

    @classmethod
    def can_show(cls, value: Any) -> bool:
        """Whether lines hold this set without loss."""
        return all(text.splitlines() == [text.strip()] for text in value or ())


class _Readonly(_helpers.AdminReadonlyField):  # type: ignore[misc]  # Any
    """A value that the form does not edit."""

    def __init__(self, form: Any, name: Any, is_first: bool, model_admin: Any) -> None:
        attribute = model_admin.model.get_attributes().get(name)
        self.field = {
            "name": name if isinstance(name, str) else name.__name__,
            "label": label_for(name, model_admin),
            "help_text": getattr(attribute, "help_text", ""),
            "field": name,
            "is_hidden": False,
        }
        self.form, self.model_admin, self.is_first = form, model_admin, is_first
        self.is_checkbox, self.is_readonly = False, True

    def contents(self) -> Any:
        return shown(self.field["field"], self.form.instance, self.model_admin)


class _Line(_helpers.Fieldline):  # type: ignore[misc]  # Any
    def __iter__(self) -> Any:
        for place, name in enumerate(self.fields):
            if name in self.readonly_fields:
                yield _Readonly(self.form, name, place == 0, self.model_admin)
            else:
                yield helpers.AdminField(self.form, name, place == 0)


class _Fieldset(_helpers.Fieldset):  # type: ignore[misc]  # Any
    def __iter__(self) -> Any:
        for name in self.fields:
            yield _Line(self.form, name, self.readonly_fields, model_admin=self.model_admin)


class _AdminForm(_helpers.AdminForm):  # type: ignore[misc]  # Any
    def __iter__(self) -> Any:
        for name, options in self.fieldsets:
            yield _Fieldset(
                self.form,
                name,
                readonly_fields=self.readonly_fields,
                model_admin=self.model_admin,
                **options,
            )


class ModelAdmin:
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

        return check_model_admin(self)

    # URLs -----------------------------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        def wrap(view: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> HttpResponseBase:
                return cast(HttpResponseBase, self.admin_site.admin_view(view)(*args, **kwargs))

            made = cast(Any, update_wrapper(wrapper, view))
            made.model_admin = self
            return made

        name = f"{self.opts.app_label}_{self.opts.model_name}"
        item = "<path:object_id>"
        return [
            path("", wrap(self.changelist_view), name=f"{name}_changelist"),
            path("add/", wrap(self.add_view), name=f"{name}_add"),
            path(f"{item}/history/", wrap(self.history_view), name=f"{name}_history"),
            path(f"{item}/action/<name>/", wrap(self.action_view), name=f"{name}_action"),
            path(f"{item}/delete/", wrap(self.delete_view), name=f"{name}_delete"),
            path(f"{item}/change/", wrap(self.change_view), name=f"{name}_change"),
        ]

    @property
    def urls(self) -> list[Any]:
        return self.get_urls()

    def url(self, page: str, item: Model | None = None, *args: str) -> str:
        """The address of a page: `changelist`, `add`; `change`, `delete`, `history` of an item."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        key = () if item is None else (id_of(item),)
        return reverse(name, args=[*key, *args], current_app=self.admin_site.name)

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
        known = model_fields(self.model)
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

    def formfield_for_dbfield(
        self, db_field: ModelField, request: HttpRequest, **kwargs: Any
    ) -> forms.Field | None:
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
        widget = next((_WIDGETS[each] for each in type(made).__mro__ if each in _WIDGETS), None)
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
        if not (place.isdecimal() and int(place) < len(fields)):
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

    # Writing --------------------------------------------------------------------------------------

    def get_object(self, request: HttpRequest, object_id: str) -> Any:
        """The item with this id (`dynamo.admin.keys`); None if there is none."""
        item = with_id(self.model, object_id)
        if item is None:
            return None
        values = [getattr(item, name) for name, *_rest in self.model._key_attributes()]
        return self.model.get_or_none(*values)

    def save_model(
        self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool, write: Transaction
    ) -> None:
        """Add the writes of a valid form to `write`."""
        form.save(write=write)

    def delete_model(self, request: HttpRequest, obj: Any, write: Transaction) -> None:
        """Add the writes of a deletion to `write`."""
        obj.delete(write=write)

    def commit(
        self,
        request: HttpRequest,
        write: Transaction,
        action: str,
        obj: Any,
        *,
        permission: str = "change",
        what: str = "",
        reason: str = "",
    ) -> bool:
        """Commit `write` together with its entries in the audit log. False if there was nothing.

        Costs in addition 2 write units for each of 2 entries, and 2 for the check of the user's
        rights.

        Raises:
            PermissionDenied: the user no longer has the right; nothing was written.
            what `Transaction.commit` raises.
        """
        if not write:
            return False
        user = cast(Any, request.user)
        record(
            write,
            action,
            by=str(user.pk),
            by_name=user.get_username(),
            on=obj,
            on_name=name_of(obj),
            what=what,
            address=self.admin_site.client_address(request),
            reason=reason,
        )
        for right in self.admin_site.rights(request, self.permission(permission)):
            # A transaction takes each item once. The write of an item that gives the right is under
            # its version, so it suffices that the item had it when it was read.
            if right.item != obj:
                write.check(right.item, right.condition(), otherwise=RightsLost(str(user.pk)))
            elif not right.holds(obj):
                raise PermissionDenied
        try:
            write.commit()
        except AlreadyDone:
            return False
        except RightsLost as error:
            raise PermissionDenied from error
        except Refused as error:
            if error.subgroup(RightsLost):
                raise PermissionDenied from error
            raise
        return True

    # Fields that ask for a reason and the password ------------------------------------------------

    def confirm_fields(self, request: HttpRequest, dangerous: bool) -> dict[str, forms.Field]:
        made: dict[str, forms.Field] = {
            REASON: forms.CharField(
                label=_("Reason"),
                max_length=REASON_MAX_LENGTH,
                required=self.reason_required,
                widget=widgets.AdminTextInputWidget,
                help_text=_("The audit log keeps it."),
            )
        }
        if dangerous:
            made[PASSWORD] = forms.CharField(
                label=_("Your password"),
                strip=False,
                widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
                validators=[partial(self.admin_site.check_password, request)],
            )
        return made

    # Pages ----------------------------------------------------------------------------------------

    def _render(
        self, request: HttpRequest, name: str, own: str | None, context: dict[str, Any]
    ) -> TemplateResponse:
        """A page: by the first template of contrib.admin's places that exists, else ours."""
        request.current_app = self.admin_site.name
        app, model = self.opts.app_label, self.opts.model_name
        folders = [f"admin/{app}/{model}", f"admin/{app}", "dynamo/admin", "admin"]
        context = {
            **self.admin_site.each_context(request),
            "subtitle": None,
            "opts": self.opts,
            "app_label": app,
            "media": self.media,
            "preserved_filters": "",
            "is_popup": False,
            "to_field": None,
            "has_add_permission": self.has_add_permission(request),
            **context,
        }
        return TemplateResponse(request, own or [f"{folder}/{name}" for folder in folders], context)

    def message_user(
        self, request: HttpRequest, message: Any, level: int = messages.SUCCESS
    ) -> None:
        messages.add_message(request, level, message)

    def _gone(self, request: HttpRequest, key: str) -> HttpResponse:
        text = djangos_text("%(name)s with ID “%(key)s” doesn’t exist. Perhaps it was deleted?")
        names = {"name": self.opts.verbose_name, "key": key}
        self.message_user(request, text % names, messages.WARNING)
        return HttpResponseRedirect(reverse("admin:index", current_app=self.admin_site.name))

    def _damaged(self, request: HttpRequest, error: DamagedItem) -> HttpResponse:
        self.message_user(request, str(error), messages.ERROR)
        return HttpResponseRedirect(self.url("changelist"))

    def add_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        return self.changeform_view(request, None, extra_context)

    def change_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        return self.changeform_view(request, object_id, extra_context)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, extra_context: Any = None
    ) -> HttpResponse:
        """Adds or changes an item. Costs 1 request to read it and 1 to write it."""
        obj, add = None, object_id is None
        if object_id is None:
            if not self.has_add_permission(request):
                raise PermissionDenied
        else:
            try:
                obj = self.get_object(request, object_id)
            except DamagedItem as error:
                return self._damaged(request, error)
            is_post = request.method == "POST"
            allowed = self.has_change_permission if is_post else self.has_view_or_change_permission
            if not allowed(request, obj):
                raise PermissionDenied
            # Of an item that was deleted meanwhile, the page shows what was typed.
            obj = obj or (with_id(self.model, object_id) if is_post else None)
            if obj is None:
                return self._gone(request, object_id)
        may_write = (
            self.has_add_permission(request) if add else self.has_change_permission(request, obj)
        )
        fieldsets, readonly, form_class = self._plan(request, obj, may_write)
        operation = "add" if add else "change"
        form: Any = (
            form_class(request.POST, request.FILES, instance=obj)
            if request.method == "POST"
            else form_class(
                instance=obj, initial=self.get_changeform_initial_data(request) if add else None
            )
        )
        if obj is not None and not obj.stored and form.hidden_value() is None:
            return self._gone(request, object_id or "")
        self._complete(request, form, operation in self.dangerous)
        if may_write:
            fieldsets.append((None, {"fields": [*form.confirm_names, form._hidden]}))
        if request.method == "POST" and form.is_valid():
            if obj is not None and obj == request.user:
                self._keep_own_rights(form)
            if form.is_valid() and self._save(request, form, add):
                return self._after_save(request, form.instance, add)
        adminform: Any = _AdminForm(form, fieldsets, {}, readonly, model_admin=self)
        titles = {"add": "Add %s", "change": "Change %s", "view": "View %s"}
        title = djangos_text(titles[operation if may_write else "view"])
        context = {
            "title": title % self.opts.verbose_name,
            "subtitle": None if obj is None else name_of(obj),
            "adminform": adminform,
            "object_id": object_id,
            "original": None if obj is None else Shown(obj),
            "media": self.media + adminform.media,
            "inline_admin_formsets": [],
            "errors": form.errors,
            "add": add,
            "change": not add,
            "has_view_permission": self.has_view_permission(request, obj),
            "has_change_permission": self.has_change_permission(request, obj),
            "has_delete_permission": self.has_delete_permission(request, obj),
            "has_editable_inline_admin_formsets": False,
            "has_file_field": form.is_multipart(),
            "has_absolute_url": hasattr(obj, "get_absolute_url"),
            "absolute_url": getattr(obj, "get_absolute_url", str)(),
            "item_actions": [
                (self.url("action", obj, name), text)
                for _function, name, text in self.get_actions(request).values()
                if obj is not None and name != DELETE
            ],
            "save_as": False,
            "save_on_top": False,
            "form_url": "",
            **(extra_context or {}),
        }
        own = self.add_form_template if add else self.change_form_template
        return self._render(request, "change_form.html", own, context)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return dict(request.GET.items())

    def _plan(
        self, request: HttpRequest, obj: Any, may_write: bool
    ) -> tuple[list[Any], list[Any], type[ModelForm[Any]]]:
        """The fieldsets, what of them is only shown, and the form of the rest."""
        fieldsets = list(self.get_fieldsets(request, obj))
        names = flatten_fieldsets(cast(Any, fieldsets))
        readonly = [*self.get_readonly_fields(request, obj)] if may_write else names
        attributes = self.model.get_attributes()
        readonly += [
            each
            for each in names
            if isinstance(attributes.get(each), UnicodeSetAttribute)
            and not LinesField.can_show(getattr(obj, each, None))
        ]
        fields = [each for each in names if each not in readonly]
        declared = self.form.declared_fields
        known = model_fields(self.model)
        form = self.get_form(
            request, obj, change=obj is not None, fields=[each for each in fields if each in known]
        )
        # What no form field can show without loss.
        left = [each for each in fields if each not in form.base_fields]
        left += [each for each in left if each not in declared]
        return fieldsets, [*readonly, *left], form

    def _complete(self, request: HttpRequest, form: Any, dangerous: bool) -> None:
        """Give the form of an item the fields that ask for a reason and the password."""
        more = self.confirm_fields(request, dangerous)
        form.fields.update(more)
        form.confirm_names = list(more)
        for name, each in form.fields.items():
            # An input element of one line would lose the others.
            is_line = type(each.widget) is widgets.AdminTextInputWidget
            if is_line and "\n" in str(form.get_initial_for_field(each, name) or ""):
                each.widget = widgets.AdminTextareaWidget()

    def _keep_own_rights(self, form: Any) -> None:
        for name in ("is_active", "is_staff", "is_superuser"):
            had = getattr(type(form.instance).from_raw_data(form.instance.stored), name, False)
            if had and form.cleaned_data.get(name, True) is False:
                form.add_error(name, _("You cannot remove your own rights."))

    def _save(self, request: HttpRequest, form: Any, add: bool) -> bool:
        obj, write = form.instance, Transaction()
        changed = [] if add else list(obj._assigned(obj.stored))
        try:
            self.save_model(request, obj, form, not add, write)
            self.commit(
                request,
                write,
                "add" if add else "change",
                obj,
                permission="add" if add else "change",
                what=", ".join(each for each in changed if not is_sensitive(self.model, each)),
                reason=form.cleaned_data.get(REASON, ""),
            )
        except (DynamoError, Refused) as error:
            form.add_refusal(error)
            return False
        return True

    def _after_save(self, request: HttpRequest, obj: Any, add: bool) -> HttpResponse:
        """As contrib's `response_add` and `response_change`."""
        name = self.opts.verbose_name
        told = (
            djangos_text("The {name} “{obj}” was added successfully.")
            if add
            else djangos_text("The {name} “{obj}” was changed successfully.")
        )
        link = format_html('<a href="{}">{}</a>', self.url("change", obj), name_of(obj))
        self.message_user(request, format_html(told, name=name, obj=link))
        if "_continue" in request.POST:
            return HttpResponseRedirect(self.url("change", obj))
        if "_addanother" in request.POST:
            return HttpResponseRedirect(self.url("add"))
        return HttpResponseRedirect(self.url("changelist"))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Shows the list, and runs actions on the selected items."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        actions = self.get_actions(request)
        if request.method == "POST" and actions:
            selected = request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
            name = request.POST.get("action", "")
            if selected and name in actions:
                back = request.get_full_path()
                function, name, title = actions[name]
                return self._confirmed(request, name, function, title, selected, back)
            text = djangos_text("No action selected.")
            if not selected:
                text = djangos_text(
                    "Items must be selected in order to perform actions on them. No items have "
                    "been changed."
                )
            self.message_user(request, text, messages.WARNING)
            return HttpResponseRedirect(request.get_full_path())
        try:
            changelist = self.get_changelist_instance(request)
        except BadCursor:
            return HttpResponseRedirect(request.path)
        action_form = _helpers.ActionForm(auto_id=None) if actions else None
        if action_form:
            action_form.fields["action"].choices = self.get_action_choices(request)
        count = len(changelist.result_list)
        context = {
            "module_name": str(self.opts.verbose_name_plural),
            "selection_note": djangos_text("0 of %(cnt)s selected") % {"cnt": count},
            "title": changelist.title,
            "cl": changelist,
            "action_form": action_form,
            "actions_on_top": True,
            "actions_on_bottom": False,
            "actions_selection_counter": True,
            **(extra_context or {}),
        }
        return self._render(request, "change_list.html", self.change_list_template, context)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Asks, and deletes. Costs 1 request to read the item and 1 to delete it."""
        return self.action_view(request, object_id, DELETE)

    def action_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """Asks, and runs an action on one item. Costs as `delete_view`."""
        try:
            obj = self.get_object(request, object_id)
        except DamagedItem as error:
            return self._damaged(request, error)
        actions = self.get_actions(request)
        if name == DELETE:
            if not self.has_delete_permission(request, obj):
                raise PermissionDenied
            actions[DELETE] = delete_selected, DELETE, djangos_text("Delete")
        if name not in actions:
            raise PermissionDenied
        if obj is None:
            return self._gone(request, object_id)
        function, name, title = actions[name]
        back = self.url("changelist") if name == DELETE else self.url("change", obj)
        return self._confirmed(request, name, function, title, [object_id], back)

    def _confirmed(
        self,
        request: HttpRequest,
        name: str,
        function: Any,
        title: Any,
        keys: Sequence[str],
        back: str,
    ) -> HttpResponse:
        """Asks for confirmation of an action, or runs it item by item and reports each result.

        Costs 1 request to read 100 items, and 1 to write each.
        """
        is_deletion = name == DELETE
        dangerous = getattr(function, "dangerous", False) or (
            is_deletion and "delete" in self.dangerous
        )
        items = self._selected(keys)
        whole = {key: item for key, item in items.items() if isinstance(item, Model)}
        versions = {key: str(item.version) for key, item in whole.items()}
        is_confirmed = SEEN in request.POST
        form: Any = forms.Form(request.POST if is_confirmed else None)
        form.fields.update(self.confirm_fields(request, dangerous))
        signer = signing.TimestampSigner(salt=f"dynamo.admin.{name}.{self.model.table()}")
        if is_confirmed and form.is_valid():
            try:
                seen = signer.unsign_object(request.POST[SEEN])
            except signing.BadSignature:
                seen = {}
            reason = form.cleaned_data[REASON]
            results: dict[tuple[int, str], list[str]] = {}
            for key, item in items.items():
                result = self._run(request, name, function, item, seen.get(key), reason)
                called = name_of(item) if key in whole else f"{self.opts.verbose_name} {key}"
                results.setdefault(result, []).append(called)
            for (level, text), names in results.items():
                self.message_user(request, f"{', '.join(names)}: {text}", level)
            return HttpResponseRedirect(back)
        context = {
            "title": _("Are you sure?"),
            "subtitle": title,
            "is_deletion": is_deletion,
            "objects": [(name_of(each), self.url("change", each)) for each in whole.values()],
            "form": form,
            "action": name,
            "selected": list(items),
            "checkbox_name": helpers.ACTION_CHECKBOX_NAME,
            "seen_name": SEEN,
            "seen": signer.sign_object(versions),
            "back": back,
        }
        own = self.delete_confirmation_template if is_deletion else None
        return self._render(request, "confirm.html", own, context)

    def _selected(self, keys: Sequence[str]) -> dict[str, Any]:
        """The items by their id; None for one that is absent, a DamagedRow for a damaged one."""
        wanted = {key: with_id(self.model, key) for key in dict.fromkeys(keys)}
        found: dict[str, Any] = dict.fromkeys(wanted)
        addresses = [item._key() for item in wanted.values() if item is not None]
        for stored in bulk.read_batches(self.model.table(), addresses):
            item: Any
            try:
                item = self.model.from_raw_data(stored)
            except DamagedItem as error:
                item = DamagedRow(stored, error)
            found[id_of_key(self.model, stored)] = item
        return found

    def _run(
        self,
        request: HttpRequest,
        name: str,
        function: Any,
        item: Any,
        seen: str | None,
        reason: str,
    ) -> tuple[int, str]:
        """Run an action on one item; the level and the text of its result."""
        if item is None:
            return messages.WARNING, str(GONE)
        if isinstance(item, DamagedRow):
            return messages.ERROR, str(item)
        if seen != str(item.version):
            return messages.ERROR, str(OVERTAKEN)
        is_deletion = name == DELETE
        needed = getattr(function, "allowed_permissions", None) or ["change"]
        allowed = [each for each in needed if getattr(self, f"has_{each}_permission")(request)]
        if is_deletion and item == request.user:
            return messages.ERROR, str(_("You cannot delete your own account."))
        write = Transaction()
        try:
            function(self, request, item, write)
            done = self.commit(
                request,
                write,
                "delete" if is_deletion else name,
                item,
                permission=next(iter(allowed), "change"),
                reason=reason,
            )
        except Stale:
            return messages.ERROR, str(OVERTAKEN)
        except ValidationError as error:
            return messages.ERROR, get_text_list(error.messages, djangos_text("and"))
        except (DynamoError, Refused) as error:
            return messages.ERROR, str(error)
        if not done:
            return messages.INFO, str(_("There was nothing to do."))
        return messages.SUCCESS, djangos_text("Deleted.") if is_deletion else str(_("Done."))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """The audit log of an item, also of one that was deleted. Costs 2 requests."""
        obj: Any = with_id(self.model, object_id)
        if obj is None:
            return self._gone(request, object_id)
        with suppress(DamagedItem):
            obj = self.get_object(request, object_id) or obj
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        entries = list_entries(journal_of(obj), before=request.GET.get("before") or None)
        context = {
            "title": djangos_text("Change history: %s") % name_of(obj),
            "entries": entries,
            "module_name": capfirst(self.opts.verbose_name_plural),
            "object": Shown(obj),
            **(extra_context or {}),
        }
        return self._render(request, "object_history.html", self.object_history_template, context)
