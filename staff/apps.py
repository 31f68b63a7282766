from django.apps import AppConfig

from dynamo.admin import apps


class StaffConfig(AppConfig):
    name = "staff"
    default = True


class StaffAdminConfig(apps.SimpleAdminConfig):
    """The site registers the models with its URLs: a new process soon answers its first page."""

    default = False
    default_site = "staff.sites.StaffSite"
