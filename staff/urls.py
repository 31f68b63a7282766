"""The URLs of the staff pages."""

from django.urls import path, register_converter
from django.urls.converters import UUIDConverter

from staff.views.accounts import (
    AccountView,
    ActivateView,
    DeactivateView,
    SessionEndView,
    SessionsEndView,
)
from staff.views.audit_log import AccountAuditLogView, AuditLogView
from staff.views.locks import LockView
from staff.views.overview import OverviewView, ReportView


class AccountKeyConverter(UUIDConverter):
    """The primary key of an account; keys of guards have another form."""

    def to_python(self, value: str) -> str:  # type: ignore[override]  # a key is a text
        return value


register_converter(AccountKeyConverter, "account")

app_name = "staff"

urlpatterns = [
    path("", OverviewView.as_view(), name="overview"),
    path("accounts/<account:pk>/", AccountView.as_view(), name="account"),
    path("accounts/<account:pk>/deactivate/", DeactivateView.as_view(), name="deactivate"),
    path("accounts/<account:pk>/activate/", ActivateView.as_view(), name="activate"),
    path("accounts/<account:pk>/sessions/end/", SessionsEndView.as_view(), name="sessions_end"),
    path(
        "accounts/<account:pk>/sessions/<str:session>/end/",
        SessionEndView.as_view(),
        name="session_end",
    ),
    path("accounts/<account:pk>/record/", AccountAuditLogView.as_view(), name="account_record"),
    path("lock/", LockView.as_view(), name="lock"),
    path("record/", AuditLogView.as_view(), name="record"),
    path("runs/<str:kind>/", ReportView.as_view(), name="run"),
]
