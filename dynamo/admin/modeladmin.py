"""`ModelAdmin`: the pages of one model, and its writes."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.admin import helpers, widgets
from django.contrib.admin.utils import flatten_fieldsets
from django.core.checks import CheckMessage
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.text import Truncator, capfirst
from django.utils.translation import gettext as djangos_text, gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters
from pynamodb.attributes import UnicodeSetAttribute

from dynamo.admin.actions import DELETE, REASON, ActionAdmin, as_stored
from dynamo.admin.identity import TemplateItem, is_sensitive, name_of, with_id
from dynamo.admin.models import journal_of, list_entries
from dynamo.admin.options import Context, Fields, user_of
from dynamo.exceptions import DamagedItem, ErrorWithValues
from dynamo.forms import M, ModelForm
from dynamo.inputs import InputAttribute
from dynamo.model.objects import VERSION
from dynamo.transactions import Transaction
from dynamo.wire.fields import AttributeField

#: contrib.admin shows this many words of a name next to a key.
NAME_WORDS = 14


class LinesField(forms.CharField):
    """A set of texts, one in each line."""

    widget = widgets.AdminTextareaWidget

    def prepare_value(self, value: Iterable[str] | None) -> str | None:
        return value if value is None or isinstance(value, str) else "\n".join(sorted(value))

    def clean(self, value: object) -> set[str] | None:
        return set(filter(None, map(str.strip, super().clean(value).splitlines()))) or None

    @classmethod
    def can_show(cls, value: Iterable[str] | None) -> bool:
        """Whether a text with one line for each element can represent this set."""
        return all(text.splitlines() == [text.strip()] for text in value or ())


class ReferenceWidget(widgets.ForeignKeyRawIdWidget):
    """The widget of contrib's `raw_id_fields`. Costs 1 request, which reads the chosen item.

    `model_admin` has the pages of the model that the reference names.
    """

    def __init__(self, model_admin: Any) -> None:
        self.model_admin = model_admin
        model = model_admin.model
        rel: Any = SimpleNamespace(model=model, get_related_field=lambda: model._meta.pk)
        super().__init__(rel, model_admin.admin_site)

    def url_parameters(self) -> dict[str, str]:
        return {}

    def label_and_url_for_value(self, value: object) -> tuple[str, str]:
        model = self.model_admin.model
        try:
            item = model.get(str(value))
        except model.DoesNotExist:
            return "", ""
        except DamagedItem as error:
            return str(error), ""
        return Truncator(name_of(item)).words(NAME_WORDS), self.model_admin.url("change", item)


class ModelAdmin(ActionAdmin[M]):
    """The pages of a registered model: its list, its actions, and the forms of its items."""

    fields: Fields | None = None
    form: type[ModelForm] = ModelForm

    def check(self) -> list[CheckMessage]:
        from dynamo.admin.checks import check_model_admin

        return check_model_admin(self)

    # URLs -----------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """Contrib's, after that of an action: contrib's last one takes every path."""
        action = path(
            "<path:object_id>/action/<name>/",
            self.admin_site.admin_view(self.action_view),
            name=f"{self.opts.app_label}_{self.opts.model_name}_action",
        )
        return [action, *super().get_urls()]

    # Writing --------------------------------------------------------------------------------------

    def get_object(self, request: HttpRequest, object_id: str, from_field: None = None) -> M | None:
        """The item with this id (`dynamo.admin.identity`); None if there is none."""
        item = with_id(self.model, object_id)
        with suppress(self.model.DoesNotExist):
            return item and self.model._get_owner(item._owner())
        return None

    def save_model(
        self, request: HttpRequest, obj: M, form: ModelForm[M], change: bool, write: Transaction
    ) -> None:
        """Add the writes of a valid form to `write`. May raise ValidationError to refuse them."""
        form.save(write=write)

    def delete_model(self, request: HttpRequest, obj: M, write: Transaction) -> None:
        """Add the writes of a deletion to `write`."""
        obj.delete(write=write)

    def get_view_on_site_url(self, obj: M | None = None) -> str | None:
        """The page of an item on the site; `view_on_site` may be a function of the item."""
        if obj is None or not self.view_on_site:
            return None
        if callable(self.view_on_site):
            return str(self.view_on_site(obj))
        return obj.get_absolute_url() if hasattr(obj, "get_absolute_url") else None

    # Fields -----------------------------------------------------------------------------------

    def get_fields(self, request: HttpRequest, obj: M | None = None) -> Fields:
        """By default, all editable attributes, even those that no form field can edit."""
        if self.fields:
            return self.fields
        own = self.form._meta
        names = own.fields or [name for name, field in self.opts.by_name.items() if field.editable]
        readonly = self.get_readonly_fields(request, obj)
        left_out = self.get_exclude(request, obj) or own.exclude or ()
        return [
            name
            for name in dict.fromkeys([*names, *self.form.declared_fields, *readonly])
            if name not in left_out and not is_sensitive(self.model, name)
        ]

    def formfield_for_dbfield(
        self, db_field: AttributeField, request: HttpRequest, **kwargs: object
    ) -> forms.Field | None:
        """Contrib's method, with overrides by the class of the attribute.

        A `Reference` has a look-up if the user may see the list of its model.
        """
        for kind in type(db_field.attribute).__mro__:
            kwargs = {**self.formfield_overrides.get(kind, {}), **kwargs}
        if isinstance(db_field.attribute, InputAttribute) and not kwargs:
            field = db_field.attribute.form_field()
            if getattr(field.widget, "input_type", "text") not in {"checkbox", "select"}:
                field.widget.attrs["class"] = "vTextField"
            return field
        if isinstance(db_field.attribute, UnicodeSetAttribute) and "form_class" not in kwargs:
            kwargs |= {"form_class": LinesField, "empty_value": ""}
        is_chosen = kwargs.keys() & {"widget", "form_class"}
        if not is_chosen and (admin := self.admin_of(request, db_field.name)):
            kwargs["widget"] = ReferenceWidget(admin)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    # Pages ----------------------------------------------------------------------------------------

    @method_decorator(sensitive_post_parameters())
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Context = None,
    ) -> HttpResponse:
        """The form that adds or changes an item. Costs 1 request to read it and 1 to write it."""
        obj: Any = None
        add = object_id is None
        is_post = request.method == "POST"
        if object_id is None:
            may_write = may_see = self.has_add_permission(request)
        else:
            try:
                obj = self.get_object(request, object_id)
            except DamagedItem as error:
                return self._damaged(request, error)
            may_write = self.has_change_permission(request, obj)
            may_see = may_write or self.has_view_permission(request, obj)
        if not (may_write if is_post else may_see):
            raise PermissionDenied
        if object_id is not None and obj is None:
            # If the item was deleted in the meantime, the page shows what was typed. With a request
            # id instead of a version, the form would add the item, which needs another right.
            obj = with_id(self.model, object_id) if VERSION in request.POST else None
            if obj is None:
                return self._gone(request, object_id)
        fieldsets, readonly, form_class = self._plan(request, obj, may_write)
        operation = "add" if add else "change"
        sent = (request.POST, request.FILES) if is_post else ()
        initial = self._initial(request, form_class) if add and not is_post else None
        form = form_class(*sent, instance=obj, initial=initial)
        if obj is not None and not obj.stored and form.hidden_value() is None:
            return self._gone(request, object_id or "")
        confirm_names = self._complete(request, form, operation in self.dangerous)
        if may_write:
            fieldsets.append((None, {"fields": [*confirm_names, form._hidden]}))
        if is_post and form.is_valid():
            if obj is not None and obj == request.user:
                self._keep_own_rights(form)
            if form.is_valid() and self._save(request, form, operation):
                respond = self.response_add if add else self.response_change
                return respond(request, form.instance)
        adminform = helpers.AdminForm(cast(Any, form), fieldsets, {}, readonly, model_admin=self)
        verb = operation.capitalize() if may_write else "View"
        context = {
            "title": djangos_text(f"{verb} %s") % self.opts.verbose_name,
            "object_id": object_id,
            "form_url": form_url,
            **self._context_of_form(request, obj, adminform),
            **(extra_context or {}),
        }
        own = self.add_form_template if add else self.change_form_template
        return self._render(request, "change_form.html", own, context)

    def _context_of_form(
        self, request: HttpRequest, obj: M | None, adminform: helpers.AdminForm
    ) -> dict[str, object]:
        """The context for contrib's template: the form and its item, and what the user may do."""
        form: Any = adminform.form
        absolute_url = self.get_view_on_site_url(obj)
        actions = {} if obj is None else self.get_actions(request)
        return {
            "subtitle": None if obj is None else name_of(obj),
            "adminform": adminform,
            "original": None if obj is None else TemplateItem(obj),
            "media": self.media + adminform.media,
            "errors": form.errors,
            "add": obj is None,
            "change": obj is not None,
            "has_view_permission": self.has_view_permission(request, obj),
            "has_change_permission": self.has_change_permission(request, obj),
            "has_delete_permission": self.has_delete_permission(request, obj),
            "has_editable_inline_admin_formsets": False,
            "has_file_field": form.is_multipart(),
            "has_absolute_url": bool(absolute_url),
            "absolute_url": absolute_url,
            "item_actions": [
                (self.url("action", obj, name), text)
                for name, text in (self.get_action_choices(request, []) if actions else ())
                if name != DELETE and self._permissions_for(request, actions[name][0], obj)
            ],
            "save_as": False,
            "save_on_top": self.save_on_top,
        }

    def _initial(self, request: HttpRequest, form_class: type[ModelForm[M]]) -> dict[str, object]:
        """The initial values without the texts that their form fields refuse."""
        values, initial = self.get_changeform_initial_data(request), {}
        known = form_class().fields if values else {}
        for name, value in values.items():
            with suppress(KeyError, ValidationError):
                if isinstance(value, str):
                    known[name].clean(value)
                initial[name] = value
        return initial

    def _plan(
        self, request: HttpRequest, obj: M, may_write: bool
    ) -> tuple[list[Any], list[str], type[ModelForm[M]]]:
        """The fieldsets, the names of fields that are only shown, and the form of the others."""
        fieldsets = list(self.get_fieldsets(request, obj))
        names = flatten_fieldsets(cast(Any, fieldsets))
        readonly = [*self.get_readonly_fields(request, obj)] if may_write else names
        readonly += [
            name
            for name in names
            if isinstance(self.model.get_attributes().get(name), UnicodeSetAttribute)
            and not LinesField.can_show(getattr(obj, name, None))
        ]
        fields = [name for name in names if name not in readonly]
        known = [field for field in fields if field in self.opts.by_name]
        form = self.get_form(request, obj, change=obj is not None, fields=known)
        # Form fields cannot show these attributes without loss.
        left = [field for field in fields if field not in form.base_fields]
        return fieldsets, [*readonly, *left], form

    def _complete(self, request: HttpRequest, form: ModelForm[M], dangerous: bool) -> list[str]:
        """Add to `form` the fields that ask for a reason and the password. Returns their names."""
        more = self.confirm_fields(request, dangerous)
        form.fields.update(more)
        for name, field in form.fields.items():
            # An input element has one line, so the line breaks would be lost.
            is_line = type(field.widget) is widgets.AdminTextInputWidget
            if isinstance(field.widget, widgets.AdminSplitDateTime):
                for part, text in zip(field.widget.widgets, ("Date:", "Time:"), strict=True):
                    part.attrs["aria-label"] = f"{field.label} – {djangos_text(text)}"
            if is_line and "\n" in str(form.get_initial_for_field(field, name) or ""):
                field.widget = widgets.AdminTextareaWidget()
        return list(more)

    def _keep_own_rights(self, form: ModelForm[M]) -> None:
        for name in ("is_active", "is_staff", "is_superuser"):
            had = getattr(as_stored(form.instance), name, False)
            if had and form.cleaned_data.get(name, True) is False:
                form.add_error(name, _("You cannot remove your own rights."))

    def _save(self, request: HttpRequest, form: ModelForm[M], operation: str) -> bool:
        obj = form.instance
        write = Transaction()
        is_change = operation == "change"
        changed = obj._assigned(obj.stored) if is_change else ()
        about = {
            "what": ", ".join(name for name in changed if not is_sensitive(self.model, name)),
            "reason": form.cleaned_data.get(REASON, ""),
        }
        try:
            self.save_model(request, obj, form, is_change, write)
            # `form.instance` is used, because an operation of the project may have made another
            # object.
            item = form.instance
            if not self.commit(request, write, operation, item, permission=operation, **about):
                with suppress(item.DoesNotExist):
                    item.refresh()
        except ValidationError as error:
            form.add_error(None, error)
            return False
        except ErrorWithValues as error:
            form.add_refusal(error)
            return False
        return True

    def response_add(
        self, request: HttpRequest, obj: M, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._saved(request, obj, "added", post_url_continue)

    def response_change(self, request: HttpRequest, obj: M) -> HttpResponse:
        return self._saved(request, obj, "changed")

    def _saved(
        self, request: HttpRequest, obj: M, done: str, after: str | None = None
    ) -> HttpResponse:
        """Redirect to the page that the button names, with contrib's message."""
        text = f"The {{name}} “{{obj}}” was {done} successfully."
        to = self._home(request)
        said = name_of(obj)
        if self.has_change_permission(request, obj):
            said = format_html('<a href="{}">{}</a>', self.url("change", obj), said)
        if "_addanother" in request.POST:
            text = djangos_text(f"{text} You may add another {{name}} below.")
            to = self.url("add")
        elif "_continue" in request.POST and self.has_view_or_change_permission(request, obj):
            text = f"{djangos_text(text)} {djangos_text('You may edit it again below.')}"
            to = after or self.url("change", obj)
        else:
            text = djangos_text(text)
        message = format_html(text, name=self.opts.verbose_name, obj=said)
        self.message_user(request, message, messages.SUCCESS)
        return HttpResponseRedirect(to)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Context = None
    ) -> HttpResponse:
        """The audit log of an item, even if the item was deleted. Costs 2 requests."""
        obj = with_id(self.model, object_id)
        if obj is None:
            return self._gone(request, object_id)
        with suppress(DamagedItem):
            obj = self.get_object(request, object_id) or obj
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        entries = list_entries(journal_of(obj), before=request.GET.get("before"))
        context = {
            "title": djangos_text("Change history: %s") % name_of(obj),
            "entries": entries,
            "module_name": capfirst(self.opts.verbose_name_plural),
            "object": TemplateItem(obj),
            **(extra_context or {}),
        }
        return self._render(request, "object_history.html", self.object_history_template, context)


