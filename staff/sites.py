"""The admin of the site: dynamo.admin with the site's own sign-in, limits and audit log."""

from collections.abc import Callable
from contextlib import suppress
from functools import update_wrapper
from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from accounts.limits import attempts
from accounts.models import User
from accounts.pages.base import signed_in
from accounts.sessions import visitor
from dynamo import DamagedItem, Transaction, admin
from locks import LockChanged
from locks.registry import BREAK_ATTEMPTS, LockView, break_lock
from staff.models import ON_STAFF
from staff.reports import KINDS, last_reports

View = Callable[..., HttpResponseBase]


class StaffSite(admin.AdminSite):
    """The site is for signed-in accounts that are stored as staff and active.

    Visitors who are not signed in are asked to sign in. For all others, the pages do not exist.
    """

    site_title = site_header = index_title = _("Staff")
    index_template = "staff/index.html"
    enable_nav_sidebar = False
    final_catch_all_view = False

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        return self.for_staff(login_required(view))

    def for_staff(self, view: View) -> View:
        """`view`, which answers 404 to signed-in visitors who are not staff."""

        def inner(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            if request.user.is_authenticated and not self.has_permission(request):
                raise Http404
            response = view(request, *args, **kwargs)
            if isinstance(response, TemplateResponse):
                context = response.context_data or {}
                response.context_data = {**self.each_context(request), **context}
            return response

        return update_wrapper(never_cache(inner), view)

    def rights(self, request: HttpRequest, permission: str) -> list[admin.Right]:
        """Staff, active and signed in; for an action on other staff, a superuser.

        Therefore, if two superusers deactivate each other at once, the later transaction is
        rejected.
        """
        user, values = signed_in(request), {"is_staff": True, "is_active": True}
        if ON_STAFF in permission:
            values["is_superuser"] = True
        return [admin.Right(user, values, also=user.signed_in())]

    def commit(self, request: HttpRequest, write: Transaction, *args: Any, **options: Any) -> bool:
        """Like `AdminSite.commit`. For a user who lost the rights, the page does not exist.

        Reading is not logged, because it changes nothing and its entries would hide those of the
        changes. The server's log has who requested which page. See `record_opening` for the
        exception: invoices and customers.
        """
        try:
            return super().commit(request, write, *args, **options)
        except PermissionDenied as error:
            raise Http404 from error

    def record_opening(self, request: HttpRequest, action: str, pk: str, what: str = "") -> User:
        """Record that private data of the account `pk`, which may be deleted, are shown."""
        account = User(pk)
        with suppress(DamagedItem):
            account = User.get_or_none(pk) or account
        self.commit(request, Transaction(), action, "", on=account, what=what)
        return account

    def break_lock(self, request: HttpRequest, seen: LockView, reason: str) -> bool:
        """Break the lock of the holder in `seen`, but not of a later one.

        False if the lock was free.

        Costs 2 requests, 1 read unit and 6 write units; the same again if it was renewed in
        between.

        Raises:
            LockChanged: the lock has another holder.
            UnknownLock: the lock does not exist any more.
        """
        for _attempt in range(BREAK_ATTEMPTS):
            write = Transaction()
            break_lock(seen.name, as_seen=seen, write=write)
            # The lock may just have been renewed, so the next round reads the current holder.
            with suppress(LockChanged):
                entry = {"what": seen.name, "reason": reason}
                return bool(write) and self.commit(request, write, "breakLock", "", **entry)
        raise LockChanged(seen.name)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        from staff import admin as _registers, views  # noqa: F401 - also by being imported

        return [
            # This keeps the form of a visitor whose session has ended.
            path("lock/", self.for_staff(views.LockView.as_view()), name="lock"),
            path("record/", self.admin_view(views.AuditLogView.as_view()), name="record"),
            path("runs/<str:kind>/", self.admin_view(views.ReportView.as_view()), name="run"),
            *super().get_urls(),
        ]

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:
        return redirect_to_login(reverse("admin:index"))

    def logout(self, request: HttpRequest, extra_context: object = None) -> HttpResponseBase:
        """Sign out in the same way as on the other pages."""
        return LogoutView.as_view()(request)

    def password_change(
        self, request: HttpRequest, extra_context: object = None
    ) -> HttpResponseBase:
        return redirect("password_change")

    def password_change_done(
        self, request: HttpRequest, extra_context: object = None
    ) -> HttpResponseBase:
        return redirect("password_change_done")

    def index(self, request: HttpRequest, extra_context: object = None) -> HttpResponseBase:
        """The models, and the last reports. Costs 2 requests."""
        return super().index(request, {"reports": last_reports(*KINDS.values())})

    def is_password(self, user: User, password: str) -> bool:
        """Raises TooManyAttempts."""
        return attempts.is_password(user, password)

    def client_address(self, request: HttpRequest) -> str:
        return visitor.address(request)
