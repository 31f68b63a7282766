"""Each option and method of Django's ModelAdmin works in `dynamo.admin`, or `check` reports it."""

import inspect
import re
from contextlib import suppress
from typing import Any, cast

import pytest
from django import forms
from django.contrib import admin as contrib
from django.contrib.admin import HORIZONTAL, ModelAdmin as ContribsModelAdmin, site as default_site
from django.contrib.admin.helpers import ActionForm
from django.contrib.admin.sites import all_sites
from django.contrib.admin.utils import quote
from django.test import Client, override_settings
from django.urls import path, reverse

import dynamo.admin
from dynamo import TextAttribute
from dynamo.admin import AdminSite, ModelAdmin, UserAdmin, apps as admin_apps
from dynamo.forms import ModelForm, modelform_factory
from sequences import NumberedItem, issue
from tests.dynamo.adminpages import submit
from tests.dynamo.desk.models import Clerk, Customer
from tests.numbered import Ticket, new_series, stored_numbers

pytestmark = pytest.mark.usefixtures("engine")

LIST, ADD, ANN = (
    "/admin/desk/customer/",
    "/admin/desk/customer/add/",
    "/admin/desk/customer/1/change/",
)
DELETION, HISTORY = "/admin/desk/customer/1/delete/", "/admin/desk/customer/1/history/"
OWN = "desk/badge.html"


class OwnActionForm(ActionForm):
    why = forms.CharField()


class OwnForm(ModelForm[Customer]):
    extra = forms.CharField(required=False)


#: By option of Django's ModelAdmin: a value, a page, and a text that only this value brings.
SHOWN: dict[str, tuple[Any, str, str]] = {
    "action_form": (OwnActionForm, LIST, 'name="why"'),
    "actions": (None, LIST, ""),
    "actions_on_bottom": (True, LIST, 'name="index" value="1"'),
    "actions_on_top": (False, LIST, ""),
    "actions_selection_counter": (False, LIST, ""),
    "add_form_template": (OWN, ADD, ""),
    "change_form_template": (OWN, ANN, ""),
    "change_list_template": (OWN, LIST, ""),
    "delete_confirmation_template": (OWN, DELETION, ""),
    "exclude": (["club"], ANN, ""),
    "fields": ([("email", "club")], ANN, "fieldBox"),
    "fieldsets": ([("Of ann", {"fields": ["email"]})], ANN, "Of ann"),
    "form": (OwnForm, ANN, 'name="extra"'),
    "formfield_overrides": ({TextAttribute: {"help_text": "Of texts"}}, ANN, "Of texts"),
    "list_display": (["visits"], LIST, "Visits"),
    "list_display_links": (["club"], LIST, 'change/">chess</a>'),
    "list_filter": (["region"], LIST, "By region"),
    "list_per_page": (1, LIST, 'rel="next"'),
    "object_history_template": (OWN, HISTORY, ""),
    "ordering": (["-joined"], f"{LIST}?club=chess", "descending"),
    "radio_fields": ({"plan": HORIZONTAL}, ANN, 'type="radio"'),
    "readonly_fields": (["club"], ANN, '<div class="readonly">chess</div>'),
    "save_on_top": (True, ANN, ""),
    "search_fields": (["club"], f"{LIST}?q=chess", "ann@example.org"),
    "search_help_text": ("By what?", LIST, "By what?"),
    "view_on_site": (lambda self, obj: f"/of/{obj.pk}/", ANN, 'href="/of/1/"'),
}
#: Each `Reference` has a look-up. Lists are never counted, as if the other were False.
ALWAYS_SO = {"raw_id_fields", "show_full_result_count"}


@pytest.fixture
def customer_admin(project: None) -> Any:
    """That of the test app, whose module is imported with the app."""
    return type(default_site._registry[cast(Any, Customer)])


@pytest.fixture
def client(project: None) -> Client:
    Customer.create(pk="1", email="ann@example.org", club="chess")
    Customer.create(pk="2", email="bob@example.org", club="chess")
    browser = Client()
    boss: Any = Clerk.objects.create_superuser("boss", "boss@example.org", "correct horse battery")
    browser.force_login(boss)
    return browser


