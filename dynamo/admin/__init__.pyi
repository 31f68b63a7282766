from django.contrib.admin.decorators import display as display

from dynamo.admin.actions import action as action
from dynamo.admin.modeladmin import ModelAdmin as ModelAdmin, UserAdmin as UserAdmin
from dynamo.admin.models import (
    LogEntry as LogEntry,
    journal_of as journal_of,
    list_entries as list_entries,
    month_of as month_of,
    record as record,
)
from dynamo.admin.sites import (
    AdminSite as AdminSite,
    Right as Right,
    register as register,
    site as site,
)
