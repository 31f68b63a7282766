"""The options of a ModelAdmin, with contrib's names, and what its pages share.

Permissions, fieldsets, form fields and most options come from contrib's `ModelAdmin`. What of it
needs the ORM is replaced here, or `dynamo.admin.checks` reports that it is never called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, cast

from django import forms
from django.contrib import messages
from django.contrib.admin import options as contribs
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from dynamo.admin.shown import id_of
from dynamo.exceptions import DamagedItem
from dynamo.forms import M
from dynamo.model.base import Model
from dynamo.model.pages import GlobalSecondaryIndex

if TYPE_CHECKING:
    from dynamo.auth.models import AbstractUser

#: What a caller adds to the context of a page.
Context = Mapping[str, object] | None
#: Names of fields; those that a line shows side by side are a sequence.
Fields = Sequence[str | Sequence[str]]


def user_of(request: HttpRequest) -> AbstractUser:
    """The user of `request`, for type checkers one of `dynamo.auth`.

    A project may have another user model.
    """
    return cast("AbstractUser", request.user)


# Its stubs know relational models only.
_ModelAdmin: Any = contribs.ModelAdmin


class Options(_ModelAdmin, Generic[M]):
    """What a ModelAdmin may set, and the page that each of its views answers with."""

    model: type[M]

    list_per_page = 50
    #: The list shows this partition of this index (`Member.by_club`) at first; else the table.
    list_index: GlobalSecondaryIndex | None = None
    list_partition: object = None
    #: Which of `add`, `change` and `delete` ask for the password.
    dangerous: Sequence[str] = ()
    #: Whether additions, changes, deletions and actions need a reason.
    reason_required = False

    if TYPE_CHECKING:
        # Contrib's methods, which call `user.has_perm`.
        def has_add_permission(self, request: HttpRequest) -> bool: ...

        def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool: ...

        def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool: ...

        def has_view_permission(self, request: HttpRequest, obj: M | None = None) -> bool: ...

    @property
    def media(self) -> forms.Media:
        scripts = "vendor/jquery/jquery.min jquery.init core admin/RelatedObjectLookups actions"
        return forms.Media(js=[f"admin/js/{name}.js" for name in scripts.split()])

    def url(self, page: str, item: Model | None = None, *args: str) -> str:
        """The address of a page: `changelist`, `add`; `change`, `delete`, `history` of an item."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        key = () if item is None else (id_of(item),)
        return reverse(name, args=[*key, *args], current_app=self.admin_site.name)

    def _home(self, request: HttpRequest) -> str:
        """The list, or the index page if the user may not see the list."""
        if self.has_view_or_change_permission(request):
            return self.url("changelist")
        return reverse("admin:index", current_app=self.admin_site.name)

    def _render(
        self, request: HttpRequest, name: str, own: str | None, context: dict[str, object]
    ) -> TemplateResponse:
        """A page: by the first template of contrib.admin's places that exists, else ours."""
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

    def _damaged(self, request: HttpRequest, error: DamagedItem) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        self.message_user(request, str(error), messages.ERROR)
        return HttpResponseRedirect(self.url("changelist"))
