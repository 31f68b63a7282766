"""System checks of the admin, under Django's tag `admin`.

dynamo.E009   an option names nothing that the model has, or a sensitive attribute
dynamo.E010   one Query cannot serve a filter, a search or an order
dynamo.E011   a setting that the pages need is missing, or a table for guard items
dynamo.E013   what works in Django's ModelAdmin and not here: an option, a method, an action, a form
dynamo.E014   a model of a relational database, or a ModelAdmin of contrib.admin, is registered
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.admin.options import ModelAdmin as ContribsModelAdmin
from django.contrib.admin.sites import all_sites
from django.contrib.admin.utils import flatten_fieldsets, label_for_field
from django.core.checks import CheckMessage, Error

from dynamo.admin.changelist import ListAdmin, source_of, sources
from dynamo.admin.identity import is_sensitive
from dynamo.forms import ModelForm
from dynamo.model.references import Reference

#: Options and methods of contrib's ModelAdmin that have no effect here, by what to do instead. All
#: that this ModelAdmin lacks have none either.
NOT_ASKED = {
    "": """
        checks_class delete_confirmation_max_display filter_horizontal filter_vertical
        formfield_for_foreignkey formfield_for_manytomany get_field_queryset get_inlines
        get_prepopulated_fields get_sortable_by lookup_allowed prepopulated_fields sortable_by
        to_field_allowed
    """,
    "Each Reference has a look-up, the list of its model: set search_fields there.": """
        autocomplete_fields get_autocomplete_fields
    """,
    "Set delete_confirmation_template.": "delete_selected_confirmation_template",
    "Override get_page(request, changelist) for the list, and has_view_permission(request, obj) "
    "for the page of each item.": "get_queryset",
    "Override get_changelist_instance(request).": "get_changelist",
    "Override changeform_view or delete_view, and pass extra_context.": """
        render_change_form render_delete_form
    """,
    "Override save_model(request, obj, form, change, write).": "save_form save_related",
    "Override delete_model(request, obj, write), called for each item.": "delete_queryset",
    "Override commit(request, write, action, obj, permission=…).": """
        construct_change_message log_addition log_change log_deletion log_deletions
        response_action response_delete
    """,
    "Override response_add or response_change.": """
        response_post_save_add response_post_save_change
    """,
}

_APPS = ("django.contrib.auth", "django.contrib.contenttypes", "django.contrib.messages")
_PROCESSORS = (
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
)


def check_admin(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Check the registered models and their options. Costs no request."""
    found: list[CheckMessage] = []
    # The check remains registered after a test has installed the app for some time.
    if not apps.is_installed("dynamo.admin"):
        return found
    for site in list(all_sites):
        for model, admin_class in getattr(site, "refused", ()):
            # contrib.auth registers its groups.
            if not all(item.__module__.startswith("django.") for item in (model, admin_class)):
                found.append(
                    Error(
                        f"{model.__name__} cannot be registered by {admin_class.__name__}: "
                        "dynamo.admin has pages for models of dynamo only, and does not work next "
                        "to models of a relational database.",
                        hint="Derive the model from dynamo.Model and the other class from "
                        "ModelAdmin of `from dynamo import admin`.",
                        obj=admin_class,
                        id="dynamo.E014",
                    )
                )
        found += site.check(app_configs)
    missing = [app for app in _APPS if not apps.is_installed(app)]
    engines: Any = settings.TEMPLATES
    for engine in engines:
        if engine["BACKEND"] == "django.template.backends.django.DjangoTemplates":
            has = engine.get("OPTIONS", {}).get("context_processors", ())
            missing += [processor for processor in _PROCESSORS if processor not in has]
    found += [
        Error(
            f"dynamo.admin needs {item}.",
            hint="Add it to INSTALLED_APPS, or to the context processors of TEMPLATES.",
            id="dynamo.E011",
        )
        for item in missing
    ]
    return found


