"""The URLs of the site, and an admin whose editors change and delete accounts by its forms."""

from django.urls import path

from accounts.models import User
from dynamo import admin
from project import urls
from project.urls import handler400, handler403, handler404, handler500

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]


class AccountAdmin(admin.UserAdmin):
    fields = ("username", "email", "full_name")


editors = admin.AdminSite("editors")
editors.register(User, AccountAdmin)

urlpatterns = [*urls.urlpatterns, path("editors/", editors.urls)]
