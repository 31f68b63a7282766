"""The URLs of the account pages. They have Django's names where Django has such a page."""

from django.contrib.auth.decorators import login_required
from django.urls import URLPattern, path
from django.views.generic import TemplateView

from accounts.models import account_model
from accounts.pages import account, emails, signin, signup


def _done(route: str, name: str, *, is_signed_in: bool = False) -> URLPattern:
    """A page that only says what was done, by the template of its name."""
    view = TemplateView.as_view(template_name=f"accounts/{name}.html")
    return path(route, login_required(view) if is_signed_in else view, name=name)


urlpatterns = [
    path("signup/", signup.SignUpView.as_view(), name="signup"),
    _done("signup/sent/", "signup_sent"),
    path("signup/confirm/<str:token>/", signup.SignUpConfirmView.as_view(), name="signup_confirm"),
    path("login/", signin.SignInView.as_view(), name="login"),
    path("logout/", signin.SignOutView.as_view(), name="logout"),
    path("profile/", account.ProfileView.as_view(), name="profile"),
    path("email/", emails.EmailChangeView.as_view(), name="email_change"),
    path("email/cancel/", emails.EmailChangeCancelView.as_view(), name="email_change_cancel"),
    path(
        "email/confirm/<str:token>/",
        emails.EmailChangeConfirmView.as_view(),
        name="email_change_confirm",
    ),
    path("confirm/send/", emails.ConfirmationSendView.as_view(), name="email_confirm_send"),
    path("confirm/<str:token>/", emails.EmailConfirmView.as_view(), name="email_confirm"),
    path("password_change/", account.PasswordChangeView.as_view(), name="password_change"),
    _done("password_change/done/", "password_change_done", is_signed_in=True),
    path("password_reset/", signin.PasswordResetView.as_view(), name="password_reset"),
    _done("password_reset/done/", "password_reset_done"),
    path(
        "reset/<uidb64>/<token>/",
        signin.PasswordResetConfirmView.as_view(),
        name="password_reset_confirm",
    ),
    _done("reset/done/", "password_reset_complete"),
    path("delete/", account.AccountDeleteView.as_view(), name="account_delete"),
    path("export/", account.AccountExportView.as_view(), name="account_export"),
    path("sessions/", signin.SessionsView.as_view(), name="account_sessions"),
    path("sessions/end/", signin.SessionEndView.as_view(), name="session_end"),
    path(
        "sessions/end_others/", signin.SessionsEndOthersView.as_view(), name="sessions_end_others"
    ),
    path("reauthenticate/", signin.ReauthenticateView.as_view(), name="reauthenticate"),
]

if "username" in account_model().get_attributes():
    urlpatterns += [
        path("username/", account.UsernameChangeView.as_view(), name="username_change"),
        path("username_reminder/", signin.UsernameReminderView.as_view(), name="username_reminder"),
        _done("username_reminder/done/", "username_reminder_done"),
    ]
