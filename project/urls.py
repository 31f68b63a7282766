"""Every URL of the site."""

from django.conf import settings
from django.urls import include, path
from django.views.generic import TemplateView

from accounts.pages.account import switch_language
from dynamo.admin import site
from dynamo.health import healthz, livez
from invoices.pages.downloads import AccountDeleteWithInvoicesView, AccountExportView
from invoices.pages.views import HomeView
from project.middleware import error_page

handler400, handler403, handler404, handler500 = map(error_page, (400, 403, 404, 500))

urlpatterns = [
    path("", HomeView.as_view(), name="home"),
    path(
        "how-it-works/",
        TemplateView.as_view(template_name="how_it_works.html"),
        name="how_it_works",
    ),
    path("accounts/export/", AccountExportView.as_view(), name="account_export"),
    path("accounts/delete/", AccountDeleteWithInvoicesView.as_view(), name="account_delete"),
    path("accounts/", include("accounts.urls")),
    path("invoices/", include("invoices.pages.urls")),
    path("admin/", site.urls),
    path("i18n/setlang/", switch_language, name="set_language"),
    path("healthz", healthz, name="healthz"),
    path("livez", livez, name="livez"),
]

if settings.DEBUG_TOOLBAR:
    from debug_toolbar.toolbar import debug_toolbar_urls

    urlpatterns += debug_toolbar_urls()
