"""Pages of examples/ownuser, and those besides that tests of accounts open (`tests.own_user`)."""

from django.urls import include, path
from django.views.generic import TemplateView

from accounts.pages.account import switch_language
from dynamo.health import healthz

urlpatterns = [
    path("", TemplateView.as_view(template_name="accounts/base.html"), name="home"),
    path("", include("club.urls")),
    path("i18n/setlang/", switch_language, name="set_language"),
    path("healthz", healthz),
]