def pages_of(site: AdminSite) -> Any:
    """The pages of `site` in place of those of the test app."""
    urls = type("urls", (), {"urlpatterns": [path("admin/", site.urls)]})
    return override_settings(ROOT_URLCONF=urls)


def plain(page: str) -> str:
    """The page without what differs each time."""
    return re.sub(r'value="[^"]*:[^"]*"', "", page)


@pytest.mark.parametrize("option", SHOWN)
def test_an_option_changes_the_page_as_it_says(
    option: str, client: Client, customer_admin: Any
) -> None:
    value, page, text = SHOWN[option]
    shown = []
    for options in ({"ordering": ()}, {"ordering": (), option: value}):
        own = AdminSite()
        all_sites.discard(own)
        own.register(Customer, customer_admin, **options)
        assert own.check(None) == []
        with pages_of(own):
            answer = client.get(page)
        assert answer.status_code == 200
        shown.append(plain(answer.text))

    assert shown[0] != shown[1]
    assert text in shown[1]
    assert not text or text not in shown[0]


def test_the_menu_below_the_list_works_next_to_the_one_above_it(
    client: Client, customer_admin: Any, site: AdminSite
) -> None:
    site.register(Customer, customer_admin, actions_on_bottom=True)
    for index in ("0", "1"):
        menus = ["welcome", ""] if index == "0" else ["", "welcome"]
        with pages_of(site):
            chosen = {"_selected_action": "1", "action": menus, "index": index}
            assert "Are you sure?" in client.post(LIST, chosen).text
            unknown = client.post(LIST, chosen | {"action": "nothing"}, follow=True)
        assert "No action selected." in unknown.text


def test_numbered_items_are_changed_and_neither_added_nor_deleted(
    client: Client, site: AdminSite
) -> None:
    class Receipt(NumberedItem):
        __module__ = Customer.__module__  # its app

        class Meta:
            table_name = Ticket.Meta.table_name

        subject = TextAttribute()

    site.register(Receipt)  # type: ignore[arg-type]  # contrib's stubs want its models
    receipt = issue(Receipt(subject="Broken door"), series=new_series())

    with pages_of(site):
        key = [f"{quote(receipt.series)},1"]
        urls = {
            name: reverse(f"admin:desk_receipt_{name}", args=args)
            for name, args in (("changelist", []), ("add", []), ("change", key), ("delete", key))
        }
        shown = [client.get(urls[name]) for name in ("changelist", "change")]
        refused = [client.post(urls[name]) for name in ("add", "delete")]

    assert [page.status_code for page in shown + refused] == [200, 200, 403, 403]
    assert not any(link in page.text for page in shown for link in ("addlink", "deletelink"))
    assert stored_numbers(Receipt, receipt.series) == [1]


PUBLIC = [item for item in dir(ContribsModelAdmin) if not item.startswith("_")]
METHODS = [item for item in PUBLIC if inspect.isroutine(getattr(ContribsModelAdmin, item))]


def not_asked(found: list[Any]) -> set[str]:
    return {item.msg.split()[0] for item in found if "changes nothing" in item.msg}


def test_every_option_and_method_of_djangos_model_admin_works_or_is_reported(
    client: Client, customer_admin: Any, site: AdminSite
) -> None:
    called: set[str] = set()

    def recorded(name: str) -> Any:
        def method(self: Any, *args: Any, **options: Any) -> Any:
            called.add(name)
            return getattr(super(own, self), name)(*args, **options)

        return method

    own: Any = type("Own", (customer_admin,), {method: recorded(method) for method in METHODS})
    site.register(Customer, own)
    found = not_asked(site.check(None))
    with pages_of(site):
        assert client.get("/admin/").status_code == 200
        assert submit(client, ADD, email="eve@example.org", club="chess").status_code == 302
        assert submit(client, ANN, club="go").status_code == 302
        for page in (LIST, f"{LIST}?q=ann", f"{LIST}?club=chess", HISTORY):
            assert client.get(page).status_code == 200
        chosen = {"_selected_action": "2", "action": "welcome"}
        assert client.post(LIST, chosen).status_code == 200
        assert submit(client, DELETION).status_code == 302
    others: dict[str, Any] = dict.fromkeys({*PUBLIC} - {*METHODS} - {"media", "urls"}, "own")
    reported: set[str] = set()
    for name, value in others.items():
        made: Any = type("Own", (ModelAdmin,), {name: value})
        with suppress(Exception):
            reported |= not_asked(made(Customer, site).check())

    assert {*METHODS} - found == called & {*METHODS}
    assert {*others} - reported == {*SHOWN} | ALWAYS_SO


