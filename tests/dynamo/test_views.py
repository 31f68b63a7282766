"""Django's generic views, with one mixin each, end to end over HTTP."""

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import Http404
from django.test import Client, RequestFactory

from dynamo.views import ListView, get_object_or_404
from tests.commands import ROOT
from tests.dynamo.adminpages import Form, opened, submit
from tests.dynamo.desk.models import Badge, Customer, Seat
from tests.fork_server import fork_server
from tests.items import stored_items
from tests.requests import Requests
from tests.tutorial import write_files

pytestmark = pytest.mark.usefixtures("engine", "project")

ANN = {"email": "Ann@example.org", "club": "chess"}


def test_the_pages_of_a_model_create_show_edit_and_delete(
    client: Client, requests_sent: Requests
) -> None:
    created = submit(client, "/customers/new/", **ANN)
    [customer] = Customer.scan()
    page = f"/customers/{customer.pk}/"
    assert (created.status_code, created.url) == (302, page)
    requests_sent.clear()

    shown = client.get(page)
    assert "<h1>Ann@example.org</h1>" in shown.text
    assert "The customer was added." in shown.text
    edited = submit(client, f"{page}edit/", card="A-17")
    assert (edited.status_code, edited.url) == (302, page)
    deleted = submit(client, f"{page}delete/")
    assert (deleted.status_code, deleted.url) == (302, "/clubs/chess/")

    # Each form costs a read when it is shown and another one when it is sent.
    read_and_sent = ["GetItem", "GetItem", "TransactWriteItems"]
    assert requests_sent.operations == ["GetItem", *read_and_sent * 2]
    assert stored_items("tests-customers") == {}


#: A page with a form, what is typed, what happens meanwhile, and what the page says then.
REFUSED: dict[str, tuple[str, dict[str, str], Callable[[], object], list[str]]] = {
    "taken": (
        "/customers/new/",
        ANN | {"card": "A-17"},
        lambda: Customer.create(**ANN, card="A-17"),
        ["this Email address already exists.", "this Club and Card already exists."],
    ),
    "overtaken": (
        "/customers/1/edit/",
        {"club": "go"},
        lambda: Customer.get("1").change(club="bridge"),
        ["was changed after this page was opened", "Stored now: bridge"],
    ),
    "deleted": (
        "/rooms/red/5/edit/",
        {"guest": "Ann"},
        lambda: Seat.get("red", 5).delete(),
        ["was deleted after this page was opened"],
    ),
}


@pytest.mark.parametrize(("page", "typed", "act", "said"), REFUSED.values(), ids=REFUSED)
def test_a_refused_form_is_shown_again_and_what_follows_a_success_does_not_happen(
    client: Client, page: str, typed: dict[str, str], act: Callable[[], object], said: list[str]
) -> None:
    Customer.create(pk="1", email="eve@example.org", club="chess")
    Seat.create(hall="red", row=5)
    form = opened(client, page) | typed
    act()
    before = stored_items("tests-customers")

    answer = client.post(page, form)

    assert answer.status_code == 200
    assert [item for item in said if item not in answer.text] == []
    assert typed.items() <= Form(answer.text).values.items()
    assert "messages" not in client.cookies
    assert stored_items("tests-customers") == before
    if "Stored now" in answer.text:
        assert client.post(page, Form(answer.text).values).status_code == 302
        assert Customer.get("1").club == "go"


@pytest.mark.parametrize("page", ["edit", "delete"])
def test_only_a_visitor_who_was_shown_an_item_learns_that_it_was_deleted(
    page: str, client: Client
) -> None:
    customer = Customer.create(**ANN)
    path = f"/customers/{customer.pk}/{page}/"
    data = opened(client, path) | ANN
    customer.delete()

    assert client.post(path, data | {"version": "7:forged"}).status_code == 404
    assert client.post(path, ANN).status_code == 404
    assert client.get(path).status_code == 404


def test_a_page_that_deletes_and_is_sent_twice_leads_to_the_same_place_twice(
    client: Client,
) -> None:
    customer = Customer.create(**ANN)
    path = f"/customers/{customer.pk}/delete/"
    data = opened(client, path)

    answers = [client.post(path, data) for _ in range(2)]

    assert [(answer.status_code, answer.url) for answer in answers] == [(302, "/clubs/chess/")] * 2
    # Not to where somebody else wants.
    forged = client.post(path, data | {"success_url": "https://example.org"})
    assert "was deleted after this page was opened" in forged.text


