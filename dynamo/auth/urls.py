"""Like `django.contrib.auth.urls`, with the views of `dynamo.auth.views`."""

from django.contrib.auth import urls
from django.urls import path

from dynamo.auth.views import PasswordChangeView, PasswordResetConfirmView

# These come before Django's URLs, and have the same addresses and names.
urlpatterns = [
    path("password_change/", PasswordChangeView.as_view(), name="password_change"),
    path(
        "reset/<uidb64>/<token>/", PasswordResetConfirmView.as_view(), name="password_reset_confirm"
    ),
    *urls.urlpatterns,
]
