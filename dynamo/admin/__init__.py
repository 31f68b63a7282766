"""Django's admin for the models of this library, with contrib.admin's pages and names.

from dynamo import admin

Install `dynamo.admin` instead of `django.contrib.admin`; docs/admin.md describes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo._internal.lazy import lazily

if TYPE_CHECKING:
    from django.contrib.admin.decorators import display as display
    from django.contrib.admin.sites import site as site

    from dynamo.admin.helpers import (
        action as action,
    )
    from dynamo.admin.modeladmin import (
        ModelAdmin as ModelAdmin,
        UserAdmin as UserAdmin,
    )
    from dynamo.admin.models import (
        LogEntry as LogEntry,
        journal_of as journal_of,
        list_entries as list_entries,
        month_of as month_of,
        record as record,
    )
    from dynamo.admin.rights import (
        Right as Right,
    )
    from dynamo.admin.sites import (
        AdminSite as AdminSite,
        register as register,
    )

__all__, __getattr__ = lazily(
    __name__,
    {
        "django.contrib.admin.decorators": "display",
        "django.contrib.admin.sites": "site",
        "dynamo.admin.models": "LogEntry journal_of list_entries month_of record",
        "dynamo.admin.helpers": "action",
        "dynamo.admin.modeladmin": "ModelAdmin UserAdmin",
        "dynamo.admin.rights": "Right",
        "dynamo.admin.sites": "AdminSite register",
    },
)
