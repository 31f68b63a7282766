"""Processes that work on accounts: rivals for one name, and the writers of a stress test.

    python -m tests.workers rivals NUMBER ROUNDS THREADS
    python -m tests.workers write NUMBER FOLDER
    python -m tests.workers finish NUMBER FOLDER

Rivals go into each round together: a worker says `ready`, and begins when a line arrives on its
standard input. It answers with one line of outcomes for each round.

A writer goes on until it is killed. What it means to do it writes down first, in FOLDER;
started again it does that same thing again, under the same request id, and goes on; or, told to
finish, does only that. What succeeded stands in its log, one line each.
"""

from __future__ import annotations

import json
import random
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import programs
from tests.forked import Forked

PASSWORD_HASH = "!of-a-worker"


@contextmanager
def started(*arguments: object, count: int) -> Iterator[list[Forked]]:
    """So many workers, numbered, in this process's environment; ended with the block."""
    workers: list[Forked] = []
    try:
        for number in range(count):
            workers.append(start(arguments[0], number, *arguments[1:]))
        yield workers
    finally:
        for worker in workers:
            end(worker)


def start(kind: object, number: int, *arguments: object) -> Forked:
    """One worker."""
    return programs.start("tests.workers", kind, number, *arguments, stdin=True, stderr=False)


def end(worker: Forked) -> None:
    """Kill a worker with SIGKILL, if it still runs, and wait for its end."""
    with worker:
        worker.kill()


def go(workers: list[Forked]) -> list[list[str]]:
    """Let all begin their next round together; what each of them answers."""
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return [json.loads(worker.stdout.readline()) for worker in workers if worker.stdout]


def outcome_of(attempt: Any) -> str:
    """What became of one registration: `registered`, or the names of the errors."""
    from accounts.exceptions import AccountError
    from dynamo.exceptions import Refused

    try:
        attempt()
    except AccountError as error:
        return type(error).__name__
    except Refused as refused:
        return "+".join(sorted(type(error).__name__ for error in refused.exceptions))
    return "registered"


def rivals(number: int, rounds: int, threads: int) -> None:
    """Sign up for one name in each round, from several threads."""
    from accounts.services import register

    with ThreadPoolExecutor(threads) as pool:
        for round_number in range(rounds):

            def attempt(thread: int, round_number: int = round_number) -> str:
                return outcome_of(
                    lambda: register(
                        username=f"prize{round_number}",
                        email=f"{number}-{thread}-{round_number}@example.org",
                        password_hash=PASSWORD_HASH,
                    )
                )

            say("ready")
            sys.stdin.readline()
            say(json.dumps(list(pool.map(attempt, range(threads)))))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def write(number: int, folder: Path) -> None:
    """Register, change and delete, again and again, until killed."""
    chance = random.Random()  # another one in each life
    say("ready")
    while True:
        finish(number, folder)
        write_whole(plan_of(number, folder), json.dumps(draw(chance, number)))


def finish(number: int, folder: Path) -> None:
    """Do what was written down, if anything was, until DynamoDB has answered."""
    from dynamo.exceptions import Unavailable

    plan_file = plan_of(number, folder)
    if not plan_file.exists():
        return
    plan = json.loads(plan_file.read_text())
    while True:
        try:
            outcome = carry_out(plan)
        except Unavailable:
            continue
        break
    with (folder / f"{number}.log").open("a") as log:
        log.write(f"{json.dumps({**plan, 'outcome': outcome})}\n")
    plan_file.unlink()


def plan_of(number: int, folder: Path) -> Path:
    return folder / f"{number}.json"


def write_whole(file: Path, text: str) -> None:
    """So that whoever reads it finds all of it, or no file."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


def draw(chance: random.Random, number: int) -> dict[str, str]:
    """What to do next: for names that others want as well, or `keep` one that nobody else has."""
    request_id = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    what = chance.choice(["keep", "register", "register", "username", "email", "profile", "delete"])
    name = f"keep-{request_id}" if what == "keep" else f"shared{chance.randrange(6)}"
    return {
        "do": what,
        "by": str(number),
        "request_id": request_id,
        "name": name,
        "other": name if what == "keep" else f"shared{chance.randrange(6)}",
    }


def carry_out(plan: dict[str, str]) -> str:
    """Do it; the account's key, or the name of the error that it ended with."""
    from accounts import services
    from accounts.exceptions import AccountError
    from dynamo.exceptions import Refused

    try:
        if plan["do"] in {"keep", "register"}:
            user = services.register(
                username=plan["name"],
                email=f"{plan['other']}@example.org",
                password_hash=PASSWORD_HASH,
                request_id=plan["request_id"],
            )
            return str(user.pk)
        user = services.find_user(plan["name"])
        if plan["do"] == "username":
            services.change_username(user, plan["other"])
        elif plan["do"] == "email":
            services.change_email(user, f"{plan['other']}@example.org")
        elif plan["do"] == "profile":
            services.edit_profile(user, full_name=plan["request_id"])
        else:
            services.delete(user)
    except (AccountError, Refused) as error:
        return type(error).__name__
    return str(user.pk)


def main() -> None:
    """Set Django up and work."""
    import django

    django.setup()
    kind, number, *arguments = sys.argv[1:]
    if kind == "rivals":
        rivals(int(number), *map(int, arguments))
    else:
        {"write": write, "finish": finish}[kind](int(number), Path(arguments[0]))


if __name__ == "__main__":
    main()
