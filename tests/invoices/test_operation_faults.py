"""Every registered operation of staff and invoices under every fault."""

import pytest

from tests.faults.matrix import *  # noqa: F403 - its tests
from tests.site_operations import INVOICES, STAFF

# What an operation leaves to a task is not part of it.
pytestmark = pytest.mark.usefixtures("worker")

OPERATIONS = [*STAFF, *INVOICES]
