"""The options of a ModelAdmin, with contrib's names, and what its pages share.

Contrib's own `ModelAdmin` is tied to the ORM. Its base class is not, so permissions, fieldsets and
the form fields of attributes come from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, cast

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ActionForm
from django.contrib.admin.options import BaseModelAdmin, ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from dynamo.admin.identity import id_of
from dynamo.exceptions import DamagedItem
from dynamo.forms import M
from dynamo.model.base import Model
from dynamo.model.pages import GlobalSecondaryIndex
from dynamo.model.references import Reference

if TYPE_CHECKING:
    from dynamo.auth.models import AbstractUser

#: The values that a caller adds to the context of a page.
Context = Mapping[str, object] | None
#: Names of fields. Fields that share a line are a sequence.
Fields = Sequence[str | Sequence[str]]


def user_of(request: HttpRequest) -> AbstractUser:
    """The user of `request`, typed as a user of `dynamo.auth`.

    A project may have another user model.
    """
    return cast("AbstractUser", request.user)


# Typed as Any, because Django's stubs know only relational models.
_BaseModelAdmin: Any = BaseModelAdmin
_ModelAdmin: Any = ModelAdmin


#: An attribute or a method of the model or of the ModelAdmin, or a function of an item.
Column = str | Callable[..., object]


class Options(_BaseModelAdmin, Generic[M]):
    """The options of a ModelAdmin, and how its views render a page."""

    model: type[M]

    list_display: Sequence[Column] = ("__str__",)
    list_display_links: Sequence[Column] | None = ()
    list_filter: Sequence[str] = ()
    list_per_page = 50
    ordering: Sequence[str] = ()
    search_fields: Sequence[str] = ()
    search_help_text: object = None
    #: The list first shows this partition of this index (`Member.by_club`); without it, the table.
    list_index: GlobalSecondaryIndex | None = None
    list_partition: object = None
    #: With None there are no actions, not even those of the site.
    actions: Sequence[Column] | None = ()
    action_form: Any = ActionForm
    actions_on_top = actions_selection_counter = True
    actions_on_bottom = save_on_top = False
    #: Further options that no page uses. `check` reports them.
    not_asked = ""
    #: Which of `add`, `change` and `delete` ask for the password.
    dangerous: Sequence[str] = ()
    #: Whether additions, changes, deletions and actions need a reason.
    reason_required = False

    add_form_template: str | None = None
    change_form_template: str | None = None
    change_list_template: str | None = None
    delete_confirmation_template: str | None = None
    object_history_template: str | None = None

    # Contrib's, which do not need the ORM.
    add_view = _ModelAdmin.add_view
    change_view = _ModelAdmin.change_view
    get_changeform_initial_data = _ModelAdmin.get_changeform_initial_data
    get_form = _ModelAdmin.get_form
    get_list_display = _ModelAdmin.get_list_display
    get_list_display_links = _ModelAdmin.get_list_display_links
    get_list_filter = _ModelAdmin.get_list_filter
    get_search_fields = _ModelAdmin.get_search_fields
    get_model_perms = _ModelAdmin.get_model_perms
    get_urls = _ModelAdmin.get_urls
    message_user = _ModelAdmin.message_user
    urls = _ModelAdmin.urls

    def __init__(self, model: Any, admin_site: Any) -> None:
        self.model, self.opts, self.admin_site = model, model._meta, admin_site
        super().__init__()

    if TYPE_CHECKING:
        # Contrib's methods, which call `user.has_perm`.
        def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool: ...

        def has_view_permission(self, request: HttpRequest, obj: M | None = None) -> bool: ...

    def has_add_permission(self, request: HttpRequest) -> bool:
        # A numbered item is issued in a separate transaction, without the audit log.
        return not self.model._never_deleted and super().has_add_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return not self.model._never_deleted and super().has_delete_permission(request, obj)

    @property
    def media(self) -> forms.Media:
        scripts = "vendor/jquery/jquery.min jquery.init core admin/RelatedObjectLookups actions"
        return forms.Media(js=[f"admin/js/{name}.js" for name in scripts.split()])

    def url(self, page: str, item: Model | None = None, *args: str) -> str:
        """The address of a page: `changelist`, `add`; `change`, `delete`, `history` of an item."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        key = () if item is None else (id_of(item),)
        return reverse(name, args=[*key, *args], current_app=self.admin_site.name)

    def admin_of(self, request: HttpRequest, name: str) -> Options[Any] | None:
        """The ModelAdmin of the items that a `Reference` refers to, if the user may see them."""
        field = self.opts.by_name.get(name)
        attribute = getattr(field, "attribute", None)
        if not isinstance(attribute, Reference):
            return None
        site = self.admin_site
        found = site.is_registered(attribute.target) and site.get_model_admin(attribute.target)
        return found if found and found.has_view_or_change_permission(request) else None

    def _home(self, request: HttpRequest) -> str:
        """The list, or the index page if the user may not see the list."""
        if self.has_view_or_change_permission(request):
            return self.url("changelist")
        return reverse("admin:index", current_app=self.admin_site.name)

    def _render(
        self, request: HttpRequest, name: str, own: str | None, context: dict[str, object]
    ) -> TemplateResponse:
        """Render a page with the first existing template that contrib.admin would use, or ours."""
        request.current_app = self.admin_site.name
        app = self.opts.app_label
        model = self.opts.model_name
        folders = [f"admin/{app}/{model}", f"admin/{app}", "dynamo/admin", "admin"]
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "app_label": app,
            "media": self.media,
            "is_popup": False,
            "has_add_permission": self.has_add_permission(request),
            **context,
        }
        return TemplateResponse(request, own or [f"{folder}/{name}" for folder in folders], context)

    def _gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return _ModelAdmin._get_obj_does_not_exist_redirect(self, request, self.opts, object_id)

    def _damaged(self, request: HttpRequest, error: DamagedItem) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        self.message_user(request, str(error), messages.ERROR)
        return HttpResponseRedirect(self.url("changelist"))
