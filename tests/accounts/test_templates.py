"""Accounts in templates."""

import pytest

from tests.factories import make_user
from tests.templates import assert_templates_change_nothing


@pytest.mark.usefixtures("engine")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_template_writes_nothing_to_an_account() -> None:
    assert_templates_change_nothing(make_user(username="ann"))
