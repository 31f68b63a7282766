"""Selects: quick to render, and the same as Django's."""

from __future__ import annotations

from typing import Any

import pytest
from django import forms

from web.widgets import Select

OPTIONS = [("", "–"), ("a", "A & B"), ('"b"', "<b>")]


@pytest.mark.parametrize("choices", [OPTIONS, lambda: OPTIONS], ids=["list", "function"])
@pytest.mark.parametrize("value", ["", None, "a", '"b"', "other"])
def test_a_select_is_rendered_as_by_django(choices: Any, value: str | None) -> None:
    class Form(forms.Form):
        ours = forms.ChoiceField(choices=choices, required=False, widget=Select({"lang": "en"}))
        theirs = forms.ChoiceField(
            choices=choices, required=False, widget=forms.Select({"lang": "en"})
        )

    form = Form(initial={"ours": value, "theirs": value})
    rendered = [str(form[name]).replace(name, "x").split() for name in ("ours", "theirs")]

    assert sorted(rendered[0]) == sorted(rendered[1])
