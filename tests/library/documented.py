"""What the docs show, as an app writes it whose types mypy checks strictly (`make lint`)."""

from datetime import date
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib.auth import login
from django.core.validators import validate_email
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.timezone import localdate, now

from dynamo import (
    BadCursor,
    BooleanAttribute,
    ConditionFailed,
    DateAttribute,
    DateTimeAttribute,
    DecimalAttribute,
    GlobalSecondaryIndex,
    IntegerAttribute,
    JSONAttribute,
    Model,
    Page,
    Reference,
    TextAttribute,
    Transaction,
    Unique,
    admin,
    casefolded,
    joined,
)
from dynamo.auth import AbstractGroup, AbstractUser
from dynamo.auth.forms import UserCreationForm
from dynamo.forms import ModelForm, modelform_factory
from dynamo.test import TestCase
from dynamo.views import CreateView, DeleteView, DetailView, ListView, UpdateView, get_object_or_404
from locks import Lock, claim_once
from sequences import (
    NumberedItem,
    Sequence,
    aissue,
    anext_value,
    check_series,
    issue,
    next_value,
    next_values,
)


class Member(Model):
    class Meta:
        table_name = "members"

    class ByClub(GlobalSecondaryIndex["Member"]):
        club = TextAttribute(hash_key=True)
        joined_on = DateTimeAttribute(range_key=True)

    email = TextAttribute("email address", max_length=254, validators=[validate_email])
    club = TextAttribute(choices=[("chess", "Chess"), ("go", "Go")])
    card = TextAttribute(null=True)
    visits = IntegerAttribute(default=0)
    joined_on = DateTimeAttribute(default=now, editable=False)

    by_club = ByClub()
    unique_email = Unique("email", normalize=casefolded, searchable=True)
    unique_card = Unique("club", "card")


class Seat(Model):
    class Meta:
        table_name = "seats"
        guard_table = "seats-guards"

    hall = TextAttribute(hash_key=True)
    row = IntegerAttribute(range_key=True)
    price = DecimalAttribute(default=Decimal(0), max_digits=6)
    state = TextAttribute(choices=[("free", "free"), ("sold", "sold")], default="free")
    is_gone = BooleanAttribute(default=False)
    notes = JSONAttribute(default=list)


class Ticket(NumberedItem):
    class Meta:
        table_name = "tickets"

    ordered_by = "opened"

    subject = TextAttribute(max_length=200)
    opened = DateAttribute(default=date.today)

    @classmethod
    def request_scope(cls, series: str) -> str:
        return "tickets"


class Group(AbstractGroup):
    class Meta:
        table_name = "groups"


class User(AbstractUser):
    class Meta:
        table_name = "users"

    group_model = Group
    full_name = TextAttribute(null=True)


class Gone(Exception):
    """The error of a refusal."""


# Calls --------------------------------------------------------------------------------------------


def calls() -> int:
    ann = Member.create(email="Ann@example.org", club="chess", request_id="form-1")
    ann.change(card="A-18", add={"visits": 1}, condition=Member.visits < 10)
    ann.card = "A-19"
    ann.card = None
    ann.save(update_fields=["card"])
    found: Member = Member.find(email="ANN@example.org")
    if (maybe := Member.get_or_none("unknown")) is not None:
        maybe.delete()
    seat: Seat = Seat.get("red", 1)
    try:
        with Transaction() as write:
            found.change(email="bob@example.org", write=write)
            Member.create(email="carl@example.org", club="go", write=write)
            seat.delete(write=write)
    except* Member.Stale as stale:
        raise stale.exceptions[0] from None
    try:
        ann.change(visits=1, condition=Member.card.exists() & (Member.visits >= 2))
    except Member.Taken as error:
        return len(error.uniques) + len(error.values)
    except ConditionFailed as error:
        return int(error.stored.visits)
    page: Page[Member] = Member.by_club.page("chess", Member.joined_on >= now(), limit=1)
    emails = [member.email for member in Member.search("email", "an", after=page.next)]
    for member in Member.batch_get([ann.pk]):
        emails.append(member.email)
    emails += [item.email for item in Member.scan(Member.card.exists())]
    newest = next(Member.by_club.query("chess", scan_index_forward=False, limit=1))
    newest.refresh()
    with Lock("nightly-report", lease_seconds=20, wait_seconds=60) as lease:
        lease.check()
        with Transaction() as write:
            lease.hold_in(write)
            write.check(ann, Member.card.exists(), otherwise=Gone())
            write.on_commit(ann, lambda stored: print(stored))
    if claim_once("report#2026-11-21"):
        next_value("seconds", 0, reset_value=60)
        next_values(100, "tickets")
    for _number in Sequence("tickets", increment=10):
        break
    for report in check_series(Ticket):
        assert report.is_sound, (report.gaps, report.duplicates, report.beyond, report.guards)
    with Transaction() as write:
        ticket = issue(Ticket(subject="Broken door"), series=str(date.today().year), also=write)
    return ticket.number + next_value("orders") + lease.fence + len(ticket.subject)


