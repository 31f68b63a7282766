"""Each option of Django's generic views works with the mixins, or is refused in words."""

import inspect
import re
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.paginator import Paginator
from django.forms import Form as DjangosForm
from django.http import Http404
from django.template.response import TemplateResponse
from django.template.utils import InvalidTemplateEngineError
from django.test import RequestFactory
from django.utils.functional import SimpleLazyObject
from django.views.generic import CreateView, DeleteView, DetailView, ListView, UpdateView

from dynamo.forms import modelform_factory
from dynamo.views import CreateMixin, DeleteMixin, DetailMixin, ListMixin, UpdateMixin
from tests.dynamo.desk.models import Customer, Seat

pytestmark = pytest.mark.usefixtures("engine", "project")


class Show(DetailMixin, DetailView):
    model = Customer


class New(CreateMixin, CreateView):
    model = Customer
    fields = ("email", "club")


class Edit(UpdateMixin, UpdateView):
    model = Customer
    fields = ("email", "club")


class Remove(DeleteMixin, DeleteView):
    model = Customer
    success_url = "/clubs/{club}/"


class Rows(ListMixin, ListView):
    model = Seat
    partition = "red"


VIEWS: list[Any] = [Show, New, Edit, Remove, Rows]

OwnForm = modelform_factory(Customer, fields=["card"])


class OwnResponse(TemplateResponse):
    @property
    def rendered_content(self) -> Any:
        return f"own {super().rendered_content}"


def lazy() -> Any:
    """Like `request.user`."""
    return SimpleLazyObject(lambda: Customer.get("1"))


def wrong(text: str, kind: type[Exception] = ImproperlyConfigured) -> tuple[type[Exception], str]:
    return kind, text


MISSING = wrong("o", Http404)

#: A view, its options, the arguments of its URL, and a text of its page, or what it raises.
CASES: list[tuple[Any, dict[str, Any], dict[str, Any], Any]] = [
    (Rows, {"allow_empty": True, "partition": "blue"}, {}, ""),
    (Rows, {"allow_empty": False, "partition": "blue"}, {}, MISSING),
    (Show, {"content_type": "text/x"}, {"pk": "1"}, "text/x"),
    (Show, {"context_object_name": "who"}, {"pk": "1"}, "who"),
    (Rows, {"context_object_name": "seats"}, {}, "seats"),
    (Show, {"extra_context": {"messages": ["Hi"]}}, {"pk": "1"}, "<p>Hi</p>"),
    (New, {"fields": ["card"]}, {}, 'name="card"'),
    (New, {"fields": None}, {}, wrong("New needs `fields` or `form_class`")),
    (Edit, {"form_class": OwnForm, "fields": None}, {"pk": "1"}, 'name="card"'),
    (Remove, {"form_class": OwnForm}, {"pk": "1"}, 'name="card"'),
    (New, {"form_class": OwnForm}, {}, wrong("both 'fields' and 'form_class'")),
    (New, {"form_class": DjangosForm, "fields": None}, {}, wrong("ModelForm, which Form does not")),
    (
        Edit,
        {"form_class": DjangosForm, "fields": None},
        {"pk": "1"},
        wrong("ModelForm, which Form does not"),
    ),
    (
        Remove,
        {"form_class": type("Own", (DjangosForm,), {})},
        {"pk": "1"},
        wrong("which Own does not"),
    ),
    (Show, {"http_method_names": ["post"]}, {"pk": "1"}, "405"),
    (New, {"initial": {"club": "go"}}, {}, 'value="go"'),
    *((view, {"model": None}, {"pk": "1"}, wrong("needs the attribute `model`")) for view in VIEWS),
    (Edit, {"model": None, "get_object": lazy}, {}, "<h1>ann@example.org</h1>"),
    (Show, {"model": None, "get_object": lazy}, {}, "<h1>ann@example.org</h1>"),
    (Remove, {"model": None, "get_object": lazy}, {}, "Delete ann@example.org?"),
    (Rows, {"model": None, "get_queryset": list, "template_name": "desk/seat_list.html"}, {}, ""),
    *((Rows, {"ordering": item}, {}, "3 2 1") for item in ("-row", ["-row"], ("-row",))),
    (Rows, {"ordering": ["hall", "row"]}, {}, wrong("ordering must be the sort key")),
    (Rows, {"page_kwarg": "after"}, {"after": "x"}, MISSING),
    (Rows, {"page_kwarg": "query"}, {}, MISSING),
    (Rows, {"get_queryset": lambda: Seat.page("red", limit=2)}, {}, "1 2 \n"),
    (Rows, {"get_queryset": Seat.objects.all}, {}, wrong("To show a small table, return list")),
    (Rows, {"paginate_by": 2}, {}, "1 2 \n"),
    (Rows, {"paginate_by": None}, {}, wrong("paginate_by must be a number")),
    (Rows, {"paginate_orphans": 1}, {}, wrong("Rows.paginate_orphans would change nothing")),
    (Rows, {"paginator_class": type("Own", (Paginator,), {})}, {}, wrong("Rows.paginator_class")),
    (Show, {"pk_url_kwarg": "key"}, {"key": "1"}, "<h1>ann@example.org</h1>"),
    *((view, {"prefix": "x"}, {"pk": "1"}, 'name="x-') for view in (New, Edit, Remove)),
    *(
        (view, {"query_pk_and_slug": is_set, "slug_field": name}, {"pk": "1", "slug": slug}, found)
        for view in (Show, Edit, Remove)
        for is_set, name, slug, found in (
            (True, "club", "chess", "ann@example.org"),
            (True, "visits", "0", "ann@example.org"),
            (True, "club", "go", MISSING),
            (True, "visits", "x", MISSING),
            (False, "club", "go", "ann@example.org"),
        )
    ),
    *(
        (view, {"queryset": []}, {"pk": "1"}, wrong(f"{view.__name__}.queryset would change"))
        for view in (Show, Edit, Remove, Rows)
    ),
    (Show, {"response_class": OwnResponse}, {"pk": "1"}, "own <h1>"),
    (Show, {"slug_field": "email"}, {"slug": "ANN@example.org"}, "<h1>ann@example.org</h1>"),
    (Show, {"slug_field": "club"}, {"slug": "go"}, wrong("attributes of one Unique", TypeError)),
    (Show, {}, {"slug": "go"}, wrong("has no attribute slug", TypeError)),
    (Show, {"slug_field": "email", "slug_url_kwarg": "a"}, {"a": "ann@example.org"}, "<h1>ann@"),
    (Remove, {"success_url": "/x/{pk}/"}, {"pk": "1"}, "/x/1/"),
    (
        Show,
        {"template_engine": "nothing"},
        {"pk": "1"},
        wrong("nothing", InvalidTemplateEngineError),
    ),
    (Show, {"template_name": "desk/customer_form.html"}, {"pk": "1"}, "<form"),
    (Show, {"template_name_field": "notes"}, {"pk": "1"}, "Delete ann@example.org?"),
    (Show, {"template_name_suffix": "_confirm_delete"}, {"pk": "1"}, "Delete ann@example.org?"),
]


