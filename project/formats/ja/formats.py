"""How Japanese pages write a time: as Django does, but apart from its day."""

DATETIME_FORMAT = "Y年n月j日 G:i"