def check_model_admin(model_admin: ListAdmin) -> list[CheckMessage]:
    kinds: dict[str, Callable[[Any], Problems]] = {"E009": _shapes}
    if not any(_shapes(model_admin)):
        kinds = {"E013": _not_asked, "E009": _names, "E010": _queries, "E011": _additions}
    return [
        Error(text, hint, obj=type(model_admin), id=f"dynamo.{number}")
        for number, problems in kinds.items()
        for text, hint in problems(model_admin)
    ]


#: The text of each problem, and a hint about what to declare instead.
Problems = Iterator[tuple[str, str | None]]


#: Methods of Django's ModelAdmin that get other arguments here.
_CALLED = {
    "save_model": "self, request, obj, form, change, write",
    "delete_model": "self, request, obj, write",
    "get_search_results": "self, request, search_term, after",
}


def _takes(function: Callable[..., object], arguments: str) -> bool:
    try:
        inspect.signature(function).bind(*arguments.split(", "))
    except TypeError:
        return False
    return True


def _not_asked(model_admin: Any) -> Problems:
    """Options and methods of Django's ModelAdmin that no page of this one uses."""
    # Imported here, because the module needs the apps, which are loaded later.
    from dynamo.auth.models import AbstractUser

    own = type(model_admin)
    base = next(kind for kind in own.__mro__ if kind.__module__ == "dynamo.admin.modeladmin")
    lacking = {name for name in dir(ContribsModelAdmin) if name[0] != "_"} - {*dir(base)}
    advice: dict[str, str] = dict.fromkeys(sorted(lacking), "")
    for text, names in {**NOT_ASKED, "Declare an action.": own.not_asked}.items():
        advice |= dict.fromkeys(names.split(), text)
    for name, instead in advice.items():
        # Django 6.1 lacks some of these names, and 5.2 has others.
        default = getattr(base, name, getattr(ContribsModelAdmin, name, None))
        value = getattr(own, name, default)
        if (tuple(value) if isinstance(value, list) else value) != default:
            text = f"{name} changes nothing: the pages of dynamo.admin do not use it."
            yield text, instead or None
    form = model_admin.form
    if not (isinstance(form, type) and issubclass(form, ModelForm)):
        yield "form is not a form of this library.", "from dynamo.forms import ModelForm"
    named = [action if isinstance(action, str) else action.__name__ for action in own.actions or ()]
    known = model_admin._named_actions()
    for name in dict.fromkeys(named):
        if name not in known:
            text = f"actions names {name}, which is not a method of {own.__name__}, nor an action "
            yield f"{text}of the site.", None
        elif named.count(name) > 1:
            yield f"actions names {name} twice.", None
    for name, function in known.items():
        if not _takes(function, "self, request, obj, write"):
            hint = f"def {name}(self, request, obj, write): obj.change(…, write=write)"
            yield (
                f"The action {name} does not take an item and a transaction: dynamo.admin calls it "
                "for each selected item, not once for a queryset.",
                hint,
            )
    for name, arguments in _CALLED.items():
        if not _takes(getattr(own, name), arguments):
            text = f"{name} has other arguments than dynamo.admin gives it."
            yield text, f"def {name}({arguments}): …"
    if unknown := {*model_admin.dangerous} - {"add", "change", "delete"}:
        yield f"dangerous names {', '.join(sorted(unknown))}, not add, change or delete.", None
    # UserAdmin overrides the method, and so does a class that rejects all changes of accounts.
    is_open = own.has_change_permission is ListAdmin.has_change_permission
    if is_open and issubclass(model_admin.model, AbstractUser):
        yield (
            f"{own.__name__} would let staff make superusers of themselves.",
            "Derive it from UserAdmin of `from dynamo import admin`.",
        )


def _additions(model_admin: ListAdmin) -> Problems:
    """The reason why items cannot be added."""
    # A class that overrides the method decides itself who may add items.
    if type(model_admin).has_add_permission is ListAdmin.has_add_permission:
        try:
            model_admin.model.check_request_ids()
        except TypeError as error:
            yield str(error), None


#: Options that are lists of names.
_LISTS = """
    list_display list_display_links readonly_fields list_filter search_fields exclude raw_id_fields
"""


