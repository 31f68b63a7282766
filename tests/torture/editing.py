"""The URLs of the site, and an admin whose editors change and delete accounts by its forms."""

from __future__ import annotations

from typing import Any

from django.urls import path

from accounts.exceptions import StaleUser, ValueTaken
from accounts.models import User
from dynamo import Refused, Stale, admin
from project import urls
from project.urls import handler400, handler403, handler404, handler500

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]


class AccountAdmin(admin.UserAdmin):
    fields = ("username", "email", "full_name")

    def commit(self, request: Any, write: Any, action: str, obj: Any, **options: Any) -> bool:
        """As that of the library, whose forms know its own errors only."""
        try:
            return super().commit(request, write, action, obj, **options)
        except ValueTaken as error:
            taken = {(error.attribute,): {error.attribute: error.value}}
            raise User.Taken("account", taken) from error
        except StaleUser as error:
            if action == "delete":
                raise Stale("account", error.deleted) from error
            raise Refused("The account changed", [error]) from error


editors = admin.AdminSite("editors")
editors.register(User, AccountAdmin)

urlpatterns = [*urls.urlpatterns, path("editors/", editors.urls)]
