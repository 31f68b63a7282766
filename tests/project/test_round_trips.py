"""How many times a page waits for DynamoDB, one request after another."""

from collections.abc import Callable
from functools import partial

import pytest
from django.test import Client

from accounts.forms import SignUpForm
from accounts.models import User
from locks.lock import Lock
from tests.factories import PASSWORD
from tests.faults.kinds import Delay
from tests.faults.proxy import FaultProxy
from tests.invoices.forms import NEW, typed
from tests.pages import new_account
from tests.registration import RunTasks
from tests.requests import Requests, round_trips

#: Longer than the time between two requests that threads send together, also on a busy machine.
LATE_SECONDS = 0.5
#: More than any operation here sends.
MANY = 100


@pytest.mark.parametrize(
    ("spans", "count"),
    [
        ([], 0),
        ([(0, 1), (1, 2), (2, 3)], 3),
        ([(0, 9), (1, 8), (2, 3)], 1),
        # The last one waited for one of the first two, not for both.
        ([(0, 5), (0, 2), (3, 6)], 2),
        ([(0, 10), (1, 2), (3, 4)], 2),
        ([(3, 4), (0, 1)], 2),
    ],
)
def test_requests_that_overlap_are_one_round_trip(
    spans: list[tuple[float, float]], count: int
) -> None:
    assert round_trips(spans) == count


def look_at(path: str, client: Client) -> None:
    assert client.get(path).status_code == 200


def sign_in_as_ann(client: Client) -> None:
    response = client.post("/accounts/login/", {"username": "Ann", "password": PASSWORD})
    assert response.status_code == 302


def sign_up(client: Client) -> None:
    form = new_account("Ben") | {"request_id": SignUpForm.new_request_id()}
    assert client.post("/accounts/signup/", form).status_code == 302


def issue(client: Client) -> None:
    assert client.post(NEW, typed()).status_code == 302


def use_lock(_client: Client) -> None:
    with Lock("of a test"):
        pass


#: What is done, and how many round trips it takes. The account has few invoices, so its start page
#: also reads those of last year.
BUDGETS: dict[str, tuple[Callable[[Client], None], int]] = {
    "home": (partial(look_at, "/"), 3),
    "profile": (partial(look_at, "/accounts/profile/"), 1),
    "list of invoices": (partial(look_at, "/invoices/"), 2),
    "sign in": (sign_in_as_ann, 5),
    # The windows of the client's limits have begun: each takes another request.
    "sign in again": (sign_in_as_ann, 7),
    "sign up": (sign_up, 3),
    "issue": (issue, 2),
    "lock": (use_lock, 2),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_an_operation_takes_its_number_of_round_trips(
    proxy: FaultProxy,
    client: Client,
    ann: User,
    requests_sent: Requests,
    worker: RunTasks,
    name: str,
) -> None:
    act, budget = BUDGETS[name]
    client.force_login(ann)  # not by the form, whose limits would have begun to count
    issue(client)  # from the second on, the counter is known
    if name == "sign in again":
        sign_in_as_ann(Client())
    proxy.plan("*", Delay(LATE_SECONDS), times=MANY)
    requests_sent.clear()

    act(Client() if name.startswith("sign") else client)

    assert requests_sent.round_trips == budget
