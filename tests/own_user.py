"""Runs tests of accounts in examples/ownuser, which has its own user model (a pytest plugin).

    pytest -p tests.own_user -m "not site" tests/accounts

Tests that import the site are skipped.
"""

import os
import sys
from pathlib import Path

from tests.absent import skip_tests_of

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = str(ROOT / "examples" / "ownuser")

sys.path.insert(0, EXAMPLE)
# For the programs that tests start.
os.environ["PYTHONPATH"] = os.pathsep.join([EXAMPLE, str(ROOT)])
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.own_settings"
skip_tests_of("invoices", "project", "staff")
