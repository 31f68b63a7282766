"""Every registered operation of the site under every fault."""

import pytest

from tests.faults.matrix import *  # noqa: F403 - its tests
from tests.site_operations import SITE as OPERATIONS  # noqa: F401 - what they run

# What an operation leaves to a task is not part of it.
pytestmark = pytest.mark.usefixtures("worker")
