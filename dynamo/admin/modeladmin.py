"""`ModelAdmin`: the pages of one model, and its writes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.admin import helpers, widgets
from django.contrib.admin.utils import flatten_fieldsets
from django.core import signing
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.text import capfirst, get_text_list
from django.utils.translation import gettext as djangos_text, gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters
from pynamodb.attributes import UnicodeSetAttribute

from dynamo._internal import bulk
from dynamo._internal.model.objects import VERSION
from dynamo.admin.helpers import (
    DELETE,
    GONE,
    OVERTAKEN,
    PASSWORD,
    REASON,
    REASON_MAX_LENGTH,
    SEEN,
    LinesField,
    delete_selected,
)
from dynamo.admin.keys import id_of, id_of_key, with_id
from dynamo.admin.models import journal_of, list_entries
from dynamo.admin.options import BaseModelAdmin
from dynamo.admin.values import DamagedRow, Shown, is_sensitive, name_of
from dynamo.exceptions import BadCursor, DamagedItem, DynamoError, Refused, Stale
from dynamo.forms import ModelForm
from dynamo.models import Model
from dynamo.transactions import Transaction

#: The id of an entry in the audit log is shorter.
BEFORE_MAX_LENGTH = 100

#: Their stubs know contrib's ModelAdmin only.
_helpers: Any = helpers


def _as_stored(item: Any) -> Any:
    """The item without what a form has put into it."""
    return type(item).from_raw_data(item.stored) if item.stored else item


class ModelAdmin(BaseModelAdmin):
    """The pages of a registered model; see BaseModelAdmin for its options."""

    # URLs -----------------------------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        listed, *pages, _old = super().get_urls()
        name = f"{self.opts.app_label}_{self.opts.model_name}_action"
        view = self.admin_site.admin_view(self.action_view)
        return [listed, path("<path:object_id>/action/<name>/", view, name=name), *pages]

    def url(self, page: str, item: Model | None = None, *args: str) -> str:
        """The address of a page: `changelist`, `add`; `change`, `delete`, `history` of an item."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        key = () if item is None else (id_of(item),)
        return reverse(name, args=[*key, *args], current_app=self.admin_site.name)

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
        """As `AdminSite.commit`. Without writes nothing is logged, and the result is False."""
        if not write:
            return False
        needed = self.permission(permission)
        self.admin_site.known_rights(request, needed)
        # Again, with what was just read of the user's groups.
        if not self._may(request, permission, _as_stored(obj)):
            raise PermissionDenied
        about = {"on": obj, "what": what, "reason": reason}
        return bool(self.admin_site.commit(request, write, action, needed, **about))

    def _may(self, request: HttpRequest, permission: str, item: Any) -> bool:
        """Whether the user has the permission; those that contrib knows, for this item."""
        on = (item,) if permission in {"change", "delete", "view"} else ()
        has = getattr(self, f"has_{permission}_permission", None)
        user: Any = request.user
        return bool(has(request, *on) if has else user.has_perm(self.permission(permission)))

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

    def action_checkbox(self, obj: Any) -> Any:
        return super().action_checkbox(Shown(obj))

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

    def _gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        answer: HttpResponse = self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        return answer

    def _damaged(self, request: HttpRequest, error: DamagedItem) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        self.message_user(request, str(error), messages.ERROR)
        return HttpResponseRedirect(self.url("changelist"))

    @method_decorator(sensitive_post_parameters())
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        """Adds or changes an item. Costs 1 request to read it and 1 to write it."""
        obj, add, is_post = None, object_id is None, request.method == "POST"
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
            # Of an item that was deleted meanwhile, the page shows what was typed. With a request
            # id instead of a version it would be added, which is another right.
            obj = with_id(self.model, object_id) if VERSION in request.POST else None
            if obj is None:
                return self._gone(request, object_id)
        fieldsets, readonly, form_class = self._plan(request, obj, may_write)
        operation = "add" if add else "change"
        sent = (request.POST, request.FILES) if is_post else ()
        initial = self._initial(request, form_class) if add and not is_post else None
        form: Any = form_class(*sent, instance=obj, initial=initial)
        if obj is not None and not obj.stored and form.hidden_value() is None:
            return self._gone(request, object_id or "")
        self._complete(request, form, operation in self.dangerous)
        if may_write:
            fieldsets.append((None, {"fields": [*form.confirm_names, form._hidden]}))
        if is_post and form.is_valid():
            if obj is not None and obj == request.user:
                self._keep_own_rights(form)
            if form.is_valid() and self._save(request, form, add):
                return self._after_save(request, form.instance, add)
        adminform = _helpers.AdminForm(form, fieldsets, {}, readonly, model_admin=self)
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
            "form_url": form_url,
            **(extra_context or {}),
        }
        own = self.add_form_template if add else self.change_form_template
        return self._render(request, "change_form.html", own, context)

    def _initial(self, request: HttpRequest, form_class: Any) -> dict[str, Any]:
        """The initial values without the texts that their form fields refuse."""
        values = self.get_changeform_initial_data(request)
        known = form_class().fields if values else {}

        def takes(name: str, value: Any) -> bool:
            if isinstance(value, str):
                try:
                    known[name].clean(value)
                except (KeyError, ValidationError):
                    return False
            return True

        return {name: value for name, value in values.items() if takes(name, value)}

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
        known = self.opts.fields
        form = self.get_form(
            request, obj, change=obj is not None, fields=[each for each in fields if each in known]
        )
        # What no form field can show without loss.
        left = [each for each in fields if each not in form.base_fields]
        return fieldsets, [*readonly, *left], form

    def _complete(self, request: HttpRequest, form: Any, dangerous: bool) -> None:
        """Give the form of an item the fields that ask for a reason and the password."""
        more = self.confirm_fields(request, dangerous)
        form.fields.update(more)
        form.confirm_names = list(more)
        for name, each in form.fields.items():
            # An input element of one line would lose the others.
            is_line = type(each.widget) is widgets.AdminTextInputWidget
            if isinstance(each.widget, widgets.AdminSplitDateTime):
                for part, text in zip(each.widget.widgets, ("Date:", "Time:"), strict=True):
                    part.attrs["aria-label"] = f"{each.label} – {djangos_text(text)}"
            if is_line and "\n" in str(form.get_initial_for_field(each, name) or ""):
                each.widget = widgets.AdminTextareaWidget()

    def _keep_own_rights(self, form: Any) -> None:
        for name in ("is_active", "is_staff", "is_superuser"):
            had = getattr(_as_stored(form.instance), name, False)
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
        done = djangos_text(
            f"The {{name}} “{{obj}}” was {'added' if add else 'changed'} successfully."
        )
        link = format_html('<a href="{}">{}</a>', self.url("change", obj), name_of(obj))
        self.message_user(request, format_html(done, name=name, obj=link), messages.SUCCESS)
        if "_continue" in request.POST:
            return HttpResponseRedirect(self.url("change", obj))
        if "_addanother" in request.POST:
            return HttpResponseRedirect(self.url("add"))
        return HttpResponseRedirect(self.url("changelist"))

    @method_decorator(sensitive_post_parameters())
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Shows the list, and runs actions on the selected items."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        actions = self.get_actions(request)
        if request.method == "POST" and actions:
            selected = request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
            name, back = request.POST.get("action", ""), request.get_full_path()
            # What a search shows at most: of each field, those that begin so and the very one.
            most = (self.list_per_page + 1) * (len(self.get_search_fields(request)) or 1)
            if len(selected) > most:
                bound = _("Select at most %(count)s items. No items have been changed.")
                text = bound % {"count": most}
            elif not selected:
                text = djangos_text(
                    "Items must be selected in order to perform actions on them. No items have "
                    "been changed."
                )
            elif name not in actions:
                text = djangos_text("No action selected.")
            else:
                return self._confirmed(request, actions[name], self._selected(selected), back)
            self.message_user(request, text, messages.WARNING)
            return HttpResponseRedirect(back)
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

    @method_decorator(sensitive_post_parameters())
    def action_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """Asks, and runs an action on one item. Costs as `delete_view`."""
        is_deletion = name == DELETE
        allowed = self.has_delete_permission if is_deletion else self.has_view_or_change_permission
        items = self._selected([object_id])
        obj = items[object_id]
        if isinstance(obj, DamagedRow):
            return self._damaged(request, obj.error)
        if not allowed(request, obj):
            raise PermissionDenied
        actions = self.get_actions(request)
        if is_deletion:
            actions[DELETE] = delete_selected, DELETE, djangos_text("Delete")
        if name not in actions:
            raise PermissionDenied
        if obj is None:
            return self._gone(request, object_id)
        back = self.url("changelist") if is_deletion else self.url("change", obj)
        return self._confirmed(request, actions[name], items, back)

    def _confirmed(
        self, request: HttpRequest, action: tuple[Any, str, Any], items: dict[str, Any], back: str
    ) -> HttpResponse:
        """Asks for confirmation of an action, or runs it item by item and reports each result."""
        function, name, title = action
        is_deletion = name == DELETE
        dangerous = getattr(function, "dangerous", False) or (
            is_deletion and "delete" in self.dangerous
        )
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
        """The items by their id; None for one that is absent, a DamagedRow for a damaged one.

        Costs 1 request for 100 items.
        """
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
        is_deletion, write = name == DELETE, Transaction()
        needed = getattr(function, "allowed_permissions", None) or ["change"]
        text: Any
        try:
            if seen != str(item.version):
                raise Stale
            allowed = [each for each in needed if self._may(request, each, item)]
            if not allowed:
                raise PermissionDenied
            if is_deletion and item == request.user:
                raise ValidationError(_("You cannot delete your own account."))
            what = function(self, request, item, write)
            done = self.commit(
                request,
                write,
                "delete" if is_deletion else name,
                item,
                permission=allowed[0],
                what=what if isinstance(what, str) else "",
                reason=reason,
            )
        except PermissionDenied:
            text = _("You do not have the right to do this.")
        except Stale:
            text = OVERTAKEN
        except ValidationError as error:
            text = get_text_list(error.messages, djangos_text("and"))
        except (DynamoError, Refused) as error:
            text = error
        else:
            if not done:
                return messages.INFO, str(_("There was nothing to do."))
            return messages.SUCCESS, djangos_text("Deleted.") if is_deletion else str(_("Done."))
        return messages.ERROR, str(text)

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
        before = request.GET.get("before", "")
        before = before if len(before) <= BEFORE_MAX_LENGTH else ""
        entries = list_entries(journal_of(obj), before=before or None)
        context = {
            "title": djangos_text("Change history: %s") % name_of(obj),
            "entries": entries,
            "module_name": capfirst(self.opts.verbose_name_plural),
            "object": Shown(obj),
            **(extra_context or {}),
        }
        return self._render(request, "object_history.html", self.object_history_template, context)


