"""docs/django.md names everything of Django that works on a model, and what it says is so."""

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import pytest_django.fixtures
from django import forms, shortcuts, test
from django.contrib import admin
from django.contrib.admin.options import BaseModelAdmin
from django.contrib.admin.sites import all_sites
from django.core import serializers
from django.core.exceptions import ImproperlyConfigured
from django.core.management import find_commands, get_commands
from django.core.serializers.base import DeserializationError
from django.db import models
from django.db.models import signals
from django.db.models.manager import BaseManager
from django.db.models.options import DEFAULT_NAMES
from django.dispatch import Signal
from django.forms import models as forms_of_models
from django.test import RequestFactory
from django.views import generic
from pytest_django import plugin

from dynamo import DateAttribute, DecimalAttribute, IntegerAttribute, Model, TextAttribute
from dynamo.admin import AdminSite, ModelAdmin
from dynamo.tables.checks import check_overrides
from dynamo.test import TestCase
from dynamo.views import CreateMixin, ListMixin
from tests.commands import ROOT
from tests.dynamo.desk.models import Customer
from tests.dynamo.test_habits import Basket, Pet

pytestmark = pytest.mark.usefixtures("engine")

PAGE = ROOT / "docs" / "django.md"


@cache
def tables() -> dict[str, dict[str, tuple[str, str]]]:
    """By heading and name, what the page says of it."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        rows = found.setdefault(part.partition("\n")[0].replace("`", ""), {})
        for here, listed in re.findall(r"^\*\*([A-Z][a-z ]+)\*\*\n\n((?:- .+\n)+)", part, re.M):
            for line in listed.splitlines():
                names, _, how = line.partition("`: ")
                for name in re.findall(r"`(\w+)`", f"{names}`"):
                    assert name not in rows, f"{name} is in two lines"
                    rows[name] = (here.lower(), how)
    return found


def public(*kinds: object) -> set[str]:
    return {name for kind in kinds for name in dir(kind) if not name.startswith("_")}


def values(*kinds: type) -> set[str]:
    """The public attributes that are not methods."""
    return {
        name
        for kind in kinds
        for name in public(kind)
        if not inspect.isroutine(inspect.getattr_static(kind, name))
        and not isinstance(inspect.getattr_static(kind, name), property)
    }


def functions(module: Any) -> set[str]:
    return {name for name in public(module) if inspect.isfunction(vars(module)[name])}


def arguments() -> set[str]:
    """Those of all fields of Django's models."""
    fields = [item for item in vars(models).values() if inspect.isclass(item)]
    return {
        name
        for field in fields
        if issubclass(field, models.Field)
        for base in field.__mro__
        if base.__module__.startswith("django.db.models.") and "__init__" in vars(base)
        for name, parameter in inspect.signature(vars(base)["__init__"]).parameters.items()
        if parameter.kind not in {parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL}
    } - {"self"}


def commands() -> set[str]:
    homes = ["django.core", *(name for name in get_commands().values() if ".contrib." in str(name))]
    paths = {Path(inspect.getfile(__import__(home, fromlist=["x"]))).parent for home in homes}
    return {name for path in paths for name in find_commands(str(path / "management"))}


def fixtures() -> set[str]:
    return {
        name
        for module in (plugin, pytest_django.fixtures)
        for name, item in vars(module).items()
        if name[0] != "_" and type(item).__name__ == "FixtureFunctionDefinition"
    }


SHORTCUTS = {
    name for name in functions(shortcuts) if vars(shortcuts)[name].__module__ == shortcuts.__name__
}
GENERIC: list[type] = [
    getattr(generic, name)
    for name in generic.__all__
    if name.endswith("View") and name != "RedirectView"
]

