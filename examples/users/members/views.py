from django.contrib.auth import login
from django.views.generic import CreateView

from dynamo.auth.forms import UserCreationForm
from dynamo.views import CreateMixin


class SignUp(CreateMixin, CreateView):
    form_class = UserCreationForm
    template_name = "page.html"
    success_url = "/"

    def form_valid(self, form):
        response = super().form_valid(form)
        login(self.request, self.object)
        return response