def _shapes(model_admin: Any) -> Problems:
    """Options of a wrong type, which the other checks could not read."""
    for option in [*_LISTS.split(), "actions", "fields", "ordering"]:
        if isinstance(value := getattr(model_admin, option), str):
            yield f"{option} must be a list, not a text.", f"{option} = [{value!r}]"
    for title, options in model_admin.fieldsets or ():
        if "fields" not in options:
            yield f"The fieldset {title!r} must have the key 'fields'.", None


def _names(model_admin: Any) -> Problems:
    """Errors of options: names that the model does not have, and sensitive attributes."""
    model = model_admin.model
    declared = getattr(model_admin.form, "declared_fields", ())
    fieldsets: Any = model_admin.fieldsets or [(None, {"fields": model_admin.fields or ()})]
    options = [*_LISTS.split(), "radio_fields"]
    named = {option: getattr(model_admin, option) or () for option in options}
    for option, names in {**named, "fields": flatten_fieldsets(fieldsets)}.items():
        for name in names:
            try:
                label_for_field(name, model, model_admin)
            except (AttributeError, TypeError):
                if option in {"fields", "exclude"} and name in declared:
                    continue
                yield (
                    f"{option} names {name}, which is not an attribute of {model.__name__}, nor a "
                    f"method of it or of {type(model_admin).__name__}.",
                    None,
                )
            attribute = model.get_attributes().get(name)
            if option == "raw_id_fields" and not isinstance(attribute, Reference):
                yield f"raw_id_fields names {name}, which is not a Reference.", None
            if option == "radio_fields" and attribute and not getattr(attribute, "choices", None):
                yield f"radio_fields names {name}, which has no choices.", None
            if is_sensitive(model, name) and option != "exclude":
                text = f"{option} names {name}, which is declared sensitive: it is never shown."
                yield text, None


def _queries(model_admin: ListAdmin) -> Problems:
    """Options that no Query can serve, because all items would have to be read."""
    model = model_admin.model
    partitions = {source.partition for source in sources(model)}
    ordering = next(iter(model_admin.ordering or ()), "")
    index = "class ByX(GlobalSecondaryIndex): {} = …Attribute(hash_key=True)"
    for name in model_admin.list_filter:
        if name not in partitions:
            yield (
                f"list_filter names {name}, which is not the partition key of the table or of an "
                "index, so a filter by it would read the whole table.",
                f"Declare an index: {index.format(name)}.",
            )
        elif ordering and source_of(model, name, ordering) is None:
            yield (
                f"ordering is {ordering}, but no index has the partition key {name} of list_filter "
                "and this sort key.",
                f"Declare it with range_key=True in an index: {index.format(name)}.",
            )
    for name in model_admin.search_fields:
        if name not in {*partitions, *model.unique_names()}:
            yield (
                f"search_fields names {name}, which is neither unique nor the partition key of the "
                "table or of an index, so a search for it would read the whole table.",
                f'Declare Unique("{name}") or an index: {index.format(name)}.',
            )
    if len(model_admin.ordering or ()) > 1:
        yield "ordering names several attributes.", "Name the sort key of the index alone."
    shown = model_admin.list_index
    index_name = shown and str(shown.Meta.index_name)
    listed = next((source for source in sources(model) if source.index_name == index_name), None)
    if shown and (listed is None or model_admin.list_partition is None):
        yield (
            "list_index must be an index of the model whose partition key is one attribute, and "
            "list_partition a value of this attribute.",
            "list_index = Member.by_club; list_partition = 'chess'",
        )
    elif ordering and shown and listed and listed.sort != ordering.removeprefix("-"):
        yield (
            f"ordering is {ordering}, which is not the sort key of list_index.",
            "Declare an index with this sort key.",
        )
    elif ordering and not shown and not model_admin.list_filter:
        yield (
            f"ordering is {ordering}, but the list is read from the table, which has no order.",
            "Name the index and its partition: list_index, list_partition.",
        )