#: By heading, what Django has.
DJANGOS: dict[str, Callable[[], Iterable[str]]] = {
    "Options of Meta": lambda: DEFAULT_NAMES,
    "Arguments of fields": arguments,
    "Members of models": lambda: public(models.Model),
    "Managers and querysets": lambda: public(models.QuerySet, BaseManager),
    "Shortcuts": lambda: SHORTCUTS,
    "Forms of models": lambda: forms_of_models.__all__,
    "Serializers": lambda: functions(serializers) - {"import_module"},
    "Commands": commands,
    "Signals of models": lambda: {
        name for name, item in vars(signals).items() if isinstance(item, Signal)
    },
    "Options of ModelAdmin": lambda: (
        values(BaseModelAdmin, admin.ModelAdmin)
        - {"media", "checks_class", "form", "paginator", "action_form", "urls"}
    ),
    "Attributes of generic views": lambda: values(*GENERIC),
    "Test cases": lambda: (
        public(test.TestCase, test.LiveServerTestCase) - public(test.SimpleTestCase)
    ),
    "Fixtures of pytest-django": fixtures,
}


@pytest.mark.parametrize("heading", DJANGOS)
def test_the_page_names_all_that_the_installed_django_has(heading: str) -> None:
    names = {*DJANGOS[heading]()}

    assert names
    assert names - tables()[heading].keys() == set()


def test_every_line_has_one_of_four_verdicts() -> None:
    verdicts = {here for rows in tables().values() for here, _how in rows.values()}
    assert verdicts == {"works", "other name", "refused", "absent"}


# What the lines say -------------------------------------------------------------------------------


def meta(option: str) -> None:
    options = {option: [] if option == "permissions" else "pets"}
    namespace = {"Meta": type("Meta", (), options), "__module__": __name__}
    type(Model)("Thing", (Model,), namespace)


def argument(option: str) -> None:
    samples: dict[str, tuple[Any, Any]] = {
        "auto_now": (DateAttribute, True),
        "auto_now_add": (DateAttribute, True),
        "blank": (TextAttribute, True),
        "choices": (TextAttribute, [("a", "A")]),
        "decimal_places": (DecimalAttribute, 2),
        "error_messages": (TextAttribute, {}),
        "max_digits": (DecimalAttribute, 9),
        "max_length": (TextAttribute, 9),
        "validators": (TextAttribute, []),
    }
    kind, value = samples.get(option, (IntegerAttribute, True))
    kind(**{option: value})


def queryset(name: str) -> None:
    found = getattr(Pet.objects, name)
    if name in {"count", "filter"}:
        found()


def form(name: str) -> None:
    calls: dict[str, Callable[[], object]] = {
        "ALL_FIELDS": lambda: forms_of_models.modelform_factory(Pet, fields="__all__"),
        "BaseInlineFormSet": lambda: forms.inlineformset_factory(Basket, Pet, fields="__all__"),
        "BaseModelFormSet": lambda: forms.modelformset_factory(Pet, fields="__all__")().forms,
        "ModelChoiceField": lambda: forms.ModelChoiceField(Pet.objects.all()).choices,
        "ModelMultipleChoiceField": lambda: forms.ModelMultipleChoiceField(Pet.objects.all()).clean(
            ["1"]
        ),
        "fields_for_model": lambda: forms.fields_for_model(Pet),
        "model_to_dict": lambda: forms.model_to_dict(Pet(name="Tom")),
    }
    calls["inlineformset_factory"] = calls["BaseInlineFormSet"]
    calls["modelformset_factory"] = calls["BaseModelFormSet"]
    calls.get(
        name, lambda: forms.modelform_factory(Pet, fields=["name"])({"name": "T"}).is_valid()
    )()


def shortcut(name: str) -> None:
    tom = Pet.create(name="Tom", chip=name)
    calls: dict[str, Callable[[], object]] = {
        "aget_object_or_404": lambda: asyncio.run(shortcuts.aget_object_or_404(Pet, chip=name)),
        "aget_list_or_404": lambda: asyncio.run(shortcuts.aget_list_or_404(Pet, chip=name)),
        "get_list_or_404": lambda: shortcuts.get_list_or_404(Pet, name="Tom"),
        "get_object_or_404": lambda: shortcuts.get_object_or_404(Pet, pk=tom.pk),
        "redirect": lambda: shortcuts.redirect("/"),
        "render": lambda: shortcuts.render,
        "resolve_url": lambda: shortcuts.resolve_url("/"),
    }
    calls[name]()


