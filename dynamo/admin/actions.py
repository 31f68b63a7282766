"""Actions on items: the pages that ask for confirmation, and the writes with their audit log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, overload

from django import forms
from django.contrib import messages
from django.contrib.admin import decorators, widgets
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import model_format_dict
from django.contrib.auth import get_permission_codename
from django.core import signing
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import BLANK_CHOICE_DASH
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.safestring import mark_safe
from django.utils.text import capfirst, get_text_list
from django.utils.translation import (
    gettext as djangos_text,
    gettext_lazy as _,
    gettext_lazy as djangos_lazy,
)
from django.views.decorators.debug import sensitive_post_parameters

from dynamo.admin.changelist import ListAdmin
from dynamo.admin.identity import as_row, id_of, id_of_key, name_of, with_id
from dynamo.admin.models import LogEntry, label_of
from dynamo.admin.options import Context, user_of
from dynamo.client import bulk
from dynamo.exceptions import DamagedItem, ErrorWithValues, Stale
from dynamo.forms import M
from dynamo.model.base import Model
from dynamo.transactions import Transaction

DELETE = "delete_selected"
REASON, PASSWORD, SEEN = "_reason", "_password", "_seen"
REASON_MAX_LENGTH = 200

OVERTAKEN = _("It was changed after this page was opened, so nothing was done.")
GONE = _("It was deleted after this page was opened.")
NOTHING_DONE = _("There was nothing to do.")

#: The function or method that an action calls.
Function = Callable[..., object]
#: The function of an action, its name and its description.
Described = tuple[Function, str, str]

_Action = TypeVar("_Action", bound=Callable[..., object])


@overload
def action(
    function: _Action,
    *,
    permissions: Sequence[str] | None = ...,
    description: object = ...,
    dangerous: bool = ...,
) -> _Action: ...


@overload
def action(
    *, permissions: Sequence[str] | None = ..., description: object = ..., dangerous: bool = ...
) -> Callable[[_Action], _Action]: ...


def action(
    function: object = None,
    *,
    permissions: Sequence[str] | None = None,
    description: Any = None,
    dangerous: bool = False,
) -> object:
    """Like contrib's decorator, but the method is called for each selected item in turn.

    Each call has its own transaction.

        @admin.action(description="Block", permissions=["change"], dangerous=True)
        def block(self, request, obj, write):
            obj.change(is_blocked=True, write=write)

    The transaction also gets the entry in the audit log, and requires that the user still has one
    of the permissions. A dangerous action asks for the password.
    """

    def decorated(made: Any) -> object:
        made.dangerous = dangerous
        return decorators.action(made, permissions=permissions, description=description)

    return decorated if function is None else decorated(function)


@action(permissions=["delete"], description=djangos_lazy("Delete selected %(verbose_name_plural)s"))
def delete_selected(
    model_admin: ActionAdmin[M], request: HttpRequest, obj: M, write: Transaction
) -> None:
    if obj == user_of(request):
        raise ValidationError(_("You cannot delete your own account."))
    model_admin.delete_model(request, obj, write)


def _described(function: object, name: str) -> object:
    return getattr(function, "short_description", name.replace("_", " "))


def as_stored(item: M) -> M:
    """The item as it is stored, without the values that a form has set."""
    return item.from_raw_data(item.stored) if item.stored else item


class ActionAdmin(ListAdmin[M]):
    """The actions of a ModelAdmin, deletion among them."""

    def __init__(self, model: type[Model], admin_site: object) -> None:
        super().__init__(model, admin_site)
        for name, function in self._named_actions().items():
            LogEntry.labels.setdefault(name, _described(function, name))

    # Writing ------------------------------------------------------------------------------------

    def permission(self, name: str) -> str:
        return f"{self.opts.app_label}.{get_permission_codename(name, self.opts)}"

    def commit(
        self,
        request: HttpRequest,
        write: Transaction,
        action: str,
        obj: M,
        *,
        permission: str = "change",
        **about: str,
    ) -> bool:
        """Like `AdminSite.commit`. Without writes nothing is logged, and the result is False."""
        if all(entry.is_idle for entry in write):
            return False
        needed = self.permission(permission)
        self.admin_site.known_rights(request, needed)
        # Checked again, because the user's groups have just been read.
        if not self._is_permitted(request, permission, as_stored(obj)):
            raise PermissionDenied
        return bool(self.admin_site.commit(request, write, action, needed, on=obj, **about))

    def _is_permitted(self, request: HttpRequest, permission: str, item: M | None) -> bool:
        """Whether the user has the permission: to change, delete or view this item; else any."""
        on = (item,) if permission in {"change", "delete", "view"} else ()
        has = getattr(self, f"has_{permission}_permission", None)
        user = user_of(request)
        return bool(has(request, *on) if has else user.has_perm(self.permission(permission)))

    def _permissions_for(self, request: HttpRequest, function: object, item: M | None) -> list[str]:
        """The permissions of an action that the user has. One of them is enough."""
        needed = getattr(function, "allowed_permissions", None) or ["change"]
        return [entry for entry in needed if self._is_permitted(request, entry, item)]

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
                label=_("Current password"),
                strip=False,
                widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
                validators=[partial(self.admin_site.check_password, request)],
            )
        return made

    # Actions ------------------------------------------------------------------------------------

    def get_actions(
        self, request: HttpRequest, action_location: object = None
    ) -> dict[str, Described]:
        """The actions that the user may call: function, name and description, by name."""
        is_left_out = self.actions is None or IS_POPUP_VAR in request.GET
        named = {} if is_left_out else self._named_actions()
        return {
            name: (function, name, capfirst(str(_described(function, name))))
            for name, function in named.items()
            if self._permissions_for(request, function, None)
        }

    def get_action_choices(
        self,
        request: HttpRequest,
        default_choices: Sequence[tuple[str, str]] = tuple(BLANK_CHOICE_DASH),
    ) -> list[tuple[str, str]]:
        """Names with descriptions, for a list of choices."""
        actions = self.get_actions(request)
        names = model_format_dict(self.opts)
        return [*default_choices, *((item, actions[item][2] % names) for item in actions)]

    def _named_actions(self) -> dict[str, Function]:
        named = dict(self.admin_site.actions)
        for item in self.actions or ():
            name = item if isinstance(item, str) else item.__name__
            named[name] = item if callable(item) else getattr(type(self), name, None)
            with suppress(KeyError):
                named[name] = named[name] or self.admin_site.get_action(name)
        # `check` reports names without a function.
        return {name: function for name, function in named.items() if function}

    @decorators.display(description=mark_safe('<input type="checkbox" id="action-toggle">'))
    def action_checkbox(self, obj: M) -> str:
        """The column of the list that selects items."""
        text = djangos_text("Select this object for an action - {}").format(name_of(obj))
        attrs = {"class": "action-select", "aria-label": text}
        return forms.CheckboxInput(attrs, lambda _: False).render(ACTION_CHECKBOX_NAME, id_of(obj))

    def _act_on_selected(self, request: HttpRequest, actions: dict[str, Described]) -> HttpResponse:
        """Ask for confirmation of an action on the selected items, or run it."""
        selected = request.POST.getlist(ACTION_CHECKBOX_NAME)
        # There are menus above and below the list: take the one whose button was pressed.
        names = request.POST.getlist("action") or [""]
        name = names[-1 if request.POST.get("index") == "1" else 0]
        back = request.get_full_path()
        # A search shows at most one page, and the items with the exact value of a field.
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
            return self._confirm_or_run(request, actions[name], self._selected(selected), back)
        self.message_user(request, text, messages.WARNING)
        return HttpResponseRedirect(back)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Context = None
    ) -> HttpResponse:
        """The page that asks for confirmation, and the deletion.

        Costs 1 request to read and 1 to delete.
        """
        answer = self.action_view(request, object_id, DELETE)
        getattr(answer, "context_data", {}).update(extra_context or {})
        return answer

    @method_decorator(sensitive_post_parameters())
    def action_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """The page of an action on one item, and the action. Costs as `delete_view`."""
        is_deletion = name == DELETE
        allowed = self.has_delete_permission if is_deletion else self.has_view_or_change_permission
        items = self._selected([object_id])
        obj = items[object_id]
        if isinstance(obj, DamagedItem):
            return self._damaged(request, obj)
        if not allowed(request, obj):
            raise PermissionDenied
        actions = self.get_actions(request)
        if is_deletion:
            actions[DELETE] = delete_selected, DELETE, djangos_text("Delete")
        if name not in actions:
            raise PermissionDenied
        if obj is None:
            return self._gone(request, object_id)
        back = self._home(request) if is_deletion else self.url("change", obj)
        return self._confirm_or_run(request, actions[name], items, back)

    def _confirm_or_run(
        self,
        request: HttpRequest,
        action: Described,
        items: dict[str, M | DamagedItem | None],
        back: str,
    ) -> HttpResponse:
        """Ask for confirmation of an action, or run it item by item and report each result."""
        function, name, title = action
        is_deletion = name == DELETE
        dangerous = is_deletion and "delete" in self.dangerous
        dangerous = dangerous or getattr(function, "dangerous", False)
        whole = {key: item for key, item in items.items() if isinstance(item, Model)}
        versions = {key: str(item.version) for key, item in whole.items()}
        is_confirmed = SEEN in request.POST
        form = forms.Form(request.POST if is_confirmed else None)
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
                called = name_of(whole[key]) if key in whole else f"{self.opts.verbose_name} {key}"
                results.setdefault(result, []).append(called)
            for (level, text), names in results.items():
                # The name is in quotation marks, because the page begins a message with a capital
                # letter.
                parts = [", ".join(f"“{name}”" for name in names), text]
                if level == messages.SUCCESS:
                    parts.reverse()
                self.message_user(request, ": ".join(parts), level)
            return HttpResponseRedirect(back)
        may_see = self.has_view_or_change_permission
        context = {
            "title": _("Are you sure?"),
            "subtitle": title % model_format_dict(self.opts),
            "objects": [
                (name_of(value), may_see(request, value) and self.url("change", value))
                for value in whole.values()
            ],
            "may_see_list": may_see(request),
            "form": form,
            "action": name,
            "selected": list(items),
            "seen": signer.sign_object(versions),
            "back": back,
        }
        own = self.delete_confirmation_template if is_deletion else None
        return self._render(request, "confirm.html", own, context)

    def _selected(self, keys: Sequence[str]) -> dict[str, M | DamagedItem | None]:
        """The items by their id; None for one that is absent, the error of a damaged one.

        Costs 1 request for 100 items.
        """
        wanted = {key: with_id(self.model, key) for key in dict.fromkeys(keys)}
        found: dict[str, M | DamagedItem | None] = dict.fromkeys(wanted)
        addresses = [item._key() for item in wanted.values() if item is not None]
        for stored in bulk.read_batches(self.model.table(), addresses):
            for item in self.model._objects_of([stored], damaged=as_row):
                found[id_of_key(self.model, stored)] = item
        return found

    def _run(
        self,
        request: HttpRequest,
        name: str,
        function: Function,
        item: M | DamagedItem | None,
        seen: object,
        reason: str,
    ) -> tuple[int, str]:
        """Run an action on one item. Returns the level and the text of the message about it."""
        if item is None:
            return messages.WARNING, str(GONE)
        if isinstance(item, DamagedItem):
            return messages.ERROR, str(item)
        is_deletion = name == DELETE
        write = Transaction()
        text: object
        try:
            if seen != str(item.version):
                raise Stale
            allowed = self._permissions_for(request, function, item)
            if not allowed:
                raise PermissionDenied
            what = function(self, request, item, write)
            logged = "delete" if is_deletion else name
            about = {"what": what if isinstance(what, str) else "", "reason": reason}
            done = self.commit(request, write, logged, item, permission=allowed[0], **about)
        except PermissionDenied:
            text = _("You do not have the right to do this.")
        except (Stale, self.model.Stale):
            text = OVERTAKEN
        except ValidationError as error:
            text = get_text_list(error.messages, djangos_text("and"))
        except ErrorWithValues as error:
            text = error
        else:
            if not done:
                return messages.INFO, str(NOTHING_DONE)
            return messages.SUCCESS, str(label_of(logged)).rstrip("…")
        return messages.ERROR, str(text)
