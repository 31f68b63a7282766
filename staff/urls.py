from django.urls import path, register_converter
from django.urls.converters import UUIDConverter

from staff import views


class AccountKeyConverter(UUIDConverter):
    """The primary key of an account; keys of guard items have another form."""

    def to_python(self, value: str) -> str:  # type: ignore[override]  # a key is a text
        return value


register_converter(AccountKeyConverter, "account")

app_name = "staff"

urlpatterns = [
    path("", views.OverviewView.as_view(), name="overview"),
    path("accounts/<account:pk>/", views.AccountView.as_view(), name="account"),
    path("accounts/<account:pk>/deactivate/", views.DeactivateView.as_view(), name="deactivate"),
    path("accounts/<account:pk>/activate/", views.ActivateView.as_view(), name="activate"),
    path(
        "accounts/<account:pk>/sessions/end/",
        views.SessionsEndView.as_view(),
        name="sessions_end",
    ),
    path(
        "accounts/<account:pk>/sessions/<str:session>/end/",
        views.SessionEndView.as_view(),
        name="session_end",
    ),
    path(
        "accounts/<account:pk>/invoices/",
        views.AccountInvoicesView.as_view(),
        name="account_invoices",
    ),
    path(
        "accounts/<account:pk>/invoices/<str:label>/",
        views.AccountInvoiceView.as_view(),
        name="account_invoice",
    ),
    path(
        "accounts/<account:pk>/invoices/<str:label>.pdf",
        views.AccountInvoicePdfView.as_view(),
        name="account_invoice_pdf",
    ),
    path("accounts/<account:pk>/record/", views.AuditLogView.as_view(), name="account_record"),
    path("lock/", views.LockView.as_view(), name="lock"),
    path("record/", views.AuditLogView.as_view(), name="record"),
    path("runs/<str:kind>/", views.ReportView.as_view(), name="run"),
]
