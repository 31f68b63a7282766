"""Staff sees the tasks that wait, run or have failed, and restarts or discards failed ones."""

import re
from typing import Any

import pytest

from dynamo import admin
from dynamo.admin.identity import id_of
from outbox.admin import TaskAdmin
from outbox.models import TaskItem
from outbox.test import run_tasks
from staff.admin import StaffTaskAdmin
from tests.items import put_item
from tests.outbox import functions
from tests.outbox.functions import note
from tests.pages import Page
from tests.staff.scenes import WHY, acting, let_in, logged_actions, make_staff

pytestmark = pytest.mark.usefixtures("engine")

LIST = "/admin/outbox/taskitem/"


@pytest.fixture
def client(engine: str, settings: Any) -> Any:
    settings.TASKS = {"default": {"BACKEND": "outbox.TaskBackend"}}
    return let_in(make_staff(username="grace"))


def failed() -> TaskItem:
    functions.fail_for_good.enqueue()
    run_tasks(raise_errors=False)
    [item] = TaskItem.query("failed#default")
    return item


def act(client: Any, item: TaskItem, action: str) -> Any:
    path = f"{LIST}{id_of(item)}/action/{action}/"
    page = Page(client.get(path))
    shown = {name: page.value(name) for name in page.fields}
    return client.post(path, shown | WHY, follow=True)


def test_the_list_has_failed_tasks_first_and_a_filter_for_each_shard(client: Any) -> None:
    item = failed()
    waiting = note.enqueue("x")

    text = client.get(LIST).content.decode()
    assert text.index(item.function) < text.index(note.module_path)
    assert "failed: default" in text

    only = client.get(LIST, {"partition": "failed#default"}).content.decode()
    assert item.function in only
    assert note.module_path not in only
    shown = client.get(f"{LIST}{id_of(item)}/change/")
    assert (shown.status_code, item.id in shown.content.decode()) == (200, True)
    assert "ValueError" in shown.content.decode()
    assert waiting.id not in shown.content.decode()


def test_a_search_by_an_id_finds_a_task_that_waits_has_failed_or_has_ended(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StaffTaskAdmin, "search_fields", TaskAdmin.search_fields)
    item = failed()
    ended = note.enqueue("y")
    run_tasks()
    waiting = note.enqueue("x")

    for id_, status in ((item.id, "Failed"), (ended.id, "Successful"), (waiting.id, "Ready")):
        text = client.get(LIST, {"q": id_}).content.decode()
        assert re.findall('field-status">([^<]*)', text) == [status]
    for unknown in ("unknown", "x" * 3_000):
        assert "field-status" not in client.get(LIST, {"q": unknown}).content.decode()


def test_a_damaged_task_is_named_and_the_others_are_listed(client: Any) -> None:
    note.enqueue("x")
    [item] = TaskItem.scan()
    broken = {**item.serialize(), "sort": {"S": "damaged"}, "arguments": {"N": "1"}}
    put_item(TaskItem.table(), **broken)

    text = client.get(LIST).content.decode()

    assert note.module_path in text
    assert "damaged" in text


@pytest.mark.parametrize(("action", "status"), [("restart", "READY"), ("discard", None)])
def test_a_failed_task_is_restarted_or_discarded_with_an_entry_in_the_audit_log(
    client: Any, action: str, status: str | None
) -> None:
    item = failed()

    act(client, item, action)

    left = {str(task.status) for task in TaskItem.scan()}
    assert left == ({status} if status else set())
    assert logged_actions() == [action]


@pytest.mark.parametrize("is_superuser", [True, False])
def test_in_the_admin_of_a_project_users_who_may_change_tasks_restart_and_discard_them(
    is_superuser: bool,
) -> None:
    request = acting(make_staff(is_superuser=is_superuser))

    tasks = TaskAdmin(TaskItem, admin.site)

    assert tasks.get_actions(request).keys() == ({"restart", "discard"} if is_superuser else set())
    for may in (tasks.has_add_permission, tasks.has_change_permission, tasks.has_delete_permission):
        assert may(request) is False


def test_a_task_that_waits_is_neither_restarted_nor_discarded(client: Any) -> None:
    note.enqueue("x")
    [item] = TaskItem.scan()

    for action in ("restart", "discard"):
        answer = act(client, item, action)
        assert "This task has not failed for good." in answer.content.decode()

    assert [task.sort for task in TaskItem.scan()] == [item.sort]
    assert logged_actions() == []
