"""Adding a `Unique` to a model with stored items, in three steps, while others write."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from dynamo import Stale, Taken, casefolded
from tests.dynamo.bands import Band

pytestmark = pytest.mark.usefixtures("engine")

BANDS = 60


def check(*options: str) -> str:
    out = StringIO()
    call_command("checkunique", "tests.dynamo.bands.Band", *options, stdout=out)
    return out.getvalue()


def create(name: str) -> Band:
    return Band.create(pk=name, name=name, site=name)


def test_a_unique_attribute_is_added_while_the_site_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    by_name, *added = Band._unique_keys
    monkeypatch.setattr(Band, "_unique_keys", [by_name])
    for number in range(BANDS):
        create(f"Band {number}")
    monkeypatch.setattr(Band, "_unique_keys", [by_name, *added])
    stop = threading.Event()

    def write(number: int) -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            new = create(f"New {number} {turn}")
            with suppress(Taken):
                new.change(site=f"BAND {(number + turn) % BANDS}")
            with suppress(Stale, Taken):
                old = Band.find(name=f"band {turn % BANDS}")
                old.change(site=f"moved {number} {turn}")

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        try:
            with suppress(CommandError):  # values that two bands share, until a person decides
                check("--repair")
        finally:
            stop.set()
        for writer in writers:
            writer.result()

    # Bands that share a value get other ones, as a person gives them.
    seen: set[str] = set()
    for band in list(Band.scan()):
        if casefolded(band.site) in seen:
            band.change(site=f"settled {band.pk}")
        seen.add(casefolded(band.site))
    check("--repair")
    assert "0 missing, 0 orphaned, 0 foreign" in check()
    assert len({casefolded(band.site) for band in Band.scan()}) == len(list(Band.scan()))