class Visit(Model):
    class Meta:
        table_name = "visits"

    member = Reference(Member)
    at = DateTimeAttribute(auto_now_add=True)
    code = TextAttribute(null=True, unique=True)


async def habits() -> list[str]:
    ann, is_new = Member.get_or_create({"club": "chess"}, email="ann@example.org")
    changed, _is_new = await Member.aupdate_or_create({"club": "go"}, email=ann.email)
    visit: Visit = Visit.objects.create(member=ann)
    found: Member = Member.objects.get(pk=visit.member)
    report = Member.create_many([Member(email="bob@example.org", club="go")])
    async with Transaction() as write:
        changed.change(club="chess", write=write)
    names = [member.club async for member in Member.scan()]
    for member, error in report.refused:
        names.append(f"{member.email}: {error}")
    return names if is_new else [found.club]


def rename(member: Member, email: str, *, write: Transaction | None = None) -> None:
    with joined(write) as write:
        member.change(email=email, write=write)


async def join(request: HttpRequest) -> JsonResponse:
    member = await Member.acreate(email=request.POST["email"], club="chess")
    await member.achange(visits=await anext_value("members"))
    async with Lock("mailing"):
        ticket = await aissue(Ticket(subject="Welcome"), series="tickets")
    return JsonResponse({"ticket": ticket.number, "who": (await Member.aget(member.pk)).email})


def users(request: HttpRequest) -> str:
    ann = User.objects.create_user("ann", "ann@example.org", "correct horse battery")
    Group.create(name="editors", permissions={"members.change_member"})
    ann.change(groups={"editors"})
    ann.end_sessions()
    named: User = User.named("ann")
    named.change(full_name="Ann")
    return named.username if named.has_perm("members.change_member") else ""


def members(request: HttpRequest, city: str) -> HttpResponse:
    try:
        page = Member.by_club.page(city, after=request.GET.get("after"), scope=request.user.pk)
    except BadCursor as error:
        raise Http404 from error
    return render(request, "members.html", {"page": page})


# Forms and views ----------------------------------------------------------------------------------


class MemberForm(ModelForm[Member]):
    class Meta:
        model = Member
        fields = ["email", "club", "card"]
        widgets = {"club": forms.Textarea}
        error_messages = {"email": {"unique": "This address belongs to another member."}}


def edit(request: HttpRequest, pk: str) -> HttpResponse:
    member = get_object_or_404(Member, pk)
    form = MemberForm(request.POST or None, instance=member)
    if request.method == "POST" and form.is_valid() and (saved := form.try_save()):
        return redirect(f"/members/{saved.pk}/")
    return render(request, "club/member_form.html", {"form": form})


class MemberList(ListView[Member]):
    model = Member
    index = Member.by_club
    ordering = "-joined_on"
    paginate_by = 20

    @property
    def partition(self) -> str:
        return self.request.GET.get("club", "")

    def get_page(self, **options: Any) -> Page[Member]:
        return super().get_page(filter_condition=Member.card.exists(), **options)

    def get_context_object_name(self, object_list: Any) -> str:
        return "members"


