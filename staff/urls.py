"""The pages of staff."""

from django.urls import path

from staff.views.accounts import (
    AccountView,
    ActivateView,
    DeactivateView,
    SessionEndView,
    SessionsEndView,
)
from staff.views.journal import AccountJournalView, JournalView
from staff.views.locks import LockView
from staff.views.overview import OverviewView
from staff.views.runs import RunView

app_name = "staff"

urlpatterns = [
    path("", OverviewView.as_view(), name="overview"),
    path("accounts/<str:pk>/", AccountView.as_view(), name="account"),
    path("accounts/<str:pk>/deactivate/", DeactivateView.as_view(), name="deactivate"),
    path("accounts/<str:pk>/activate/", ActivateView.as_view(), name="activate"),
    path("accounts/<str:pk>/sessions/end/", SessionsEndView.as_view(), name="sessions_end"),
    path(
        "accounts/<str:pk>/sessions/<str:session>/end/",
        SessionEndView.as_view(),
        name="session_end",
    ),
    path("accounts/<str:pk>/record/", AccountJournalView.as_view(), name="account_record"),
    path("lock/", LockView.as_view(), name="lock"),
    path("record/", JournalView.as_view(), name="record"),
    path("runs/<str:kind>/", RunView.as_view(), name="run"),
]