def test_a_page_that_deletes_is_overtaken_too_unless_its_template_has_no_form(
    client: Client,
) -> None:
    customer = Customer.create(**ANN)
    page = f"/customers/{customer.pk}/delete/"
    data = opened(client, page)
    customer.change(club="go")

    assert "was changed after this page was opened" in client.post(page, data).text
    assert client.post(page, {"version": "forged"}).status_code == 200
    assert Customer.get(customer.pk) == customer
    # The templates of many sites have a button alone.
    assert client.post(page).status_code == 302
    assert stored_items("tests-customers") == {}


def test_an_item_is_found_by_its_whole_key_a_uuid_or_a_unique_value(client: Client) -> None:
    customer = Customer.create(**ANN)
    Seat.create(hall="red hall", row=5)

    for path in (f"/uuids/{customer.pk}/", "/emails/ANN@example.org/"):
        assert "<h1>Ann@example.org</h1>" in client.get(path).text
    assert client.get("/of/ann@EXAMPLE.org/").text == customer.pk
    for path in ("/halls/red hall/5/", "/rows/red hall/5/"):
        assert "<h1>red hall 5</h1>" in client.get(path).text
    with pytest.raises(AttributeError, match="hall and row in the URLconf"):
        client.get("/halls/red/")


def test_a_write_with_others_in_form_valid_is_shown_or_raised(client: Client) -> None:
    Seat.create(hall="red", row=5)
    path = "/halls/red/5/edit/"

    assert submit(client, path, guest="Ann").url == "/halls/red/5/"
    assert Badge.get("Ann").code == "Ann"
    Seat.get("red", 5).change(guest="Bob")
    with pytest.raises(Badge.AlreadyExists):
        submit(client, path, guest="Ann")
    assert Seat.get("red", 5).guest == "Bob"


# Lists --------------------------------------------------------------------------------------------


def test_a_list_shows_a_page_of_an_index_and_links_to_the_next(
    client: Client, requests_sent: Requests
) -> None:
    for number in range(3):
        joined = datetime(2026, 1, 1 + number, tzinfo=UTC)
        Customer.create(email=f"{number}@example.org", club="chess", joined=joined)
    Customer.create(email="go@example.org", club="go")
    requests_sent.clear()

    first = client.get("/clubs/chess/")
    assert re.findall("<p>(.*?)</p>", first.text) == ["2@example.org", "1@example.org"]
    [link] = re.findall(r'href="([^"]*)"', first.text)
    second = client.get(f"/clubs/chess/{unescape(link)}")
    assert re.findall("<p>(.*?)</p>", second.text) == ["0@example.org"]
    assert "href" not in second.text
    assert requests_sent.operations == ["Query", "Query"]
    assert "none" in client.get("/clubs/bridge/").text
    # A cursor that was changed, or belongs to another list.
    for path in (f"/clubs/go/{unescape(link)}", "/clubs/chess/?page=2"):
        assert client.get(path).status_code == 404


def test_a_list_shows_a_partition_of_the_table_or_what_get_queryset_returns(client: Client) -> None:
    for row in (3, 1, 2):
        Seat.create(hall="red", row=row)

    for path in ("/seats/red/", "/seats/of/red/", "/seats/cursor/"):
        assert client.get(path).text.split() == ["1", "2", "3"]
    assert client.get("/seats/of/blue/").status_code == 404
    assert client.get("/seats/all/?page=2").text.split() == ["3"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/wrong/partition/", "set `partition`"),
        ("/wrong/order/", "must be the sort key"),
        ("/wrong/scan/", r"ListedSeats.get_queryset must return Seat.page\(…\)"),
    ],
)
def test_a_list_that_dynamodb_cannot_serve_says_what_to_declare(
    path: str, message: str, client: Client
) -> None:
    with pytest.raises(ImproperlyConfigured, match=message):
        client.get(path)


