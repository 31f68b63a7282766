"""The next account to register. Standard library only: some workers run without this project."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass

#: Of a password, as Django keeps it: hashing is not what is measured.
HASH = "argon2$argon2id$v=19$m=102400,t=2,p=8$c29tZXNhbHQ$aGFzaA"

#: In a race all threads want these.
NAMES = 10

_numbers = itertools.count()


@dataclass(frozen=True)
class Registrant:
    """A username and an email address; in a race others may have them."""

    pk: str
    username: str
    email: str
    may_be_taken: bool


def next_registrant(name: str) -> Registrant:
    """A new account; in a run named `race-…` one of ten, which 16 threads want at a time."""
    if name.startswith("race-"):
        who = f"{name}-{next(_numbers) // 16 % NAMES}"
        return Registrant(str(uuid.uuid4()), who, f"{who}@example.org", may_be_taken=True)
    who = f"user-{uuid.uuid4().hex}"
    return Registrant(str(uuid.uuid4()), who, f"{who}@example.org", may_be_taken=False)
