"""Every registered operation of the library under every fault."""

from tests.faults.matrix import *  # noqa: F403 - its tests
from tests.operations import LIBRARY as OPERATIONS  # noqa: F401 - what they run
