"""Tasks in the admin (`dynamo.admin`): those that wait, run or have failed for good."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice

from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy as _

from dynamo import Page, Transaction, admin
from dynamo.admin.changelist import ChangeList, Filter
from dynamo.admin.identity import as_row
from outbox.backend import all_queues, partitions
from outbox.exceptions import NotFailed
from outbox.framework import TaskResultDoesNotExist
from outbox.models import FAILED, RECORD, TaskItem
from outbox.steps import discard, find, restart
from outbox.worker import stored_tasks

#: Columns or actions, as names or functions.
Names = Sequence[str | Callable[..., object]]


@admin.register(TaskItem)
class TaskAdmin(admin.ModelAdmin):
    """Tasks are not edited here. Those that have failed can be restarted or discarded.

    The list shows failed tasks first. A search by an id finds any task, even if it has ended.
    """

    list_display: Names = ("function", "queue", "status", "enqueued_at", "failures")
    list_filter: Sequence[str] = ("partition",)
    search_fields: Sequence[str] = ("partition",)
    search_help_text = _("By the id of a task.")
    fields: Sequence[str | Sequence[str]] = (
        *("id", "function", "arguments", "queue", "priority", "status", "enqueued_at", "run_after"),
        *("started_at", "finished_at", "failures", "workers", "errors", "return_value"),
    )
    actions: Names = ("restart", "discard")

    def has_act_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Users who may change tasks may restart and discard them."""
        return super().has_change_permission(request, obj)

    def _never(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    has_add_permission = has_change_permission = has_delete_permission = _never

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """The list has a link for each shard, and one for failed tasks."""
        changelist = super().get_changelist_instance(request)
        for spec in changelist.filter_specs:
            failed = [(f"{FAILED}#{name}", gettext("failed: %s") % name) for name in all_queues()]
            spec.pairs = [*failed, *((name, name) for name in partitions())]
            spec.template = Filter.template
        return changelist

    def get_page(self, request: HttpRequest, changelist: ChangeList) -> Page[TaskItem]:
        """Without a filter, the first tasks of all partitions, with one request for each."""
        if changelist.query or changelist.source is not None:
            return super().get_page(request, changelist)
        return Page([*islice(stored_tasks(damaged=as_row), self.list_per_page)], None)

    def get_search_results(
        self, request: HttpRequest, search_term: str, after: str | None = None
    ) -> Page[TaskItem]:
        """The task with this id. Costs as much as `get_result`."""
        with suppress(TaskResultDoesNotExist, ValueError):
            return Page([find(search_term)], None)
        return Page([], None)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: None = None
    ) -> TaskItem | None:
        """The task, with the errors from its record."""
        item = super().get_object(request, object_id, from_field)
        if item is not None and (record := TaskItem.get_or_none(item.id, RECORD)):
            item.errors = record.errors
        return item

    @admin.action(description=_("Start again"), permissions=["act"])
    def restart(self, request: HttpRequest, obj: TaskItem, write: Transaction) -> None:
        """Let a task that has failed for good run again."""
        _checked(restart, obj, write)

    @admin.action(description=_("Discard"), permissions=["act"])
    def discard(self, request: HttpRequest, obj: TaskItem, write: Transaction) -> None:
        """Delete a task that has failed for good."""
        _checked(discard, obj, write)


def _checked(operation: Callable[..., None], obj: TaskItem, write: Transaction) -> None:
    try:
        operation(obj.id, write=write)
    except NotFailed as error:
        raise ValidationError(_("This task has not failed for good.")) from error
