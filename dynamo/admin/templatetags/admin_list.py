"""The rows and the pages of a list; the other tags are contrib's."""

from typing import Any

from django import template
from django.contrib.admin.templatetags import admin_list as contribs
from django.utils.html import format_html

from dynamo.admin.changelist import ChangeList
from dynamo.exceptions import DamagedItem

register = template.Library()
register.tags.update(contribs.register.tags)

_contribs: Any = contribs


@register.inclusion_tag("admin/change_list_results.html")
def result_list(cl: ChangeList) -> dict[str, object]:
    """Like contrib's tag, but with a row for each damaged item."""
    row = '<td colspan="{}" class="errors">{}</td>'
    return {
        "cl": cl,
        "result_headers": list(_contribs.result_headers(cl)),
        "num_sorted_fields": len(cl.get_ordering_field_columns()),
        "results": [
            [format_html(row, len(cl.list_display), item)]
            if isinstance(item, DamagedItem)
            else list(_contribs.items_for_result(cl, item, None))
            for item in cl.result_list
        ],
    }


@register.inclusion_tag("dynamo/admin/pagination.html")
def pagination(cl: ChangeList) -> dict[str, object]:
    return {"cl": cl}
