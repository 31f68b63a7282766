from django.apps import AppConfig

from dynamo.admin import apps


class StaffConfig(AppConfig):
    name = "staff"
    default = True


class StaffAdminConfig(apps.SimpleAdminConfig):
    """`StaffSite.get_urls` registers the models later, so that a new process starts faster."""

    default = False
    default_site = "staff.sites.StaffSite"
