"""The admin of the test app."""

from typing import Any

from django.http import HttpRequest

from dynamo import Transaction, admin
from tests.dynamo.desk.models import Badge, Booking, Clerk, Customer, Locker, Seat, Shift, Team


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    list_display = ("email", "club", "joined", "is_known", "shouted")
    list_filter = ("club",)
    search_fields = ("email", "region")
    ordering = ("-joined",)
    list_per_page = 5
    actions = ("welcome",)

    @admin.display(description="In capitals")
    def shouted(self, obj: Customer) -> str:
        return obj.email.upper()

    @admin.action(description="Welcome", permissions=["change"], dangerous=True)
    def welcome(self, request: HttpRequest, obj: Any, write: Transaction) -> str:
        obj.change(is_known=True, write=write)
        return "with a card"


@admin.register(Booking)
class BookingAdmin(admin.ModelAdmin):
    raw_id_fields = ("customer",)
    list_display = ("customer", "payer", "locker")


@admin.register(Seat)
class SeatAdmin(admin.ModelAdmin):
    list_display = ("hall", "row", "guest")
    list_filter = ("hall",)


@admin.register(Badge)
class BadgeAdmin(admin.ModelAdmin):
    list_display = ("code", "email")
    actions = ("stamp", "sign", "plan", "move")

    @admin.action(description="Stamp")
    def stamp(self, request: HttpRequest, obj: Any, write: Transaction) -> None:
        obj.change(email="stamped@example.org", write=write)

    @admin.action(description="Sign", permissions=["change"])
    def sign(self, request: HttpRequest, obj: Any, write: Transaction) -> None:
        obj.change(email="signed@example.org", write=write)
        user: Any = request.user
        user.change(pin=obj.code, write=write)

    @admin.action(description="Plan", permissions=["change"])
    def plan(self, request: HttpRequest, obj: Any, write: Transaction) -> None:
        obj.change(email="planned@example.org", write=write)
        pin: Any = Shift.pin
        its_user = Shift(str(request.user.pk))
        write.update(its_user, [pin.set(obj.code)], Shift.pk.exists(), otherwise=obj.DoesNotExist())

    @admin.action(permissions=["change"])
    def move(self, request: HttpRequest, obj: Any, write: Transaction) -> None:
        Clerk.get(obj.code).change(email="new@example.org", write=write)


@admin.register(Clerk)
class ClerkAdmin(admin.UserAdmin):
    actions = ("move", "move_seen")

    @admin.action(permissions=["change"])
    def move(self, request: HttpRequest, obj: Any, write: Transaction) -> None:
        obj.change(email="new@example.org", write=write)

    @admin.action(permissions=["view"])
    def move_seen(self, request: HttpRequest, obj: Any, write: Transaction) -> None:
        obj.change(email="new@example.org", write=write)


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin):
    list_display = ("name",)


@admin.register(Locker)
class LockerAdmin(admin.ModelAdmin):
    list_display = ("floor", "code", "owner", "marks", "parts", "labels")
    search_fields = ("owner", "floor")
    list_per_page = 3
    dangerous = ("delete",)
    reason_required = True