@pytest.mark.parametrize("name", ["all", "filter", "order_by", "exclude", "select_related"])
def test_a_page_has_nothing_of_a_queryset_and_says_what_to_call(name: str) -> None:
    class ListedOf(ListView[Any]):
        model = Seat
        partition = "red"

        def get_queryset(self) -> Any:
            return getattr(super().get_queryset(), name)()

    with pytest.raises(AttributeError, match=rf"no '{name}'.* conditions .* to page\(…\)"):
        ListedOf.as_view()(RequestFactory().get("/"))


# What is not found --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/customers/nobody/",
        "/customers/email%23ann@example.org/",
        "/customers/email%23ann@example.org/edit/",
        "/customers/email%23ann@example.org/delete/",
        f"/customers/{'x' * 2049}/",
        "/emails/nobody@example.org/",
        "/emails/%20/",
        f"/of/{'x' * 3000}/",
        "/badges/email%23ann@example.org/",
        "/halls/red/6/",
        "/halls/red/six/",
        "/halls/red/nan/",
        "/rooms/red/six/edit/",
        f"/halls/red/{'9' * 5000}/",
        f"/rows/red/{'9' * 50}/",
    ],
)
def test_a_page_of_what_is_not_an_item_is_404(path: str, client: Client) -> None:
    Customer.create(**ANN)
    Badge.create(code="A", email="ann@example.org")

    assert client.get(path).status_code == 404
    assert client.post(path).status_code in {404, 405}


def test_get_object_or_404_takes_keys_and_unique_values() -> None:
    customer = Customer.create(**ANN, card="A-17")
    seat = Seat.create(hall="red", row=5)

    assert get_object_or_404(Customer, customer.pk) == customer
    assert get_object_or_404(Customer, pk=customer.pk) == customer
    assert get_object_or_404(Customer, club="chess", card="A-17") == customer
    assert get_object_or_404(Seat, "red", "5") == get_object_or_404(Seat, hall="red", row=5) == seat
    for missing in ({"pk": None}, {"pk": ""}, {"email": None}, {"email": "nobody"}):
        with pytest.raises(Http404, match="No customer found"):
            get_object_or_404(Customer, **missing)
    for wrong in ({"card": "A-17"}, {"name": "Ann"}):
        with pytest.raises(TypeError):
            get_object_or_404(Customer, **wrong)
    with pytest.raises(TypeError, match="The key of Customer is pk"):
        get_object_or_404(Customer, customer.pk, "chess")


# The example of the docs --------------------------------------------------------------------------

