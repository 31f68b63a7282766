"""Time zones, as forms offer them."""

import zoneinfo
from functools import cache

from dynamo.inputs import Choices


def is_time_zone(name: str) -> bool:
    """Whether `name` is a time zone of the IANA database, such as `Europe/Berlin`."""
    return name in _time_zones()


@cache
def time_zone_choices() -> Choices:
    """An empty choice, and the time zones by name."""
    return (("", "–"), *((name, name.replace("_", " ")) for name in sorted(_time_zones())))


@cache
def _time_zones() -> frozenset[str]:
    # Areas and places. Others are old names and abbreviations, such as `EST` or `GB`.
    return frozenset(
        name
        for name in zoneinfo.available_timezones()
        if "/" in name and not name.startswith(("Etc/", "SystemV/", "US/", "Canada/", "Brazil/"))
    ) | {"UTC"}