#: What only a superuser grants.
_RIGHTS = ("is_staff", "is_superuser", "permissions", "groups")


class UserAdmin(ModelAdmin):
    """For users of `dynamo.auth`: a new one gets a password, and no page shows its hash.

    Only a superuser grants rights, and changes or deletes a superuser.
    """

    list_display = ("username", "email", "is_active", "is_staff", "is_superuser")
    search_fields = ("username", "email")
    add_fields: Sequence[Any] = ("username", "email", "password1", "password2")

    def _may_touch(self, request: HttpRequest, obj: Any) -> bool:
        is_superuser = getattr(obj and _as_stored(obj), "is_superuser", False)
        return bool(cast(Any, request.user).is_superuser or not is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may_touch(request, obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may_touch(request, obj) and super().has_delete_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[Any]:
        fields = super().get_readonly_fields(request, obj)
        return fields if cast(Any, request.user).is_superuser else [*fields, *_RIGHTS]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[Any]:
        fields = self.add_fields if obj is None else super().get_fields(request, obj)
        return (
            fields
            if getattr(self.model, "group_model", None)
            else [each for each in fields if each != "groups"]
        )

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        if obj is None:
            # It needs the user model, which is loaded later.
            from dynamo.auth.forms import UserCreationForm

            options = {"form": UserCreationForm, **options}
        return super().get_form(request, obj, change, **options)
