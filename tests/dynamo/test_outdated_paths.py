"""Each path that takes a loaded item refuses an outdated copy, also if it writes the same value."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from rest_framework import permissions
from rest_framework.test import APIRequestFactory

from dynamo import Transaction, ensure, rest
from dynamo.forms import modelform_factory
from sequences import issue
from tests.dynamo.adminpages import Form, opened
from tests.dynamo.desk.models import Badge, Clerk, Customer
from tests.items import stored_items
from tests.numbered import Ticket, forget_all

pytestmark = pytest.mark.usefixtures("engine", "project")

STALE, DONE = "stale", "done"

#: Loads the customer, and returns the call that then writes it and says what came of it.
Path = Callable[[Client], Callable[[], str]]


def ann() -> Customer:
    return Customer.create(pk="1", email="ann@example.org", club="chess", card="A-17")


def renewed(customer: Customer) -> None:
    customer.delete()
    ann().change(club="go", is_known=True)


#: What happens in the meantime. Each leaves what the paths write, if it leaves the item.
SINCE: dict[str, Callable[[Customer], object]] = {
    "changed": lambda customer: customer.change(club="go", is_known=True),
    "deleted": Customer.delete,
    "created again": renewed,
}


def by(write: Callable[[Customer], object]) -> Path:
    """By an object of the model."""

    def loaded(_client: Client) -> Callable[[], str]:
        customer = Customer.get("1")

        def call() -> str:
            try:
                write(customer)
            except Customer.Stale:
                return STALE
            return DONE

        return call

    return loaded


def joined(write: Callable[..., object]) -> Path:
    """By an object, in a transaction that also stores another item."""

    def both(customer: Customer) -> None:
        with Transaction() as transaction:
            write(customer, write=transaction)
            Badge.create(code="B", write=transaction)

    return by(both)


def saved(customer: Customer, **options: Any) -> None:
    customer.club = "go"
    customer.save(**options)


def issued_with(customer: Customer) -> None:
    write = Transaction()
    customer.change(club="go", write=write)
    issue(Ticket(subject="move"), series="moves", also=write)


def said(text: str) -> str:
    is_refused = "after this page was opened" in text or "Perhaps it was deleted?" in text
    return STALE if is_refused else DONE


def page(path: str, **typed: str) -> Path:
    """By a page of the site or of the admin."""

    def loaded(client: Client) -> Callable[[], str]:
        form = opened(client, path) | typed
        return lambda: said(client.post(path, form, follow=True).text)

    return loaded


def action(name: str) -> Path:
    """By an action of the admin."""

    def loaded(client: Client) -> Callable[[], str]:
        asked = {"_selected_action": "1", "action": name, "index": "0"}
        shown = client.post("/admin/desk/customer/", asked)
        form = Form(shown.text).values | asked | {"_password": "s3cret"}
        return lambda: said(client.post("/admin/desk/customer/", form, follow=True).text)

    return loaded


def form(write: Callable[[Any], object]) -> Path:
    """By a form whose fields were sent as they are stored by now, in the code of a view."""
    form_class = modelform_factory(Customer, fields=["club"])

    def loaded(_client: Client) -> Callable[[], str]:
        shown = form_class(instance=Customer.get("1"))
        typed = {"version": shown["version"].value(), "club": "go"}

        def call() -> str:
            sent = form_class(typed, instance=Customer.get_or_none("1") or Customer(pk="1"))
            try:
                if sent.is_valid():
                    write(sent)
            except Customer.Stale:
                return STALE
            return STALE if sent.errors else DONE

        return call

    return loaded


def approved(sent: Any, **write: Any) -> None:
    sent.instance.notes = "approved"
    sent.save(**write)


def logged(sent: Any) -> None:
    with Transaction() as write:
        sent.save(write=write)
        Badge.create(code="B", write=write)


class CustomerSerializer(rest.ModelSerializer):
    class Meta:
        model = Customer
        fields = ("club",)


class Customers(rest.ModelViewSet):
    serializer_class = CustomerSerializer
    permission_classes = (permissions.AllowAny,)
    authentication_classes = ()

    meanwhile: Any = None

    def get_object(self) -> Any:
        """The item; `meanwhile` happens after it was read."""
        customer = super().get_object()
        if self.meanwhile:
            self.meanwhile()
        return customer


def request(method: str) -> Path:
    """By a REST request with the ETag that was read."""
    view = Customers.as_view({"put": "update", "patch": "partial_update", "delete": "destroy"})

    def loaded(_client: Client) -> Callable[[], str]:
        sent = getattr(APIRequestFactory(), method)("/", {"club": "go"}, format="json")
        sent.META["HTTP_IF_MATCH"] = f'"{Customer.get("1").version}"'

        def call() -> str:
            return STALE if view(sent, pk="1").status_code in {404, 412} else DONE

        return call

    return loaded


PATHS: dict[str, Path] = {
    "change": by(lambda customer: customer.change(club="go")),
    "change of nothing": by(lambda customer: customer.change()),
    "change under a condition": by(
        lambda c: c.change(club="go", condition=Customer.card == "A-17")
    ),
    "change that counts, too": by(lambda customer: customer.change(club="go", add={"visits": 1})),
    "change in a coroutine": by(lambda c: async_to_sync(c.achange)(club="go")),
    "change in a transaction": joined(lambda c, write: c.change(club="go", write=write)),
    "change with an item of a series": by(issued_with),
    "save": by(saved),
    "save of a named attribute": by(lambda customer: saved(customer, update_fields=["club"])),
    "save of a named attribute that was not set": by(lambda c: c.save(update_fields=["club"])),
    "save that must change": by(lambda customer: customer.save(force_update=True)),
    "save in a coroutine": by(lambda c: async_to_sync(c.asave)(update_fields=["club"])),
    "save in a transaction": joined(lambda customer, write: saved(customer, write=write)),
    "save of nothing in a transaction": joined(lambda c, write: c.save(write=write)),
    "deletion": by(Customer.delete),
    "deletion of what must exist": by(lambda customer: customer.delete(missing_ok=False)),
    "deletion in a transaction": joined(lambda customer, write: customer.delete(write=write)),
    "requirement": joined(lambda c, write: c.require(unchanged=True, write=write)),
    "ensure of another value": by(lambda customer: ensure(customer, club="bridge")),
    "ensure in a transaction": joined(lambda c, write: ensure(c, club="go", write=write)),
    "form of a view that sets more": form(approved),
    "form of a view that changes more": form(lambda sent: sent.instance.change(notes="approved")),
    "form in a transaction with others": form(logged),
    "page that edits": page("/customers/1/edit/", card="A-18"),
    "page that deletes": page("/customers/1/delete/"),
    "page of the admin that edits": page("/admin/desk/customer/1/change/", card="A-18"),
    "page of the admin that deletes": page("/admin/desk/customer/1/delete/"),
    "action of the admin": action("welcome"),
    "action that deletes": action("delete_selected"),
    "PUT": request("put"),
    "PATCH": request("patch"),
    "DELETE": request("delete"),
}

#: What is done already, and says so.
AS_WANTED = {("deletion", "deleted"), ("page that deletes", "deleted")}


@pytest.fixture
def client() -> Client:
    browser = Client()
    boss: Any = Clerk.objects.create_superuser("boss", "boss@example.org", "s3cret")
    browser.force_login(boss)
    return browser


@pytest.mark.parametrize("since", SINCE)
@pytest.mark.parametrize("path", PATHS)
def test_an_outdated_copy_writes_nothing(path: str, since: str, client: Client) -> None:
    forget_all()
    ann()
    write = PATHS[path](client)
    SINCE[since](Customer.get("1"))
    before = stored_items("tests-customers")

    assert write() == (DONE if (path, since) in AS_WANTED else STALE)

    assert stored_items("tests-customers") == before
    assert [*Badge.scan()] == [*Ticket.query("moves")] == []


@pytest.mark.parametrize("path", sorted(PATHS.keys() - {"ensure of another value"}))
def test_a_copy_that_is_as_stored_writes(path: str, client: Client) -> None:
    forget_all()
    ann()

    assert PATHS[path](client)() == DONE


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
@pytest.mark.parametrize("since", SINCE)
def test_a_request_without_an_etag_is_refused_if_the_item_changes_while_it_is_handled(
    method: str, since: str
) -> None:
    ann()
    actions = {"put": "update", "patch": "partial_update", "delete": "destroy"}
    view = Customers.as_view(actions, meanwhile=lambda: SINCE[since](Customer.get("1")))
    sent = getattr(APIRequestFactory(), method)("/", {"club": "go"}, format="json")

    answer = view(sent, pk="1")

    is_done = (method, since) == ("delete", "deleted")
    assert answer.status_code == (204 if is_done else 412)
    assert Customer.get_or_none("1") is None or Customer.get("1").club == "go"
