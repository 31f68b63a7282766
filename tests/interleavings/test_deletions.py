"""What belongs to an account goes with it, whichever process is killed at whichever request."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pytest_django import Settings

from accounts.exceptions import StaleUser
from accounts.models import User
from accounts.services import delete, edit_profile
from dynamo import DynamoError
from invoices.document.invoice import Customer
from invoices.models import CustomerItem, SellerProfile
from invoices.store.customers import add_customer
from locks import Lease
from outbox import steps, worker
from outbox.models import RECORD, TaskItem
from sequences.models import Counter
from tests.emptying import empty
from tests.factories import make_user
from tests.interleavings.conftest import Explore
from tests.interleavings.scheduler import Scenario

TABLES = [model.table() for model in (User, CustomerItem, SellerProfile, Counter, TaskItem)]


@pytest.fixture(autouse=True)
def _one_shard(settings: Settings) -> None:
    options = {"SHARDS": 1, "RETRY": {"*": {"attempts": 9, "delay": 0}}}
    settings.TASKS = {"default": {"BACKEND": "outbox.TaskBackend", "OPTIONS": options}}


def delete_account(user: User) -> None:
    delete(User.get(user.pk))


def change_account(user: User) -> None:
    edit_profile(User.get(user.pk), full_name="Ann")


def add_another(user: User) -> None:
    add_customer(user.pk, Customer("Carol"), request_id="3")


def work(number: int, _user: User) -> None:
    """Run what waits, and what another worker has left."""
    lease = cast(Lease, SimpleNamespace(name=f"worker {number}", fence=number))
    for item in list(TaskItem.query("0#default")):
        if item.lease:
            worker._recover(item)
    for item in list(TaskItem.query("0#default")):
        if not item.lease and (attempt := steps.claim(item, lease)):
            worker._run(attempt)


@pytest.mark.parametrize(
    "operations",
    [
        [delete_account],
        [delete_account, partial(work, 1)],
        [delete_account, change_account],
        [delete_account, add_another],
    ],
    ids=["alone", "with a worker", "with another change", "with an addition"],
)
def test_an_account_leaves_nothing_behind(
    explore: Explore, operations: list[Callable[[User], None]]
) -> None:
    users = []

    def make() -> Scenario:
        empty(*TABLES)
        user = make_user()
        users[:] = [user]
        SellerProfile(user.pk, name="Ann Ltd").insert()
        for number in ("1", "2"):
            add_customer(user.pk, Customer("Bob"), request_id=number)
        return Scenario([partial(act, user) for act in operations], afterwards)

    def afterwards(outcomes: list[Any]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, DynamoError | StaleUser):
                raise outcome
        [user] = users
        while list(TaskItem.query("0#default")):
            work(9, user)
        has_account = User.get_or_none(user.pk) is not None
        assert (CustomerItem.count(user.pk) >= 2) == has_account
        assert has_account or CustomerItem.count(user.pk) == 0
        assert (SellerProfile.get_or_none(user.pk) is not None) == has_account
        records = [item for item in TaskItem.scan() if item.sort == RECORD]
        assert [str(item.status) for item in records] == ([] if has_account else ["SUCCESSFUL"])

    assert explore(make, deaths=1) > 1
