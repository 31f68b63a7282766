"""Times that other programs wrote in ISO 8601 are read, compared and kept unique as ours."""

from datetime import UTC, datetime
from typing import Any

import pytest

from dynamo import DamagedItem, DateTimeAttribute, Model, TextAttribute, Unique
from dynamo.tables.guards import check_guards
from tests.items import overwrite, put_item, scanned, stored_items
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

TABLE = "tests-launches"
AT = datetime(2025, 12, 17, 21, 47, 8, tzinfo=UTC)
OURS = "2025-12-17T21:47:08.000000+0000"
FOREIGN = [
    "2025-12-17T21:47:08Z",
    "2025-12-17T21:47:08.000Z",
    "2025-12-17T21:47:08.000000000Z",
    "2025-12-17T21:47:08+00:00",
    "2025-12-17T22:47:08+01:00",
    "2025-12-18T03:17:08.0+0530",
    "2025-12-17 18:17:08-03:30",
    "20251217T214708Z",
]


class Launch(Model):
    class Meta:
        table_name = TABLE

    at = DateTimeAttribute()
    name = TextAttribute(default="")

    unique_at = Unique("at")


class Orbit(Model):
    """A time is a part of its key."""

    class Meta:
        table_name = "tests-orbits"

    ship = TextAttribute(hash_key=True)
    at = DateTimeAttribute(range_key=True)
    call = TextAttribute(null=True)

    unique_call = Unique("call")


class CapitalsAttribute(TextAttribute):
    def stored(self, value: str) -> str:
        return value.upper()


class Rocket(Model):
    class Meta:
        table_name = "tests-rockets"

    code = CapitalsAttribute()

    unique_code = Unique("code")


def foreign(text: str) -> Launch:
    """An item whose time another program has written as `text`."""
    launch = Launch.create(at=AT)
    overwrite(launch, at={"S": text})
    return Launch.get(launch.pk)


@pytest.mark.parametrize("text", FOREIGN)
def test_a_time_of_another_program_is_read_compared_and_unique_as_ours(
    text: str, requests_sent: Requests
) -> None:
    launch = foreign(text)
    assert (launch.at, launch.at.tzinfo) == (AT, UTC)
    requests_sent.clear()
    launch.save()
    assert requests_sent.operations == []

    assert Launch.find(at=AT) == launch
    with pytest.raises(Launch.Taken):
        Launch.create(at=AT)
    launch.change(name="Ariane")
    launch.change(at=AT)
    assert stored_items(TABLE)[launch.pk]["at"] == {"S": OURS}
    report = check_guards(Launch)
    assert (report.guards, report.still_wrong, report.unusable) == (1, 0, 0)


@pytest.mark.parametrize("text", FOREIGN)
@pytest.mark.parametrize("how", ["change", "delete"])
def test_a_value_that_another_program_wrote_is_free_after_a_change_and_a_deletion(
    text: str, how: str
) -> None:
    launch = foreign(text)
    report = check_guards(Launch)
    assert (report.guards, report.still_wrong, report.unusable) == (1, 0, 0)

    if how == "change":
        launch.change(at=datetime.max.replace(tzinfo=UTC))
    else:
        launch.delete()

    Launch.create(at=AT)
    report = check_guards(Launch)
    assert (report.guards, report.still_wrong) == (1 + (how == "change"), 0)


@pytest.mark.parametrize(
    "text", ["2025-12-17", "2025-12-17T21:47:08", "2025-13-17T21:47:08Z", "now", "1766008028", ""]
)
def test_a_text_that_is_not_a_point_in_time_is_damaged(text: str) -> None:
    with pytest.raises(DamagedItem):
        foreign(text)


@pytest.mark.parametrize("text", [OURS, *FOREIGN])
def test_an_item_whose_key_another_program_wrote_is_changed_and_deleted_under_this_key(
    text: str,
) -> None:
    key: Any = {"ship": {"S": "a"}, "at": {"S": text}}
    put_item(Orbit.table(), **key)

    [orbit] = Orbit.query("a")
    assert orbit.at == AT
    orbit.change(call="X1")
    orbit.refresh()
    assert Orbit.find(call="X1").call == "X1"
    [stored] = scanned(Orbit.table())
    assert (stored["at"], stored["call"]) == (key["at"], {"S": "X1"})
    orbit.delete()

    assert list(Orbit.scan()) == []
    Orbit.create(ship="b", at=AT, call="X1")


def test_a_text_that_another_program_wrote_in_another_form_is_freed_as_ours() -> None:
    rocket = Rocket.create(code="v-2")
    overwrite(rocket, code={"S": "v-2"})

    Rocket.get(rocket.pk).delete()

    assert Rocket.create(code="V-2").code == "V-2"
