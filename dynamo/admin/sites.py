"""The site: index, sign-in, and the pages of each registered model, under contrib.admin's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, cast

from django.contrib.admin.sites import AdminSite as ContribsSite, site as default_site
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.i18n import JavaScriptCatalog

from dynamo.admin.helpers import DELETE, delete_selected
from dynamo.admin.modeladmin import ModelAdmin
from dynamo.admin.models import LogEntry, list_entries, month_of, record
from dynamo.admin.rights import Right, RightsLost, rights_of
from dynamo.admin.values import name_of
from dynamo.exceptions import AlreadyDone, Refused
from dynamo.models import Model
from dynamo.transactions import Transaction


class AdminSite(ContribsSite):
    """Contrib's, for models of this library; those of a relational database are left out."""

    _registry: dict[type[Model], ModelAdmin]  # type: ignore[assignment]  # contrib's ModelAdmin

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self._actions = {DELETE: cast(Any, delete_selected)}
        self._global_actions = self._actions.copy()
        #: Models that cannot be registered, with their ModelAdmin: `check` names them.
        self.refused: list[tuple[Any, Any]] = []

    def register(  # type: ignore[override]
        self,
        model_or_iterable: type[Model] | Iterable[type[Model]],
        admin_class: type[ModelAdmin] | None = None,
        **options: Any,
    ) -> None:
        """Register models, with `options` as attributes of their ModelAdmin.

        Raises:
            AlreadyRegistered
        """
        given: Any = model_or_iterable
        admin_class = admin_class or ModelAdmin
        for model in [given] if isinstance(given, type) else given:
            if issubclass(model, Model) and issubclass(admin_class, ModelAdmin):
                super().register([model], admin_class, **options)
            else:
                self.refused.append((model, admin_class))

    # Who may do what ------------------------------------------------------------------------------

    def rights(self, request: HttpRequest, permission: str) -> list[Right]:
        """What must still be stored when the user of `request` writes; see `rights_of`."""
        return rights_of(request.user, permission)

    def known_rights(self, request: HttpRequest, permission: str) -> list[Right]:
        """As `rights`, read once per request."""
        known: dict[str, list[Right]] = vars(request).setdefault("_rights", {})
        if permission not in known:
            known[permission] = self.rights(request, permission)
        return known[permission]

    def commit(
        self,
        request: HttpRequest,
        write: Transaction,
        action: str,
        permission: str,
        *,
        on: Model | None = None,
        what: str = "",
        reason: str = "",
    ) -> bool:
        """Commit `write` together with its entries in the audit log. False if it was done before.

        Costs in addition 2 write units for each of 2 entries (1 without `on`), and 2 for the check
        of the user's rights.

        Raises:
            PermissionDenied: the user no longer has the right; nothing was written.
            what `Transaction.commit` raises.
        """
        user = cast(Any, request.user)
        written: list[Any] = [each.about for each in write]
        record(
            write,
            action,
            by=str(user.pk),
            by_name=user.get_username(),
            on=on,
            on_name="" if on is None else name_of(on),
            what=what,
            address=self.client_address(request),
            reason=reason,
        )
        for right in self.known_rights(request, permission):
            try:
                write.check(right.item, right.condition(), otherwise=RightsLost(str(user.pk)))
            except ValueError as error:
                # A transaction takes each item once. The write of an item that gives the right is
                # under its version, so it suffices that the item had it when it was read. One of
                # another model under the same key does not tell.
                own = [each for each in written if isinstance(each, right.item.__class__)]
                if right.item not in own or not right.holds(own[own.index(right.item)]):
                    raise PermissionDenied from error
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

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """As contrib's, with the view of `dynamo.auth`."""
        # They need the user model, which is loaded later.
        from django.contrib.admin.forms import AdminPasswordChangeForm

        from dynamo.auth.views import PasswordChangeView

        request.current_app = self.name
        return PasswordChangeView.as_view(
            form_class=AdminPasswordChangeForm,
            success_url=reverse("admin:password_change_done", current_app=self.name),
            template_name=self.password_change_template or PasswordChangeView.template_name,
            extra_context={**self.each_context(request), **(extra_context or {})},
        )(request)

    def check_password(self, request: HttpRequest, password: str) -> None:
        """Check the password that is asked again before dangerous actions.

        Raises:
            ValidationError: it is not the password of the user of `request`.
        """
        user = cast(Any, request.user)
        if not user.check_password(password):
            raise ValidationError(_("This is not your password."), code="password_incorrect")

    def client_address(self, request: HttpRequest) -> str:
        """The address that the audit log stores."""
        return str(request.META.get("REMOTE_ADDR", ""))

    # Pages ----------------------------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        left_out = {"autocomplete", "view_on_site"}
        return [each for each in super().get_urls() if getattr(each, "name", "") not in left_out]

    def i18n_javascript(self, request: HttpRequest, extra_context: Any = None) -> Any:
        return JavaScriptCatalog.as_view(packages=["dynamo.admin"])(request)

    def get_log_entries(self, request: HttpRequest) -> Any:
        """The newest entries of this month, read by the index page if it shows them."""
        return _NewestEntries()


class _NewestEntries:
    """What contrib.admin's tag does with a QuerySet."""

    by: str | None = None

    def filter(self, *, user__pk: str) -> _NewestEntries:
        self.by = user__pk
        return self

    def __getitem__(self, some: slice) -> list[LogEntry]:
        entries = list_entries(month_of(datetime.now(UTC))).actions
        return [each for each in entries if self.by in {None, each.by}][some]


def register(
    *models: type[Model], site: AdminSite | None = None
) -> Callable[[type[ModelAdmin]], type[ModelAdmin]]:
    """As contrib's: `@admin.register(Member)` before a ModelAdmin."""

    def registered(admin_class: type[ModelAdmin]) -> type[ModelAdmin]:
        (site or cast(AdminSite, default_site)).register(models, admin_class)
        return admin_class

    return registered
