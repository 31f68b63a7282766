"""What containers and dashboards are made of: scripts, and what they name.

Docker itself does not run here. The slow test builds the site as the Dockerfile does, in an empty
environment, and starts what `compose.yaml` starts (`make test-library`).
"""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands
from prometheus_client import REGISTRY

from project import metrics
from tests.commands import ROOT
from tests.engines import free_port
from tests.environment import clean_environment
from tests.served import documented_options
from tests.waiting import wait_until

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def test_the_image_starts_the_server_as_the_docs_do() -> None:
    text = (ROOT / "deploy" / "container" / "start.sh").read_text(encoding="utf-8")
    found = re.search(r"^exec \.venv/bin/granian ((?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert found is not None
    given = re.sub(r"\$\{\w+:-([\w.]+)\}", r"\1", found[1].replace("\\\n", " "))
    documented = [*documented_options(8000), "project.wsgi:application"]

    documented[documented.index("--host") + 1] = "0.0.0.0"  # noqa: S104 - of a container
    assert shlex.split(given) == documented


def test_the_image_has_every_package_of_the_site() -> None:
    script = (ROOT / "deploy" / "container" / "build.sh").read_text(encoding="utf-8")
    [copied] = re.findall(r"^cp -R (.*) \"\$folder\"$", script, re.MULTILINE)
    allowed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"benchmarks", "tests"}

    assert {*copied.split()} == packages | {"manage.py", "locale", "templates"}
    assert {*allowed} == {*copied.split()} | {"deploy/container", "requirements.lock"}


def test_the_commands_of_compose_exist() -> None:
    commands = [service.get("command", []) for service in COMPOSE["services"].values()]
    ours = {words[2] for words in commands if "manage.py" in words}

    assert ours == {"createtables", "runtasks"}
    assert ours <= get_commands().keys()


def test_the_dashboard_and_the_alerts_name_metrics_that_exist() -> None:
    assert metrics.HTTP_REQUESTS
    folder = ROOT / "deploy" / "dashboards"
    board = json.loads((folder / "grafana.json").read_text("utf-8"))
    alerts = yaml.safe_load((folder / "alerts.yml").read_text("utf-8"))
    shown = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    shown += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    # An alert may name a metric without labels.
    named = {name for text in shown for name in re.findall(r"[a-z]+(?:_[a-z]+)+(?=[\[{)])", text)}
    ours = {name for name in REGISTRY._names_to_collectors if not name.startswith("python_")}

    assert len(named) > 10
    assert named <= ours


@pytest.mark.slow
def test_the_site_is_built_and_served_as_in_a_container(tmp_path: Path, engine: str) -> None:
    build = ROOT / "deploy" / "container"
    subprocess.run([build / "build.sh", tmp_path], check=True, timeout=600)
    port = str(free_port())
    env = clean_environment() | {
        **COMPOSE["services"]["site"]["environment"],
        "AWS_ENDPOINT_URL_DYNAMODB": engine,
        "PORT": port,
        "HOST": "127.0.0.1",
        "WORKERS": "1",
    }

    def manage(*words: str) -> None:
        command = [".venv/bin/python", "manage.py", *words]
        subprocess.run(command, cwd=tmp_path, env=env, check=True, timeout=120)

    manage("createtables")
    if hasattr(settings, "TASKS"):
        manage("runtasks", "--once")
    log = tmp_path / "log"
    with (
        log.open("w") as shown,
        subprocess.Popen(
            [build / "start.sh"], cwd=tmp_path, env=env, stdout=shown, stderr=shown
        ) as server,
    ):
        try:
            wait_until(lambda: "Started worker" in log.read_text())
            health = [".venv/bin/python", build / "health.py"]
            wait_until(
                lambda: subprocess.run(health, cwd=tmp_path, env=env, check=False).returncode == 0
            )
        finally:
            server.terminate()
