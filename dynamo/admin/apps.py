"""The app `admin`: templates, static files and translations are those of contrib.admin."""

from collections.abc import Sequence
from pathlib import Path

import django
from django.apps import AppConfig
from django.core import checks
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as djangos_lazy


def _check(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[checks.CheckMessage]:
    # Imported here, because a process that serves pages loads contrib.admin only with the URLs.
    from dynamo.admin.checks import check_admin

    return check_admin(app_configs, **kwargs)


class SimpleAdminConfig(AppConfig):
    """Like contrib's config, without automatic discovery. A subclass may set `default_site`."""

    name = "dynamo.admin"
    label = "admin"
    #: Django looks here for the app's files, except for tags and models.
    path = str(Path(django.__file__).parent / "contrib" / "admin")
    verbose_name = djangos_lazy("Administration")
    default_site = "dynamo.admin.sites.AdminSite"

    def ready(self) -> None:
        checks.register(_check, checks.Tags.admin)


class AdminConfig(SimpleAdminConfig):
    """Imports the module `admin` of each app."""

    default = True

    def ready(self) -> None:
        from django.contrib import admin

        super().ready()
        try:
            autodiscover_modules("admin", register_to=admin.site)
        except ValueError as error:
            if "must subclass ModelAdmin" in str(error):
                error.add_note("For models of the library, write `from dynamo import admin`.")
            raise
