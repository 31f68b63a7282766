"""Where does a page's CPU time go? `python -m benchmarks.profiles [rounds] [seconds]`

py-spy samples the server's threads that run while one client requests a page. The last samples of
each page are kept in var/profiles, one stack a line, for example for speedscope.app.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from benchmarks import peers
from benchmarks.arguments import asked
from benchmarks.pages import PAGES, WORKERS, pages_of
from benchmarks.serving import Asked, Server, granian, prepared, served, wrk

FOLDER = peers.ROOT / "var" / "profiles"
RATE = 100

#: A sample belongs to the first layer that one of its frames is in, from the innermost frame on.
LAYERS = {
    "password hash": r"argon2/",
    "connection to DynamoDB": r"urllib3/|http/client\.py|socket\.py|email/",
    "requests: signature, JSON, retries": r"dynamo/client/|botocore/|json/",
    "items and models": r"dynamo/|pynamodb/|sequences/",
    "Babel": r"babel/",
    "access log": r"project/(access|logs|hiding|signals)|logging/",
    "forms": r"django/forms/",
    "templates": r"django/template/|django/templatetags/",
    "translation": r"django/utils/translation/|gettext\.py",
    "sessions, messages": r"django/contrib/(sessions|messages)",
    "invoices": r"invoices/",
    "middlewares": r"middleware|languages\.py|django/utils/deprecation|handlers/exception",
    "accounts, views": r"accounts/|django/views|django/contrib/auth",
    "server, WSGI": r"granian/|handlers/",
}
OTHERS = "others"
#: Ends the stack of a thread that waits, though py-spy may count it as running; and of one without
#: Python code, which is the server's own.
IDLE = re.compile(r"Condition\.wait [^;]*$|Popen\.poll [^;]*$|_worker \([^;]*$|process \d+:[^;]*$")


def layer_of(stack: str) -> str:
    """The layer of a sample of py-spy: `function (file:line);…`, outermost first."""
    files = re.findall(r"\(([^()]+):\d+\)(?:;|$)", stack)
    for file in reversed(files):
        for layer, pattern in LAYERS.items():
            if re.search(pattern, file):
                # A widget is rendered by a template.
                is_widget = layer == "templates" and any("django/forms/" in file for file in files)
                return "forms" if is_widget else layer
    return OTHERS


def profile(page: Asked, server: Server) -> Counter[str]:
    """How many samples each layer has."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / f"{re.sub(r'[^a-z0-9]+', '-', page.name.lower()).strip('-')}.txt"
    program = peers.added("py-spy") / "bin" / "py-spy"
    record = [str(program), "record", "--pid", str(server.process), "--subprocesses"]
    record += ["--format", "raw", "--rate", str(RATE), "--duration", str(page.seconds - 1)]
    quiet = subprocess.DEVNULL
    client = subprocess.Popen(wrk(page, server, 1), stdout=quiet)
    subprocess.run([*record, "--output", str(kept)], check=True, stdout=quiet, stderr=quiet)
    client.wait()
    return counted(kept)


def counted(file: Path) -> Counter[str]:
    """The samples by layer."""
    counts: Counter[str] = Counter()
    for line in file.read_text().splitlines():
        stack, _space, number = line.rpartition(" ")
        if not IDLE.search(stack):
            counts[layer_of(stack)] += int(number)
    return counts


def main() -> None:
    rounds, seconds = asked(__doc__, rounds=5, seconds=5)
    found: dict[str, Counter[str]] = {}
    for number in range(rounds):
        with prepared() as site, served(granian(WORKERS, PAGES), site) as server:
            for page in pages_of(seconds, slow=1):
                sys.stderr.write(f"round {number + 1}: {page.name}\n")
                found.setdefault(page.name, Counter()).update(profile(page, server))
    print("\n### Shares of the server’s CPU time, %\n")
    print(f"| | {' | '.join(found)} |")
    print(f"|---|{'---:|' * len(found)}")
    for layer in [*LAYERS, OTHERS]:
        shares = [100 * counts[layer] / counts.total() for counts in found.values()]
        print(f"| {layer} | {' | '.join(f'{share:.0f}' for share in shares)} |")
    print(f"| samples | {' | '.join(f'{counts.total():,}' for counts in found.values())} |")


if __name__ == "__main__":
    main()
