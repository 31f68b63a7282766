"""The items that released versions stored: a folder for each layout, a file for each table.

The items are as on the wire. They were written by the code of that release itself (`writing.py`).
`about.json` says when, and what is not to be read from the items: the password of
the accounts, the key of a session, the bucket of the uploads.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dynamo.client.bulk import write_batches
from tests.items import Item

FOLDER = Path(__file__).parent
RELEASES = sorted(path.parent for path in FOLDER.glob("*/about.json"))

#: These hold a time in seconds; in the table `cache`, `expiresAt` and counted limits in ms.
_SECONDS = {"expires", "expiresAt", "pendingUntil", "seenAt", "signedInAt"}
_WINDOW = 10**12  # a limit stores the end of its window × this + the slots that are taken


def new_folder(release: str) -> Path:
    """The folder for what a release stores. What was stored before is never written again."""
    folder = FOLDER / release
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise AssertionError(f"{folder} has what {release} stored. Name a new version.") from error
    return folder


each_release = pytest.mark.parametrize("release", RELEASES, ids=lambda folder: folder.name)


@dataclass(frozen=True)
class Stored:
    """Everything that a release stored. It is in the tables now."""

    folder: Path
    about: dict[str, Any]

    def items(self, table: str) -> list[Item]:
        """The items of a table, as they were written."""
        items: list[Item] = json.loads((self.folder / f"{table}.json").read_text())
        return items

    def pk(self, username: str) -> str:
        """The primary key of an account."""
        pk: str = self.about["accounts"][username]
        return pk


def load(release: Path) -> Stored:
    """Put all items of a release into the tables, with times as if they had been written now."""
    stored = Stored(release, json.loads((release / "about.json").read_text()))
    age_seconds = int(time.time()) - stored.about["storedAt"]
    for file in sorted(release.glob("*.json")):
        if file.name != "about.json":
            later = _later_in_cache if file.stem == "cache" else _later
            items = [later(item, age_seconds) for item in stored.items(file.stem)]
            write_batches(file.stem, [{"PutRequest": {"Item": item}} for item in items])
    return stored


def _later(item: Item, seconds: int) -> Item:
    return {
        name: {"N": str(int(value["N"]) + seconds)}
        if name in _SECONDS and "N" in value
        else {"M": _later(value["M"], seconds)}
        if "M" in value
        else value
        for name, value in item.items()
    }


def _later_in_cache(item: Item, seconds: int) -> Item:
    later = _later(item, seconds)
    if "expiresAt" in item:
        later["expiresAt"] = {"N": str(int(item["expiresAt"]["N"]) + seconds * 1000)}
    if "N" in item["value"] and int(item["value"]["N"]) > _WINDOW:
        later["value"] = {"N": str(int(item["value"]["N"]) + seconds * 1000 * _WINDOW)}
    return later