def on_query(model_admin: Any, request: Any, queryset: Any) -> None:
    """As Django's actions."""


class DjangosForm(forms.ModelForm):  # type: ignore[type-arg]  # not at run time
    pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"list_editable": ["club"]}, "list_editable changes nothing"),
        ({"list_editable": []}, ""),
        ({"raw_id_fields": ("club",)}, "raw_id_fields names club, which is not a Reference."),
        ({"autocomplete_fields": ("club",)}, "autocomplete_fields changes nothing"),
        ({"get_queryset": lambda self, request: []}, "get_queryset changes nothing"),
        ({"form": DjangosForm}, "form is not a form of this library."),
        ({"form": modelform_factory}, "form is not a form of this library."),
        ({"actions": ["nothing"]}, "actions names nothing, which is not a method of"),
        ({"actions": [on_query]}, "The action on_query does not take an item and a transaction"),
        ({"actions": ["on_query"], "on_query": on_query}, "The action on_query does not take"),
        ({"actions": ["welcome", "welcome"]}, "actions names welcome twice."),
        ({"actions": ["delete_selected"]}, ""),
        (
            {"save_model": lambda self, request, obj, form, change: obj.save()},
            "save_model has other arguments than dynamo.admin gives it.",
        ),
        (
            {"delete_model": lambda self, request, obj: obj.delete()},
            "delete_model has other arguments than dynamo.admin gives it.",
        ),
        ({"get_search_results": lambda self, request, found, term: found}, ""),
        (
            {"get_search_results": lambda self, request, term: []},
            "get_search_results has other arguments than dynamo.admin gives it.",
        ),
        ({"save_model": lambda self, *args: None}, ""),
        ({"dangerous": ["change", "remove"]}, "dangerous names remove, not add, change or delete."),
        ({"exclude": ["emial"]}, "exclude names emial, which is not an attribute"),
        ({"exclude": ["extra", "joined"], "form": OwnForm}, ""),
        ({"radio_fields": {"plna": HORIZONTAL}}, "radio_fields names plna, which is not"),
        ({"list_display_links": None}, ""),
    ],
)
def test_check_reports_what_works_only_in_django_and_wrong_names(
    options: dict[str, Any], said: str, customer_admin: Any, site: AdminSite
) -> None:
    site.register(Customer, customer_admin, **options)

    found = [item.msg for item in site.check(None)]

    assert [item.startswith(said) for item in found] == ([True] if said else [])


def test_check_refuses_an_admin_of_users_that_would_let_them_grant_rights(site: AdminSite) -> None:
    site.register(Clerk, ModelAdmin)
    assert "would let staff make superusers" in site.check(None)[0].msg
    site.unregister([Clerk])  # type: ignore[arg-type]  # contrib's stubs want its models
    site.register(Clerk, UserAdmin)
    assert site.check(None) == []


def test_contribs_decorator_of_an_admin_of_ours_names_the_right_import(
    project: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_admin_module(*_args: object, **_options: object) -> None:
        contrib.register(Customer)(type("CustomerAdmin", (ModelAdmin,), {}))

    monkeypatch.setattr(admin_apps, "autodiscover_modules", read_admin_module)

    with pytest.raises(ValueError, match="must subclass ModelAdmin") as refused:
        admin_apps.AdminConfig("dynamo.admin", dynamo.admin).ready()
    assert refused.value.__notes__ == [
        "For models of the library, write `from dynamo import admin`."
    ]
