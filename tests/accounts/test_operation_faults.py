"""Every registered operation of accounts under every fault."""

import pytest

from tests.account_operations import ACCOUNTS as OPERATIONS  # noqa: F401 - what they run
from tests.faults.matrix import *  # noqa: F403 - its tests

# What an operation leaves to a task is not part of it.
pytestmark = pytest.mark.usefixtures("worker")
