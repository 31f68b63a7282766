"""The pages of the test app's admin."""

from __future__ import annotations

from django.urls import include, path

from dynamo import admin

urlpatterns = [path("admin/", admin.site.urls), path("", include("dynamo.auth.urls"))]
