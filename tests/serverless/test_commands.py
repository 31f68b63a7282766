"""Commands by events, and the log line that the alarm of failed mails counts."""

import json
import re
from collections.abc import Callable

import pytest

from accounts.models import User
from outbox.models import TaskItem
from tests.cloudformation import printed
from tests.commands import ROOT
from tests.factories import make_user
from tests.serverless.conftest import SITE
from tests.serverless.runtime import Function, FunctionError
from tests.serverless.test_story import sign_up, submit

HANDLER = "project.serverless.run_command"


@pytest.fixture(scope="module")
def environment(environment: dict[str, str]) -> dict[str, str]:
    return environment | {"DJANGO_LOG_COMMANDS": "on"}


def test_a_one_off_command_answers_with_what_it_printed(function: Function) -> None:
    bob = make_user(username="bob")

    printed = function.invoke({"command": "grantstaff", "arguments": ["bob", "--superuser"]})

    assert printed == "bob is a superuser.\n"
    assert User.get(bob.pk).is_superuser


#: Events, and how their errors begin.
FAILING: list[tuple[dict[str, object], str]] = [
    ({"command": "importusers", "arguments": ["a.csv"]}, "'importusers' cannot run here."),
    ({"command": "runserver"}, "'runserver' cannot run here."),
    ({}, "None cannot run here."),
    ({"command": "showuser", "arguments": "bob"}, "The arguments must be a list of texts."),
    ({"command": "showuser", "arguments": [1]}, "The arguments must be a list of texts."),
    ({"command": "storereport", "arguments": ["tides"]}, "storereport: "),
    ({"command": "showuser", "arguments": ["nobody"]}, "showuser: "),
    ({"command": "deleteuser", "arguments": ["bob"]}, "deleteuser: "),
    ({"command": "showuser", "arguments": ["--help"]}, "showuser: ended with"),
]


def test_a_command_that_fails_is_an_error_of_the_function(function: Function) -> None:
    make_user(username="bob")

    for event, message in FAILING:
        with pytest.raises(FunctionError) as raised:
            function.invoke(event)

        [error] = raised.value.args
        assert error["errorType"] == "CommandFailed"
        assert error["errorMessage"].startswith(message)
        # The process serves the next event.
        assert function.invoke({"command": "showuser", "arguments": ["bob"]})


def test_the_alarm_of_failed_tasks_counts_their_log_lines(
    new_function: Callable[..., Function],
) -> None:
    resources = printed("lambdatemplate")["Resources"]
    pattern = resources["FailedTasksFilter"]["Properties"]["FilterPattern"]
    assert pattern in (ROOT / "deploy" / "dashboards" / "cloudwatch.yaml").read_text()
    terms = dict(re.findall(r'\(\$\.(\w+) = "(\w+)"\)', pattern))

    with new_function(SITE) as function:
        sign_up(function)
        submit(function, "/accounts/password_reset/", email="ann@example.org")
    for item in TaskItem.scan():
        # The next attempt is the last one.
        item.change(failures=4)

    with new_function("project.serverless.run_tasks", EMAIL_URL="smtp://127.0.0.1:1") as function:
        assert function.invoke({}, seconds=60) == {"failed": 2}

    lines = [json.loads(line) for line in function.log.splitlines()]
    counted = [line["message"] for line in lines if terms.items() <= line.items()]
    assert sorted(message.split("path=")[1].split()[0] for message in counted) == [
        "accounts.emails.mails.confirm",
        "accounts.emails.mails.reset",
    ]
