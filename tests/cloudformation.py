"""Templates of CloudFormation: as commands print them, and what cfn-lint says."""

import json
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

from tests.engines import BIN


def printed(command: str = "cloudformation") -> dict[str, Any]:
    """The template that the command prints."""
    out = StringIO()
    call_command(command, stdout=out)
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def linted(*files: Path) -> tuple[int, str, str]:
    """The exit code and the output of cfn-lint, which also reports warnings."""
    command = [BIN / "cfn-lint", "--regions", "us-east-1", "--", *files]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    return checked.returncode, checked.stdout, checked.stderr
