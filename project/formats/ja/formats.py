"""Django's format, but with a space between the day and the time."""

DATETIME_FORMAT = "Y年n月j日 G:i"
