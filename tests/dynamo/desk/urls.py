"""The pages of the test app, its admin, and those of `dynamo.auth`."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import include, path
from django.views import generic

from dynamo import Transaction, admin
from dynamo.forms import ModelForm, modelform_factory
from dynamo.views import (
    CreateView,
    DeleteView,
    DetailView,
    ListView,
    UpdateMixin,
    UpdateView,
    get_object_or_404,
)
from tests.dynamo.desk.models import Badge, Customer, Seat


class CustomerCreate(CreateView[Customer]):
    model = Customer
    fields = ("email", "club", "card")

    def form_valid(self, form: ModelForm[Customer]) -> HttpResponse:
        answer = super().form_valid(form)
        messages.success(self.request, "The customer was added.")
        return answer


class Detail(DetailView):
    slug_field = "email"


class CustomerUpdate(UpdateView[Customer, ModelForm[Customer]]):
    model = Customer
    fields = ("email", "club", "card")


class CustomerDelete(DeleteView[Customer]):
    model = Customer
    success_url = "/clubs/{club}/"


class CustomersOfClub(ListView[Customer]):
    model = Customer
    index = Customer.by_club
    ordering = "-joined"
    paginate_by = 2


class Seats(ListView[Seat]):
    model = Seat
    allow_empty = False


class ListedSeats(Seats):
    """Lists what the function `items` returns."""

    items: Any = None

    def get_queryset(self) -> Any:
        return self.items()


class SeatUpdate(UpdateMixin, generic.UpdateView):
    model = Seat
    form_class = modelform_factory(Seat, fields=["hall", "row", "guest"])
    template_name = "desk/any_form.html"
    success_url = "/halls/{hall}/{row}/"

    def form_valid(self, form: Any) -> HttpResponse:
        with Transaction() as write:
            self.object = form.save(write=write)
            Badge.create(code=self.object.guest, write=write)
        return redirect(self.get_success_url())


def customer_of(request: HttpRequest, email: str) -> HttpResponse:
    return HttpResponse(get_object_or_404(Customer, email=email).pk)


urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("dynamo.auth.urls")),
    path("clubs/<club>/", CustomersOfClub.as_view()),
    path("seats/red/", Seats.as_view(partition="red")),
    path("seats/all/", ListedSeats.as_view(items=lambda: list(Seat.query("red")), paginate_by=2)),
    path("seats/cursor/", ListedSeats.as_view(items=lambda: Seat.page("red"))),
    path("seats/of/<hall>/", Seats.as_view()),
    path("wrong/partition/", Seats.as_view()),
    path("wrong/order/", Seats.as_view(partition="red", ordering="guest")),
    path("wrong/scan/", ListedSeats.as_view(items=Seat.scan)),
    path("customers/new/", CustomerCreate.as_view()),
    path("customers/<pk>/", Detail.as_view(model=Customer)),
    path("customers/<pk>/edit/", CustomerUpdate.as_view()),
    path("customers/<pk>/delete/", CustomerDelete.as_view()),
    path("uuids/<uuid:pk>/", Detail.as_view(model=Customer)),
    path("emails/<slug>/", Detail.as_view(model=Customer)),
    path("of/<path:email>/", customer_of),
    path("halls/<hall>/<row>/", Detail.as_view(model=Seat)),
    path("rows/<hall>/<int:row>/", Detail.as_view(model=Seat)),
    path("halls/<hall>/<int:row>/edit/", SeatUpdate.as_view()),
    path("rooms/<hall>/<row>/edit/", SeatUpdate.as_view()),
    path("halls/<hall>/", Detail.as_view(model=Seat)),
    path("badges/<pk>/", Detail.as_view(model=Badge, template_name="desk/badge.html")),
]