@pytest.fixture(autouse=True)
def items(engine: str, project: None) -> None:
    notes = "desk/customer_confirm_delete.html"
    Customer.create(pk="1", email="ann@example.org", club="chess", notes=notes)
    for row in (1, 2, 3):
        Seat.create(hall="red", row=row)


def open_page(view: Any, options: dict[str, Any], arguments: dict[str, Any]) -> str:
    """The page with its status, its type and the names of its context."""
    methods = {name: value for name, value in options.items() if name.startswith("get_")}
    made = {name: lambda *args, value=value: value() for name, value in methods.items()}
    others = {name: value for name, value in options.items() if name not in methods}
    own = type(view.__name__, (view,), made)
    answer = own.as_view(**others)(RequestFactory().get("/?query=x"), **arguments)
    if isinstance(answer, TemplateResponse):
        answer.render()
    names = " ".join(getattr(answer, "context_data", ()))
    return f"{answer.status_code} {answer['Content-Type']} {names} {answer.text}"


@pytest.mark.parametrize(("view", "options", "arguments", "expected"), CASES)
def test_an_option_of_a_view_works_or_is_refused_in_words(
    view: Any, options: dict[str, Any], arguments: dict[str, Any], expected: Any
) -> None:
    if isinstance(expected, str):
        assert expected in open_page(view, options, arguments)
    else:
        kind, text = expected
        with pytest.raises(kind, match=re.escape(text)):
            open_page(view, options, arguments)


def test_a_view_with_its_own_get_object_and_without_a_model_saves_and_deletes() -> None:
    for view in (Edit, Remove):
        own = type("Own", (view,), {"model": None, "get_object": lambda *args: lazy()})
        page = own.as_view(success_url="/x/{pk}/")
        form = page(RequestFactory().get("/")).context_data["form"]
        sent = {item.html_name: item.value() or "" for item in form} | {"club": "go"}
        assert page(RequestFactory().post("/", sent)).url == "/x/1/"
        assert [item.club for item in Customer.scan()] == (["go"] if view is Edit else [])


def test_every_option_of_djangos_views_is_among_these_cases() -> None:
    names = {
        name
        for view in (DetailView, CreateView, UpdateView, DeleteView, ListView)
        for name in dir(view)
        if not name.startswith("_") and not inspect.isroutine(getattr(view, name))
    }
    tried = {name for _view, options, _arguments, _expected in CASES for name in options}
    assert names - tried == {"view_is_async"}


@pytest.mark.parametrize("view", VIEWS)
def test_a_method_of_djangos_views_is_called_or_overriding_it_is_refused(view: Any) -> None:
    def recorded(name: str) -> Any:
        def method(self: Any, *args: Any, **options: Any) -> Any:
            called.add(name)
            return getattr(super(own, self), name)(*args, **options)

        return method

    called: set[str] = set()
    refused: set[str] = set()
    names = [item for item in dir(view.__bases__[1]) if item.startswith("get_")]
    for name in names:
        own: Any = type(view.__name__, (view,), {name: recorded(name)})
        own.success_url = "/x/"
        keys: list[dict[str, str]] = [{"pk": "1"}, {"slug": "ann@example.org"}]
        try:
            for key in keys:
                page = own.as_view(**({} if view is Rows else {"slug_field": "email"}))
                form = page(RequestFactory().get("/"), **key).context_data.get("form", ())
                values = {item.html_name: item.value() or "" for item in form}
                typed = {"email": f"{name}@x.org", "club": "go"} if view is New else {}
                if view in (New, Edit):
                    page(RequestFactory().post("/", values | typed), **key)
        except ImproperlyConfigured as error:
            if f"{view.__name__}.{name} would change nothing" in str(error):
                refused.add(name)
    # As in Django: a view that creates has no object before.
    without = {"get_object", "get_queryset", "get_slug_field", "get_context_object_name"}
    assert {*names} - called - refused == (without if view is New else set())
