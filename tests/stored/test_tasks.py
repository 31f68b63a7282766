"""Tasks of released versions can be read, run and started again."""

from django.core import mail

from accounts.emails import mails
from invoices.tasks import delete_address_book
from outbox.framework import task_backends
from outbox.steps import restart
from tests.registration import RunTasks
from tests.stored.releases import Stored, each_release

pytestmark = each_release


def test_tasks_that_wait_run_and_those_that_ended_are_read(
    stored: Stored, worker: RunTasks
) -> None:
    ids = stored.about["tasks"]

    def statuses() -> dict[str, str]:
        backend = task_backends["default"]
        return {name: str(backend.get_result(id_).status) for name, id_ in ids.items()}

    before = {"done": "SUCCESSFUL", "failed": "FAILED", "waiting": "READY", "once": "READY"}
    assert statuses() == before
    # Its request id is in use.
    again = delete_address_book.using(request_id="1").enqueue(stored.pk("Ann.Müller"))
    assert again.id == ids["once"]

    ran = worker()

    assert {attempt.id for attempt in ran} >= {ids["waiting"], ids["once"]}
    assert [message.to for message in mail.outbox] == [["Ann@xn--bcher-kva.example"]]
    assert statuses() == before | {"waiting": "SUCCESSFUL", "once": "SUCCESSFUL"}


def test_a_stored_traceback_names_no_path_of_a_machine(stored: Stored) -> None:
    [failed] = [item for item in stored.items("tasks") if "errors" in item]

    assert "File " in failed["errors"]["S"]
    assert 'File \\"/' not in failed["errors"]["S"]


def test_a_task_that_has_failed_is_started_again(stored: Stored, worker: RunTasks) -> None:
    failed = stored.about["tasks"]["failed"]

    restart(failed)

    assert mails.confirm.get_result(failed).status == "READY"
    assert failed in {attempt.id for attempt in worker()}