#: What the page leaves to its reader: the other templates, models and URLs.
LEFT_OUT = {
    "club/templates/club/member_confirm_delete.html": "{{ form }}",
    "club/templates/club/member_detail.html": "{{ member.email }}",
    "desk/templates/desk/ticket_form.html": "{{ form }}",
    "desk/templates/desk/ticket_detail.html": "{{ ticket.series }}-{{ ticket.number }}",
    "desk/templates/desk/ticket_list.html": "{{ ticket_list|length }} tickets",
    "club/search.py": """
from club.models import Member
from club.views import MemberList


class MemberSearch(MemberList):
    @property
    def partition(self):  # /members/?club=chess
        return self.request.GET.get("club", "")

    def get_page(self, **options):
        return super().get_page(filter_condition=Member.card.exists(), **options)
""",
    "club/urls.py": """
from django.urls import path

from club import views
from club.models import Member
from dynamo.views import DetailView

urlpatterns = [
    path("clubs/<club>/", views.MemberList.as_view()),
    path("members/new/", views.MemberCreate.as_view()),
    path("members/<pk>/", DetailView.as_view(model=Member)),
    path("members/<pk>/edit/", views.MemberUpdate.as_view()),
    path("members/<pk>/delete/", views.MemberDelete.as_view()),
]
""",
    "desk/models.py": """
from dynamo import TextAttribute
from sequences import NumberedItem


class Ticket(NumberedItem):
    class Meta:
        table_name = "tickets"

    subject = TextAttribute(max_length=200)

    @classmethod
    def request_scope(cls, series):
        return "tickets"
""",
    "desk/views.py": """
from django.utils.timezone import localdate

from desk.models import Ticket
from dynamo.views import CreateView


class TicketCreate(CreateView):
    model = Ticket
    fields = ["subject"]
    success_url = "/tickets/{series}/{number}/"

    def form_valid(self, form):
        form.instance.series = str(localdate().year)
        return super().form_valid(form)
""",
    "desk/urls.py": """
from django.urls import path

from desk.models import Ticket
from desk.views import TicketCreate
from dynamo.views import DetailView, ListView

urlpatterns = [
    path("tickets/new/", TicketCreate.as_view()),
    path("tickets/<series>/", ListView.as_view(model=Ticket)),
    path("tickets/<series>/<int:number>/", DetailView.as_view(model=Ticket)),
]
""",
    "club/entries.py": """
from dynamo import Model, TextAttribute


class Entry(Model):
    class Meta:
        table_name = "entries"

    text = TextAttribute()
""",
    "urls.py": """
from django.urls import include, path

from club.examples import MemberCreateLogged, edit
from club.search import MemberSearch

urlpatterns = [
    path("logged/", MemberCreateLogged.as_view()),
    path("members/", MemberSearch.as_view(paginate_by=1)),
    path("edit/<pk>/", edit),
    path("", include("club.urls")),
    path("", include("desk.urls")),
]
""",
}
PROJECT = """
import django
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.test.utils import setup_test_environment

settings.configure(
    SECRET_KEY="of-this-test",
    ALLOWED_HOSTS=["testserver"],
    INSTALLED_APPS=["dynamo", "sequences", "club", "desk"],
    AWS_REGION="us-east-1",
    DYNAMODB_TABLE_PREFIX="docs-",
    LANGUAGE_CODE="ja",
    ROOT_URLCONF="urls",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
        }
    ],
)
django.setup()

from club.entries import Entry
from club.examples import MemberForm
from club.models import Member

call_command("createtables", verbosity=0)
setup_test_environment()
client = Client()


def submit(path, **typed):
    fields = {each.html_name: each.value() or "" for each in client.get(path).context["form"]}
    return client.post(path, fields | typed)


values = {"email": "ann@example.org", "club": "chess"}
page = submit("/members/new/", **values).url
ann = Member.find(email="ann@example.org")
assert client.get(page).text == "ann@example.org"
assert page in client.get("/clubs/chess/").text
form = MemberForm(MemberForm().initial | values)
assert not form.try_save()
assert form.errors == {"email": ["This address belongs to another member."]}
refused = submit(f"{page}edit/", version="").text
assert "非表示の項目version" in refused and submit(f"{page}edit/", card="A-17").url == page
assert submit(f"/edit/{ann.pk}/", club="go").url == "/"

for number in range(2):
    Member.create(email=f"{number}@example.org", club="dart", card=str(number))
found = client.get("/members/", {"club": "dart", "shown": "all"})
assert "?club=dart&amp;shown=all&amp;page=" in found.text
after = found.context["page_obj"].next
[last] = client.get("/members/", {"club": "dart", "page": after}).context["object_list"]
assert last.email == "0@example.org"
assert "<p>" not in client.get("/members/").text

assert submit(f"{page}delete/").url == "/clubs/go/" and not Member.get_or_none(ann.pk)
exec(open("test.py").read())
Member.find(email="ann@example.org").delete()
submit("/logged/", **values)
assert Member.find(email="ann@example.org") and len(list(Entry.scan())) == 1

page = submit("/tickets/new/", subject="Broken door").url
year = page.split("/")[2]
assert client.get(page).text == f"{year}-1"
assert client.get(f"/tickets/{year}/").text == "1 tickets"
"""


def test_the_example_of_the_docs_works_with_only_the_library(tmp_path: Path) -> None:
    text = (ROOT / "docs/forms.md").read_text(encoding="utf-8")
    blocks = re.findall(
        r"^(?:`([\w/.]+)`\n\n)?```(?:python|html)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    )
    files = {name: block for name, block in blocks if name} | LEFT_OUT
    files["test.py"], *examples = [block for name, block in blocks if not name]
    imports = "from club.entries import Entry\nfrom club.views import MemberCreate\n"
    files["club/examples.py"] = imports + "".join(examples)
    write_files(files | {"project.py": PROJECT}, tmp_path)

    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = fork_server.run("project.py", env=environment, folder=tmp_path)

    assert ended.returncode == 0, ended.stderr
