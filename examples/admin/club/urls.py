from django.urls import path

from dynamo import admin

urlpatterns = [path("admin/", admin.site.urls)]