#: The fields that only a superuser may change.
_RIGHTS = ("is_staff", "is_superuser", "permissions", "groups")


class UserAdmin(ModelAdmin[M]):
    """For users of `dynamo.auth`: a new user gets a password, and no page shows its hash.

    Only a superuser grants rights, and changes or deletes another member of staff.
    """

    list_display = ("username", "email", "is_active", "is_staff", "is_superuser")
    search_fields = ("username", "email")
    add_fields: Fields = ("username", "email", "password1", "password2")

    def __init__(self, model: Any, admin_site: object) -> None:
        super().__init__(model, admin_site)
        absent = {name for name in ("username", "email") if getattr(model, name) is None}
        for option in ("list_display", "search_fields", "add_fields"):
            setattr(self, option, [n for n in getattr(self, option) if n not in absent])
        self.add_fields = [*dict.fromkeys([*model.needed(), *self.add_fields])]

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        may_write = self.admin_site.may_write(request, obj)
        return may_write and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        may_write = self.admin_site.may_write(request, obj)
        return may_write and super().has_delete_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: M | None = None) -> Sequence[str]:
        fields = super().get_readonly_fields(request, obj)
        if user_of(request).is_superuser:
            return fields
        return [*fields, *(name for name in _RIGHTS if name in self.model.get_attributes())]

    def get_fields(self, request: HttpRequest, obj: M | None = None) -> Fields:
        return self.add_fields if obj is None else super().get_fields(request, obj)

    def get_form(
        self, request: HttpRequest, obj: M | None = None, change: bool = False, **options: object
    ) -> type[ModelForm[M]]:
        if obj is None:
            # Imported here, because the module needs the user model, which is loaded later.
            from dynamo.auth.forms import UserCreationForm

            options = {"form": UserCreationForm, **options}
        return super().get_form(request, obj, change, **options)
