"""The rows and the pages of a list; the other tags are contrib's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from django import forms, template
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.templatetags.admin_list import register as contribs
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as djangos_text

from dynamo.admin.changelist import ChangeList
from dynamo.admin.keys import id_of
from dynamo.admin.values import DamagedRow, name_of, shown

register = template.Library()
register.tags.update(contribs.tags)


@register.inclusion_tag("admin/change_list_results.html")
def result_list(cl: ChangeList) -> dict[str, Any]:
    headers = [
        {**each, "class_attrib": format_html(' class="{}"', _classes(each))}
        for each in cl.headers()
    ]
    if cl.show_admin_actions:
        box = format_html(
            '<input type="checkbox" id="action-toggle" aria-label="{}">',
            djangos_text("Select all objects on this page for an action"),
        )
        attributes = format_html(' class="{}"', "action-checkbox-column")
        headers.insert(0, {"text": box, "class_attrib": attributes, "sortable": False})
    rows = [list(cells(cl, each)) for each in cl.result_list]
    return {"cl": cl, "result_headers": headers, "num_sorted_fields": 0, "results": rows}


def _classes(header: dict[str, Any]) -> str:
    direction = "ascending" if header["ascending"] else "descending"
    order = f"sortable sorted {direction} " if header["sortable"] else ""
    return f"{order}column-{header['name']}"


def cells(cl: ChangeList, item: Any) -> Iterator[str]:
    if isinstance(item, DamagedRow):
        columns = len(cl.list_display) + cl.show_admin_actions
        yield format_html('<td colspan="{}" class="errors">{}</td>', columns, item)
        return
    key = id_of(item)
    if cl.show_admin_actions:
        label = djangos_text("Select this object for an action - {}").format(name_of(item))
        box = forms.CheckboxInput(
            {"class": "action-select", "aria-label": label}, check_test=lambda value: False
        )
        name = ACTION_CHECKBOX_NAME
        yield format_html('<td class="action-checkbox">{}</td>', box.render(name, key))
    links = cl.model_admin.list_display_links
    linked = links or cl.list_display[:1]
    for place, name in enumerate(cl.list_display):
        text = shown(name, item, cl.model_admin)
        if links is not None and name in linked:
            url = reverse(
                f"admin:{cl.opts.app_label}_{cl.opts.model_name}_change",
                args=[key],
                current_app=cl.model_admin.admin_site.name,
            )
            text = format_html('<a href="{}">{}</a>', url, text)
        tag = "th" if place == 0 else "td"
        css = name if isinstance(name, str) else name.__name__
        if isinstance(getattr(item, css, None), date):
            css += " nowrap"
        yield format_html('<{} class="field-{}">{}</{}>', tag, css, text, tag)


@register.inclusion_tag("dynamo/admin/pagination.html")
def pagination(cl: ChangeList) -> dict[str, Any]:
    return {"cl": cl}
