"""`LongSelect` renders what Django's select renders."""

from html.parser import HTMLParser
from typing import Any

import pytest
from django import forms

from dynamo.inputs import LongSelect

CHOICES = [("", "–"), ("a", "A & B"), ('"', "<i>"), (3, "three"), ("z", "あ")]


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self.seen.append((tag, sorted(attrs)))

    def handle_data(self, data: str) -> None:
        self.seen += [data.strip()] if data.strip() else []


@pytest.mark.parametrize("value", ["", None, "a", '"', 3, "3", "unknown"])
def test_a_long_select_is_rendered_as_djangos(value: Any) -> None:
    def rendered(widget: type[forms.Select]) -> list[Any]:
        field = forms.ChoiceField(choices=CHOICES, widget=widget(attrs={"autocomplete": "off"}))
        form = type("Form", (forms.Form,), {"name": field})({"name": value}, prefix="p")
        form.is_valid()
        return Tags(str(form["name"])).seen

    assert rendered(LongSelect) == rendered(forms.Select)
