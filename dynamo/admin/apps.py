"""The app `admin`: templates, static files and translations are those of contrib.admin."""

from __future__ import annotations

from pathlib import Path

from django.apps import AppConfig
from django.contrib import admin
from django.core import checks
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as djangos_lazy


class SimpleAdminConfig(AppConfig):
    """Without automatic discovery. A subclass may name another `default_site`."""

    name = "dynamo.admin"
    label = "admin"
    #: Where Django looks for the app's files, except for tags and models.
    path = str(Path(admin.__file__).parent)
    verbose_name = djangos_lazy("Administration")
    default_site = "dynamo.admin.sites.AdminSite"

    def ready(self) -> None:
        from dynamo.admin.checks import check_admin

        checks.register(check_admin, checks.Tags.admin)


class AdminConfig(SimpleAdminConfig):
    """Imports the module `admin` of each app."""

    default = True

    def ready(self) -> None:
        super().ready()
        autodiscover_modules("admin", register_to=admin.site)
