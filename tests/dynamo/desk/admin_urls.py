"""The pages of the test app's admin."""

from django.urls import include, path

from dynamo import admin

urlpatterns = [path("admin/", admin.site.urls), path("", include("dynamo.auth.urls"))]