class MemberDetail(DetailView[Member]):
    model = Member
    slug_field = "email"

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        return super().get_context_data(club=self.object.club, **more)


class MemberCreate(CreateView[Member]):
    model = Member
    fields = ["email", "club", "card"]
    success_url = "/members/{pk}/"

    def form_valid(self, form: ModelForm[Member]) -> HttpResponse:
        form.instance.club = "chess"
        with Transaction() as write:
            self.object = form.save(write=write)
        return redirect(self.get_success_url())


class MemberUpdate(UpdateView[Member, MemberForm]):
    model = Member
    form_class = MemberForm
    success_url = "/members/{pk}/"


class MemberDelete(DeleteView[Member]):
    model = Member
    success_url = "/clubs/{club}/"

    def club(self) -> str:
        return self.object.club + self.get_object().club + self.model.create().club


class TicketCreate(CreateView):
    model = Ticket
    fields = ["subject"]
    success_url = "/tickets/{series}/{number}/"

    def form_valid(self, form: ModelForm[Ticket]) -> HttpResponse:
        form.instance.series = str(localdate().year)
        return super().form_valid(form)


class SignUp(CreateView):
    form_class = UserCreationForm

    def form_valid(self, form: UserCreationForm) -> HttpResponse:
        response = super().form_valid(form)
        login(self.request, self.object)
        return response


SeatForm = modelform_factory(Seat, fields=["hall", "row"])


# Admin --------------------------------------------------------------------------------------------


@admin.register(Member)
class MemberAdmin(admin.ModelAdmin[Member]):
    list_display = ["name_and_club", "email", "club"]
    list_filter = ["club"]
    search_fields = ["email"]
    ordering = ["email"]
    list_index = Member.by_club
    list_partition = "chess"
    fields = ["email", "club"]
    readonly_fields = ["visits"]
    actions = ["move_to_go", "block"]
    dangerous = ["delete"]
    reason_required = True

    @admin.display(description="name")
    def name_and_club(self, obj: Member) -> str:
        return f"{obj.email} {obj.club}"

    @admin.action(description="Move to the go club", permissions=["change"])
    def move_to_go(self, request: HttpRequest, obj: Member, write: Transaction) -> None:
        obj.change(club="go", write=write)

    @admin.action(dangerous=True)
    def block(self, request: HttpRequest, obj: Member, write: Transaction) -> str:
        obj.change(card=None, write=write)
        return "blocked"

    def save_model(
        self,
        request: HttpRequest,
        obj: Member,
        form: ModelForm[Member],
        change: bool,
        write: Transaction,
    ) -> None:
        super().save_model(request, obj, form, change, write)

    def delete_model(self, request: HttpRequest, obj: Member, write: Transaction) -> None:
        super().delete_model(request, obj, write)

    def has_change_permission(self, request: HttpRequest, obj: Member | None = None) -> bool:
        return super().has_change_permission(request, obj)


class Site(admin.AdminSite):
    def is_password(self, user: Any, password: str) -> bool:
        return super().is_password(user, password)

    def client_address(self, request: HttpRequest) -> str:
        return super().client_address(request)


class AnyAdmin(admin.ModelAdmin):
    def get_page(self, request: HttpRequest, changelist: Any) -> Page[Any]:
        return super().get_page(request, changelist)

    def count_note(self, request: HttpRequest) -> str:
        return ""

    def close(self, request: HttpRequest, write: Transaction) -> bool:
        return admin.site.commit(request, write, "close", "seats.change_seat", what="all")


admin.site.register(User, admin.UserAdmin)
admin.site.register([Seat, Ticket], reason_required=True)

urlpatterns = [path("admin/", admin.site.urls), path("members/", MemberList.as_view())]


class MemberTests(TestCase):
    ann: Member

    @classmethod
    def setUpTestData(cls) -> None:
        cls.ann = Member.create(email="ann@example.org", club="chess")

    def test_an_address_belongs_to_one_member(self) -> None:
        with self.max_requests(1) as sent, self.assertRaises(Member.Taken):
            Member.create(email="ANN@example.org", club="go")
        self.assertEqual(sent.write_units, 4)
