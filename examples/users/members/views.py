from django.contrib.auth import login
from django.http import HttpResponse

from dynamo.auth.forms import UserCreationForm
from dynamo.views import CreateView


class SignUp(CreateView):
    form_class = UserCreationForm
    template_name = "page.html"
    success_url = "/"

    def form_valid(self, form: UserCreationForm) -> HttpResponse:
        response = super().form_valid(form)
        login(self.request, self.object)
        return response
