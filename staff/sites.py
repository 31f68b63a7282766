"""The admin of the site: dynamo.admin with the site's own sign-in, limits and audit log."""

from __future__ import annotations

from functools import update_wrapper
from typing import Any, cast

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.views import LogoutView, redirect_to_login
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from accounts.limits import attempts
from accounts.pages import signed_in
from accounts.sessions import visitor
from dynamo import admin
from staff.exceptions import NotStaff
from staff.reports import KINDS, last_reports


class StaffSite(admin.AdminSite):
    """For accounts that are stored as staff and active, and are signed in.

    Visitors who are not signed in are asked to sign in; for all others the pages do not exist.
    """

    site_title = site_header = index_title = _("Staff")
    index_template = "staff/index.html"
    enable_nav_sidebar = False
    final_catch_all_view = False

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if not self.has_permission(request):
                raise Http404
            try:
                return view(request, *args, **kwargs)
            except NotStaff as error:
                # The rights were taken during the request; nothing was done.
                raise Http404 from error

        return update_wrapper(never_cache(inner), view)

    def get_urls(self) -> list[Any]:
        from staff import admin as _registers, views  # noqa: F401 - also by being imported

        return [
            path("lock/", views.LockView.as_view(), name="lock"),
            path("record/", views.AuditLogView.as_view(), name="record"),
            path("runs/<str:kind>/", views.ReportView.as_view(), name="run"),
            *super().get_urls(),
        ]

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        return redirect_to_login(reverse("admin:index"))

    def logout(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Sign out as on the other pages."""
        return LogoutView.as_view()(request)

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> Any:
        return redirect("password_change")

    def password_change_done(self, request: HttpRequest, extra_context: Any = None) -> Any:
        return redirect("password_change_done")

    def index(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """The models, and the last reports. Costs 2 requests."""
        return super().index(request, {"reports": last_reports(*KINDS.values())})

    def check_password(self, request: HttpRequest, password: str) -> None:
        """Raises ValidationError, TooManyAttempts."""
        user = signed_in(request)
        read = user.password
        if not attempts.is_password(user, password):
            raise ValidationError(_("This is not your password."), code="password_incorrect")
        if user.password != read:
            # Its outdated hash was upgraded.
            update_session_auth_hash(request, cast(Any, user))

    def client_address(self, request: HttpRequest) -> str:
        return visitor.address(request)
