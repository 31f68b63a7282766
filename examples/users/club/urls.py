from django.urls import include, path
from django.views.generic import TemplateView
from members.views import SignUp

urlpatterns = [
    path("", TemplateView.as_view(template_name="page.html"), name="home"),
    path("signup/", SignUp.as_view(), name="signup"),
    path("", include("dynamo.auth.urls")),
]
