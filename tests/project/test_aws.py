"""`make aws` cannot rot: here it runs on the local engine."""

import subprocess
import sys

import pytest

from dynamo.client.sending import send
from tests.commands import ROOT
from tests.environment import clean_environment

LIKE_AWS = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "tests"}


@pytest.mark.site
@pytest.mark.fault_of("moto", "ignores request tokens, and counts other units")
def test_the_tests_for_aws_pass_and_leave_no_table(engine: str) -> None:
    command = [sys.executable, "-m", "tests.aws", "try-", "--yes"]
    env = clean_environment(
        AWS_ENDPOINT_URL_DYNAMODB=engine, AWS_SECRET_ACCESS_KEY="tests", **LIKE_AWS
    )

    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "0 failed" in ended.stdout
    assert not [name for name in send("ListTables", {})["TableNames"] if name.startswith("try-")]
