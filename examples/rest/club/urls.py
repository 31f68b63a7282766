from django.urls import include, path

from club.views import Me

urlpatterns = [path("accounts/", include("accounts.urls")), path("api/me/", Me.as_view())]
