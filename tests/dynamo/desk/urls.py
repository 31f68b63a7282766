"""The pages of the test app."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.generic import CreateView, DeleteView, DetailView, ListView, UpdateView

from dynamo.forms import ModelForm, modelform_factory
from dynamo.transactions import Transaction
from dynamo.views import (
    CreateMixin,
    DeleteMixin,
    DetailMixin,
    ListMixin,
    UpdateMixin,
    get_object_or_404,
)
from tests.dynamo.desk.models import Badge, Customer, Seat


class CustomerCreate(CreateMixin, CreateView):
    model = Customer
    fields = ("email", "club", "card")

    def form_valid(self, form: ModelForm[Customer]) -> HttpResponse:
        answer: HttpResponse = super().form_valid(form)
        messages.success(self.request, "The customer was added.")
        return answer


class CustomerDetail(DetailMixin, DetailView):
    model = Customer
    slug_field = "email"


class CustomerUpdate(UpdateMixin, UpdateView):
    model = Customer
    fields = ("email", "club", "card")


class CustomerDelete(DeleteMixin, DeleteView):
    model = Customer
    success_url = "/clubs/{club}/"


class CustomersOfClub(ListMixin, ListView):
    model = Customer
    index = Customer.by_club
    ordering = "-joined"
    paginate_by = 2


class Seats(ListMixin, ListView):
    model = Seat
    allow_empty = False


class RedSeats(Seats):
    partition = "red"


class AllSeats(ListMixin, ListView):
    model = Seat

    def get_queryset(self) -> Any:
        return sorted(Seat.scan(), key=lambda seat: seat.row)


class ScannedSeats(ListMixin, ListView):
    model = Seat

    def get_queryset(self) -> Any:
        return Seat.scan()


class PageOfSeats(ScannedSeats):
    def get_queryset(self) -> Any:
        return Seat.page("red", after=self.request.GET.get("page"))


class WithoutPartition(ListMixin, ListView):
    model = Customer


class WrongOrder(RedSeats):
    ordering = "guest"


class SeatDetail(DetailMixin, DetailView):
    model = Seat


class SeatUpdate(UpdateMixin, UpdateView):
    model = Seat
    form_class = modelform_factory(Seat, fields=["hall", "row", "guest"])
    template_name = "desk/any_form.html"
    success_url = "/halls/{hall}/{row}/"

    def form_valid(self, form: Any) -> HttpResponse:
        with Transaction() as write:
            self.object = form.save(write=write)
            Badge.create(code=self.object.guest, write=write)
        return redirect(self.get_success_url())


class BadgeDetail(DetailMixin, DetailView):
    model = Badge
    template_name = "desk/badge.html"


def customer_of(request: HttpRequest, email: str) -> HttpResponse:
    return HttpResponse(get_object_or_404(Customer, email=email).pk)


urlpatterns = [
    path("clubs/<club>/", CustomersOfClub.as_view()),
    path("seats/red/", RedSeats.as_view()),
    path("seats/all/", AllSeats.as_view(paginate_by=2)),
    path("seats/cursor/", PageOfSeats.as_view()),
    path("seats/of/<hall>/", Seats.as_view()),
    path("wrong/partition/", WithoutPartition.as_view()),
    path("wrong/order/", WrongOrder.as_view()),
    path("wrong/scan/", ScannedSeats.as_view()),
    path("customers/new/", CustomerCreate.as_view()),
    path("customers/<pk>/", CustomerDetail.as_view()),
    path("customers/<pk>/edit/", CustomerUpdate.as_view()),
    path("customers/<pk>/delete/", CustomerDelete.as_view()),
    path("uuids/<uuid:pk>/", CustomerDetail.as_view()),
    path("emails/<slug>/", CustomerDetail.as_view()),
    path("of/<path:email>/", customer_of),
    path("halls/<hall>/<row>/", SeatDetail.as_view()),
    path("rows/<hall>/<int:row>/", SeatDetail.as_view()),
    path("halls/<hall>/<int:row>/edit/", SeatUpdate.as_view()),
    path("rooms/<hall>/<row>/edit/", SeatUpdate.as_view()),
    path("halls/<hall>/", SeatDetail.as_view()),
    path("badges/<pk>/", BadgeDetail.as_view()),
]
