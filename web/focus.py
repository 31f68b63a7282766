"""Where the cursor is when a form is shown again with errors."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse


class FocusFirstErrorMixin:
    """Sets the focus to the first field with an error, or else to the first field."""

    def form_invalid(self, form: Any) -> HttpResponse:
        """Show the form again."""
        visible = form.visible_fields()
        wrong = [bound for bound in visible if bound.errors]
        for bound in visible:
            bound.field.widget.attrs.pop("autofocus", None)
        (wrong or visible)[0].field.widget.attrs["autofocus"] = True
        shown: HttpResponse = super().form_invalid(form)  # type: ignore[misc]  # a FormView's
        return shown
