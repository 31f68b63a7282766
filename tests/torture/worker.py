"""The processes that are killed: workers that run clients, and servers of the site.

Each is forked from one process that has loaded everything (`multiprocessing`'s fork server), so a
new one starts at once. Each writes its history under the name of its life.
"""

import gc
import os
import random
import threading
import time
from pathlib import Path
from wsgiref.simple_server import make_server

import django
from django.core.servers.basehttp import ThreadedWSGIServer

django.setup()

from django.conf import settings  # noqa: E402 - Django first

threshold = gc.get_threshold()
from project.wsgi import application  # noqa: E402

# The import lets a server collect garbage rarely. Tests import this module, and need the default.
gc.set_threshold(*threshold)

from tests.torture.clients.accounts import AccountClient  # noqa: E402
from tests.torture.clients.client import Client, Plan  # noqa: E402
from tests.torture.clients.copies import CopyClient  # noqa: E402
from tests.torture.clients.inspector import Inspector  # noqa: E402
from tests.torture.clients.invoices import InvoiceClient  # noqa: E402
from tests.torture.clients.locks import LockClient  # noqa: E402
from tests.torture.clients.numbers import NumberClient  # noqa: E402
from tests.torture.clients.pages import Visitor  # noqa: E402
from tests.torture.clients.tasks import TaskClient, run_tasks  # noqa: E402
from tests.torture.history import Journal  # noqa: E402

#: The clients of a worker, and how many seconds each pauses on average: a page costs 20 times as
#: much as a call, and the inspector reads whole tables.
CLIENTS: dict[str, tuple[type[Client], float]] = {
    "accounts-0": (AccountClient, 0.15),
    "accounts-1": (AccountClient, 0.15),
    "invoices-0": (InvoiceClient, 0.15),
    "invoices-1": (InvoiceClient, 0.15),
    "copies-0": (CopyClient, 0.2),
    "copies-1": (CopyClient, 0.2),
    "numbers": (NumberClient, 0.15),
    "locks": (LockClient, 0.2),
    "tasks": (TaskClient, 0.15),
    "visitor": (Visitor, 1.0),
    "inspector": (Inspector, 6.0),
}


def work(life: str, plan: Plan) -> None:
    """Run clients in threads until the end, or until killed."""
    _begin(life, plan.folder)
    journal = Journal(plan.folder / "histories" / f"{life}.jsonl")
    stop = threading.Event()
    threads = []
    for name, (make, pause_seconds) in CLIENTS.items():
        client = make(journal, random.Random(f"{plan.seed} {life} {name}"), plan, stop)
        arguments = (client, pause_seconds)
        threads.append(threading.Thread(target=_run, args=arguments, name=name, daemon=True))
        threads[-1].start()
    threads.append(threading.Thread(target=run_tasks, args=(stop,), name="worker", daemon=True))
    threads[-1].start()
    time.sleep(max(0, plan.ends_at - time.monotonic()))
    stop.set()
    for thread in threads:
        thread.join()


def _run(client: Client, pause_seconds: float) -> None:
    while not client.stop.wait(client.chance.uniform(0, 2 * pause_seconds)):
        client.step()


def serve(life: str, folder: Path, port: int) -> None:
    """Serve the site."""
    _begin(life, folder)
    with make_server("127.0.0.1", port, application, ThreadedWSGIServer) as server:
        server.serve_forever()


def _begin(life: str, folder: Path) -> None:
    """Write the output of the process to its log, and set what is different in torture."""
    log = os.open(folder / "logs" / f"{life}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # Argon2 is slow on purpose.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
