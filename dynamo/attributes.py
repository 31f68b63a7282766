"""Attribute types that PynamoDB lacks."""

from __future__ import annotations

import json

from pynamodb.attributes import Attribute
from pynamodb.constants import NUMBER


class IntegerAttribute(Attribute[int]):
    """A whole number, stored as N. Exact: it does not go through a float."""

    attr_type = NUMBER

    def serialize(self, value: int) -> str:
        """The number as on the wire."""
        return json.dumps(value)

    def deserialize(self, value: str) -> int:
        """The number of a value as on the wire."""
        number: int = json.loads(value)
        return number
