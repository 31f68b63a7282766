"""Which day it is: in the time zone of the settings, whether the project has `USE_TZ` or not."""

from __future__ import annotations

from datetime import date, datetime

from django.conf import settings
from django.utils import timezone


def day_of(moment: datetime) -> date:
    """The day of `moment`: the same on a page as on a PDF, and for every visitor."""
    return moment.astimezone(timezone.get_default_timezone()).date()


def today() -> date:
    """The day that an invoice is issued on, whatever time zone a page has set for its visitor."""
    zone = timezone.get_default_timezone()
    # Without USE_TZ Django's own time has no zone, and `localdate` refuses it.
    return timezone.localdate(timezone=zone) if settings.USE_TZ else datetime.now(zone).date()
