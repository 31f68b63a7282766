"""The site: index, sign-in, and the pages of each registered model, under contrib.admin's names.

A page asks `has_perm` when it is opened and when its form is sent. The right can still end before
the write. Therefore, each write also requires that the source of the right is still stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from django.contrib.admin import sites as contribs
from django.contrib.auth import update_session_auth_hash
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, reverse
from django.utils.translation import gettext_lazy as _
from django.views.i18n import JavaScriptCatalog
from pynamodb.expressions.condition import Condition

from dynamo.admin.actions import as_stored, delete_selected
from dynamo.admin.modeladmin import ModelAdmin
from dynamo.admin.models import LogEntry, list_entries, month_of, record
from dynamo.admin.options import Context, user_of
from dynamo.auth.passwords import check_new_password
from dynamo.auth.permissions import read_group
from dynamo.exceptions import AlreadyDone, DynamoError, Refused
from dynamo.model.base import Model
from dynamo.transactions import Transaction

AdminClass = TypeVar("AdminClass", bound=type[ModelAdmin])


#: The kinds of a transaction's entries that write. The other kind only requires a condition.
_WRITES = ("Put", "Update", "Delete")


class RightsLost(DynamoError):
    """The user no longer has the right to do this. Nothing was written."""

    user: str

    text = "The user {user} no longer has the right to do this. Nothing was written."


@dataclass(frozen=True)
class Right:
    """A requirement of an item: it has these values, and these elements of its sets.

    `also` is a further condition, on an attribute that can change while the version does not.
    """

    item: Model
    values: Mapping[str, object] = field(default_factory=dict)
    elements: Mapping[str, str] = field(default_factory=dict)
    also: Condition | None = None

    def condition(self) -> Condition:
        attributes = self.item.get_attributes()
        condition = self.item._exists_condition()
        for name, value in self.values.items():
            has_value = attributes[name] == value
            # An item without the attribute is read with its constant default.
            if attributes[name].default == value:
                has_value = has_value | attributes[name].does_not_exist()
            condition = condition & has_value
        for name, element in self.elements.items():
            condition = condition & attributes[name].contains(element)
        return condition if self.also is None else condition & self.also

    def holds(self, item: Model) -> bool:
        """Whether `item`, as it was read, has the required values."""
        return all(getattr(item, name) == value for name, value in self.values.items()) and all(
            element in (getattr(item, name) or ()) for name, element in self.elements.items()
        )


def _models(given: type | Iterable[type]) -> list[type]:
    return [given] if isinstance(given, type) else [*given]


# Typed as Any, because Django's stubs know only relational models.
_AdminSite: Any = contribs.AdminSite


class AdminSite(_AdminSite):
    """Contrib's site for models of this library. Models of a relational database are left out."""

    _registry: dict[type[Model], ModelAdmin]

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        # This action replaces contrib's, which has the same name.
        self.add_action(delete_selected)
        #: Models that cannot be registered, with their ModelAdmin. `check` reports them.
        self.refused: list[tuple[object, object]] = []

    def register(
        self,
        model_or_iterable: type[Model] | Iterable[type[Model]],
        admin_class: type[ModelAdmin] | None = None,
        **options: object,
    ) -> None:
        """Register models, with `options` as attributes of their ModelAdmin.

        Raises:
            AlreadyRegistered
        """
        admin_class = admin_class or ModelAdmin
        for model in _models(model_or_iterable):
            if issubclass(model, Model) and issubclass(admin_class, ModelAdmin):
                super().register([model], admin_class, **options)
            else:
                self.refused.append((model, admin_class))

    def unregister(self, model_or_iterable: type[Model] | Iterable[type[Model]]) -> None:
        """Remove models, so that another ModelAdmin can be registered for them.

        Raises:
            NotRegistered
        """
        super().unregister(_models(model_or_iterable))

    # Who may do what ------------------------------------------------------------------------------

    def rights(self, request: HttpRequest, permission: str) -> list[Right]:
        """The requirements that are stored now if the user of `request` has `permission`.

        The user is active and staff, and is a superuser, has the permission, such as
        "members.change_member", or is in a group that has it. If `has_perm` of another backend
        decides, its decision cannot be part of a transaction. `has_perm` uses the groups that this
        reads from then on.

        Costs at most 1 request for each of the user's groups; none if the user has it without a
        group.
        """
        user = user_of(request)
        if not isinstance(cast(object, user), Model):
            return []
        values = {"is_active": True, "is_staff": True}
        if user.is_superuser:
            return [Right(user, {**values, "is_superuser": True})]
        if permission in (getattr(user, "permissions", None) or ()):
            return [Right(user, values, {"permissions": permission})]
        for name in getattr(user, "groups", None) or ():
            group = read_group(user.group_model, name) if user.group_model else None
            if group is not None and permission in (group.permissions or ()):
                return [
                    Right(user, values, {"groups": name}),
                    Right(group, elements={"permissions": permission}),
                ]
        return [Right(user, values)]

    def may_write(self, request: HttpRequest, item: object) -> bool:
        """Whether the user of `request` may write `item`.

        This applies to all permissions and pages.

        Only a superuser may write the account of another member of staff, because a changed email
        address is enough to set a password by a reset link. `commit` checks this for each write.
        """
        # Imported here, because the module needs the apps, which are loaded later.
        from dynamo.auth.models import AbstractUser

        user = user_of(request)
        if user.is_superuser or not isinstance(item, AbstractUser) or item == user:
            return True
        stored = as_stored(item)
        return not (item.stored and (stored.is_staff or stored.is_superuser))

    def known_rights(self, request: HttpRequest, permission: str) -> list[Right]:
        """Like `rights`, read once per request."""
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
        **about: str,
    ) -> bool:
        """Commit `write` with its entries in the audit log. Returns False if it was done before.

        `about` has the `what` and the `reason` of the entries; see `record`.

        Costs in addition 2 write units for each of 2 entries (1 without `on`), and 2 for the check
        of the user's rights.

        Raises:
            PermissionDenied: the user no longer has the right, or `may_write` refused an item;
                nothing was written.
            The errors of `Transaction.commit`.
        """
        user = user_of(request)
        written = [entry.about for entry in write if entry.kind != "ConditionCheck"]
        if not all(self.may_write(request, item) for item in written):
            raise PermissionDenied
        record(
            write,
            action,
            by=str(user.pk),
            by_name=user.get_username(),
            on=on,
            address=self.client_address(request),
            **about,
        )
        for right in self.known_rights(request, permission):
            try:
                write.check(right.item, right.condition(), otherwise=RightsLost(str(user.pk)))
            except ValueError as error:
                # A transaction takes each item once. If it writes the item that gives the right,
                # the condition on its version suffices, because the item gave the right when it was
                # read. This does not hold for an item of another model with the same key.
                own = [item for item in written if isinstance(item, right.item.__class__)]
                if right.item not in own or not right.holds(own[own.index(right.item)]):
                    raise PermissionDenied from error
        try:
            write.commit()
        except AlreadyDone:
            return False
        except (RightsLost, Refused) as error:
            if isinstance(error, RightsLost) or error.subgroup(RightsLost):
                raise PermissionDenied from error
            raise
        return True

    def password_change(
        self, request: HttpRequest, extra_context: Context = None
    ) -> HttpResponseBase:
        """Like contrib's method, with the view of `dynamo.auth`."""
        # Imported here, because the forms need the user model, which is loaded later.
        from django.contrib.admin.forms import AdminPasswordChangeForm

        from dynamo.auth.forms import RepeatableMixin
        from dynamo.auth.views import PasswordChangeView

        request.current_app = self.name
        return PasswordChangeView.as_view(
            form_class=type("PasswordChangeForm", (RepeatableMixin, AdminPasswordChangeForm), {}),
            success_url=reverse("admin:password_change_done", current_app=self.name),
            template_name=self.password_change_template or PasswordChangeView.template_name,
            extra_context={**self.each_context(request), **(extra_context or {})},
        )(request)

    def check_password(self, request: HttpRequest, password: str) -> None:
        """Check the password that is asked again before dangerous actions.

        Raises:
            ValidationError: it is too long, or not the password of the user of `request`.
        """
        check_new_password(password)
        user = user_of(request)
        read = user.password
        if not self.is_password(user, password):
            raise ValidationError(_("This is not your password."), code="password_incorrect")
        if user.password != read:
            # The check upgraded an outdated hash, which the session contains.
            update_session_auth_hash(request, cast(Any, user))

    def is_password(self, user: Any, password: str) -> bool:
        """Whether this is the password of `user`. A subclass may limit the attempts."""
        return bool(user.check_password(password))

    def client_address(self, request: HttpRequest) -> str:
        """The address that the audit log stores."""
        return str(request.META.get("REMOTE_ADDR", ""))

    # Pages ----------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern | URLResolver]:
        left_out = {"autocomplete", "view_on_site"}
        return [url for url in super().get_urls() if getattr(url, "name", "") not in left_out]

    def i18n_javascript(
        self, request: HttpRequest, extra_context: object = None
    ) -> HttpResponseBase:
        return JavaScriptCatalog.as_view(packages=["dynamo.admin"])(request)

    def get_log_entries(self, request: HttpRequest) -> object:
        """The newest entries of this month, read by the index page if it shows them."""
        return _NewestEntries()


class _NewestEntries:
    """The methods of a QuerySet that contrib.admin's tag calls."""

    def filter(self, *, user__pk: str) -> list[LogEntry]:
        return [entry for entry in self[:] if entry.by == user__pk]

    def __getitem__(self, some: slice) -> list[LogEntry]:
        return list_entries(month_of(datetime.now(UTC))).items[some]


#: The site of the project, which `default_site` of its AppConfig replaces.
site = cast(AdminSite, contribs.site)


def register(*models: type[Model], site: AdminSite = site) -> Callable[[AdminClass], AdminClass]:
    """`@admin.register(Member)` before a ModelAdmin registers the models."""

    def registered(admin_class: AdminClass) -> AdminClass:
        site.register(models, admin_class)
        return admin_class

    return registered
