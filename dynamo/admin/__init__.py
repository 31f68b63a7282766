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

    from dynamo.admin.options import (
        ModelAdmin as ModelAdmin,
        action as action,
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
        "dynamo.admin.options": "ModelAdmin action",
        "dynamo.admin.sites": "AdminSite register",
    },
)
