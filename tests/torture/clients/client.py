"""What all clients share: a client makes random calls and records them."""

import random
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path

from tests.torture.history import Journal


@dataclass(frozen=True)
class Plan:
    """What a worker does in the `folder` of a run: no call begins after `ends_at`.

    The servers of the site listen on `ports`.
    """

    folder: Path
    seed: str
    ends_at: float
    ports: list[int]


@dataclass
class Client:
    """`stop` is set when no call may begin any more."""

    journal: Journal
    chance: random.Random
    plan: Plan
    stop: threading.Event

    def step(self) -> None:
        """Make the next calls."""
        raise NotImplementedError

    def new_id(self) -> str:
        """A UUID that nobody has used."""
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
