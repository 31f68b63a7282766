"""The engines and peers of the benchmarks: installs, starts and stops them."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3

from tests import engines

ENDPOINT = "AWS_ENDPOINT_URL_DYNAMODB"
ROOT = Path(__file__).resolve().parent.parent
PEER_PACKAGES = [
    "boto3>=1.43,<2",
    "celery[redis]>=5.5,<6",
    "django>=5.2,<5.3",
    "django-dynamodb-backend==1.0.0",
    "django-sequences==3.1",
    "django-tasks==0.12.0",
    "django-tasks-db==0.13.0",
    "psycopg[binary]>=3.2",
    "pydynox==1.8.0",
    "python-dynamodb-lock==0.9.1",
]
#: What programs of the site's own environment also need.
ADDED = {
    "gunicorn": "gunicorn>=23,<26",
    "psycopg": "psycopg[binary,pool]>=3.2,<4",
    "py-spy": "py-spy>=0.4,<0.5",
}
NODE_PACKAGES = ["@aws-sdk/client-dynamodb@3", "dynamodb-onetable@2.7.7"]
DEBIAN_POSTGRES = Path("/usr/lib/postgresql")
#: PostgreSQL refuses to run as root; Debian's package makes this user.
POSTGRES_USER = "postgres"


@contextmanager
def site() -> Iterator[dict[str, str]]:
    """A dynoxide on a file, with the site's tables; the environment of a worker on it."""
    with tempfile.TemporaryDirectory() as folder, engines.running("dynoxide", Path(folder)) as url:
        env = os.environ | {
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "DJANGO_DEBUG": "on",
            "DJANGO_SECRET_KEY": "of-the-benchmarks-alone",
            "DYNAMODB_TABLE_PREFIX": "",
            # The others have none.
            "ACCOUNTS_PREFIX_SEARCH": "off",
            ENDPOINT: url,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "benchmarks",
            "AWS_SECRET_ACCESS_KEY": "benchmarks",
            "PYTHONPATH": str(ROOT),
            "BENCH_ENGINE_FOLDER": folder,
        }
        _create_tables(env)
        yield env


def empty(env: dict[str, str]) -> None:
    """Delete all tables of the engine and create the site's again."""
    client = boto3.client(
        "dynamodb",
        env["AWS_REGION"],
        endpoint_url=env[ENDPOINT],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
    )
    for table in client.list_tables()["TableNames"]:
        client.update_table(TableName=table, DeletionProtectionEnabled=False)
        client.delete_table(TableName=table)
    _create_tables(env)


def _create_tables(env: dict[str, str]) -> None:
    manage = [sys.executable, str(ROOT / "manage.py"), "createtables"]
    subprocess.run(manage, env=env, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def postgres() -> Iterator[dict[str, str]]:
    """A new PostgreSQL cluster with its defaults; the environment of a worker on it."""
    programs = _postgres_programs()
    folder = Path(tempfile.mkdtemp())
    as_user: list[str] = []
    if os.geteuid() == 0:
        user = pwd.getpwnam(POSTGRES_USER)
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = ["runuser", "-u", POSTGRES_USER, "--"]
    port = engines.free_port()
    cluster = str(folder / "cluster")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    _run([*as_user, str(programs / "initdb"), "-D", cluster, "-A", "trust", "-U", "bench"])
    start = [str(programs / "pg_ctl"), "-D", cluster, "-w", "-o", options]
    _run([*as_user, *start, "-l", str(folder / "log"), "start"])
    try:
        process = Path(cluster, "postmaster.pid").read_text().split()[0]
        yield os.environ | {
            "BENCH_PG_USER": "bench",
            "BENCH_PG_PORT": str(port),
            "BENCH_PG_PID": process,
            "PYTHONPATH": "",
        }
    finally:
        _run([*as_user, str(programs / "pg_ctl"), "-D", cluster, "-m", "immediate", "stop"])
        shutil.rmtree(folder)


@contextmanager
def redis() -> Iterator[dict[str, str]]:
    """A new Redis with its defaults, on a free port; the environment of a worker on it."""
    if shutil.which("redis-server") is None:
        if os.geteuid() != 0:
            raise SystemExit("Redis is missing: install Debian's package redis-server.")
        _install("redis-server")
    port = engines.free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            yield os.environ | {"BENCH_REDIS": f"redis://127.0.0.1:{port}/0", "PYTHONPATH": ""}
        finally:
            server.terminate()
            server.wait()


def _install(package: str) -> None:
    """Install a package of Debian, as root."""
    _run(["apt-get", "update", "-qq"])
    _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package])


def _postgres_programs() -> Path:
    found = sorted(DEBIAN_POSTGRES.glob("*/bin"), key=lambda path: int(path.parent.name))
    if not found and os.geteuid() == 0:
        _install("postgresql")
        found = sorted(DEBIAN_POSTGRES.glob("*/bin"))
    if found:
        return found[-1]
    if initdb := shutil.which("initdb"):
        return Path(initdb).parent
    raise SystemExit("PostgreSQL is missing: install Debian's package postgresql.")


def peer_python() -> str:
    """The Python of a virtual environment with the peers; created on first use."""
    folder = ROOT / "var" / "peers"
    python = folder / "bin" / "python"
    installed = folder / "installed"
    if not python.exists():
        venv.create(folder, with_pip=True)
    if not installed.exists() or installed.read_text().split("\n") != PEER_PACKAGES:
        _run([str(python), "-m", "pip", "install", "--quiet", *PEER_PACKAGES])
        installed.write_text("\n".join(PEER_PACKAGES))
    return str(python)


def node_program(name: str) -> list[str]:
    """The command of a Node program in this folder; its packages are installed on first use."""
    folder = ROOT / "var" / "peers-node"
    installed = folder / "installed"
    if not installed.exists() or installed.read_text().split("\n") != NODE_PACKAGES:
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--no-save", "--no-audit", "--no-fund", "--silent"]
        _run(["npm", "install", "--prefix", str(folder), *options, *NODE_PACKAGES])
        installed.write_text("\n".join(NODE_PACKAGES))
    program = Path(__file__).parent / name
    return ["env", f"BENCH_NODE_FOLDER={folder}", "node", str(program)]


def added(package: str) -> Path:
    """A folder for PYTHONPATH that contains only this one of `ADDED`; installed on first use."""
    folder = ROOT / "var" / package
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
        _run([*pip, ADDED[package]])
    return folder


def aws_cli() -> str:
    """The command `aws`; installed on first use."""
    python = Path(peer_python())
    program = python.with_name("aws")
    if not program.exists():
        _run([str(python), "-m", "pip", "install", "--quiet", "awscli>=1.40,<2"])
    return str(program)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