def serializer(name: str) -> None:
    text = serializers.serialize("json", [Customer(pk="1")])
    if name == "deserialize":
        next(iter(serializers.deserialize("json", text)))
    getattr(serializers, name)


def signal(name: str) -> None:
    def receiver(**_signal: object) -> None: ...

    found: list[str] = []
    for sender in (None, Model, Pet):
        getattr(signals, name).connect(receiver, sender=sender)
        try:
            reported = [item.msg + str(item.id) for item in check_overrides()]
        finally:
            getattr(signals, name).disconnect(receiver, sender=sender)
        if not reported:
            return
        found += reported
    if found:
        raise TypeError(" ".join(found))


def admin_option(name: str) -> None:
    site = AdminSite()
    all_sites.discard(site)
    if tables()["Options of ModelAdmin"][name][0] == "works":
        # `tests.dynamo.test_admin_options` tries each of them.
        assert hasattr(ModelAdmin, name)
        return
    site.register(Customer, type("Own", (ModelAdmin,), {name: object()}))
    raise TypeError(" ".join(item.msg for item in site.check(None)))


def view_option(name: str) -> None:
    if name in {"queryset", "paginate_orphans", "paginator_class"}:
        view: Any = type("Own", (ListMixin, generic.ListView), {"model": Basket, name: object()})
        view.partition = "north"
        view.as_view()(RequestFactory().get("/"))
    # `tests.dynamo.test_view_options` tries each of the others.
    assert name in public(ListMixin, CreateMixin, *GENERIC)


def command(name: str) -> None:
    # Of apps that are not installed here.
    assert name in {*get_commands(), "collectstatic", "findstatic", "clearsessions"}


def own_test_case(name: str) -> None:
    own = type("Own", (TestCase,), {name: ["pets.json"]} if name == "fixtures" else {})
    getattr(own, name, None) or getattr(own("run"), name)


TRIALS: dict[str, Callable[[str], object]] = {
    "Options of Meta": meta,
    "Arguments of fields": argument,
    "Members of models": partial(getattr, Pet),
    "Managers and querysets": queryset,
    "Shortcuts": shortcut,
    "Forms of models": form,
    "Serializers": serializer,
    "Commands": command,
    "Signals of models": signal,
    "Options of ModelAdmin": admin_option,
    "Attributes of generic views": view_option,
    "Test cases": own_test_case,
}

ERRORS = (AttributeError, DeserializationError, ImproperlyConfigured, TypeError, ValueError)


@pytest.mark.parametrize("heading", TRIALS)
def test_what_the_page_says_is_so(heading: str, request: pytest.FixtureRequest) -> None:
    if heading in {"Options of ModelAdmin", "Serializers"}:
        request.getfixturevalue("project")
    try_one = TRIALS[heading]
    for name, (here, how) in tables()[heading].items():
        if heading == "Options of ModelAdmin" and name not in public(admin.ModelAdmin):
            continue  # this version of Django does not have it
        if here == "works":
            try_one(name)
        if here == "refused":
            with pytest.raises(ERRORS) as refused:
                try_one(name)
            words = how if heading != "Signals of models" else "`dynamo.W006`"
            if heading == "Serializers":
                words = how.partition(":")[0]
            for word in re.findall(r"`([^`]+)`", words):
                assert word.split("(")[0] in str(refused.value), name


def test_what_is_absent_from_models_is_not_there() -> None:
    for name, (here, how) in tables()["Members of models"].items():
        if here == "absent":
            assert not hasattr(Pet, name)
        elif here == "other name":
            assert hasattr(Pet, re.findall(r"`(\w+)`", how)[0])
