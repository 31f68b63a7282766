"""The account's pages, by Django's names where Django has one."""

from django.contrib.auth.views import LogoutView, PasswordChangeDoneView
from django.urls import path

from accounts import views

urlpatterns = [
    path("signup/", views.SignUpView.as_view(), name="signup"),
    path("login/", views.SignInView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("profile/", views.ProfileView.as_view(), name="profile"),
    path("username/", views.UsernameChangeView.as_view(), name="username_change"),
    path("email/", views.EmailChangeView.as_view(), name="email_change"),
    path("password_change/", views.PasswordChangeView.as_view(), name="password_change"),
    path("password_change/done/", PasswordChangeDoneView.as_view(), name="password_change_done"),
    path("delete/", views.AccountDeleteView.as_view(), name="account_delete"),
]
