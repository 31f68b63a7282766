"""One kind of run: how the latest stands, what was found, and the button that starts another."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.views.generic import TemplateView

from staff import runs
from staff.reports import reports_of
from staff.views.pages import StaffMixin

#: How often a page asks again while a run is under way.
REFRESH_SECONDS = 5


class RunView(StaffMixin, TemplateView):
    """Shows by GET, starts by POST. Costs, beside those of every page, 1 request to show.

    While a run is under way the browser is told, by a header, to ask again. `?still` is the page
    that does not, for who reads slowly or by ear.
    """

    template_name = "staff/run.html"
    http_method_names = ("get", "head", "options", "post")

    @cached_property
    def kind(self) -> runs.Kind:
        """The kind of the URL; raises Http404."""
        try:
            return runs.KINDS[self.kwargs["kind"]]
        except KeyError as error:
            raise Http404 from error

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """How it stands."""
        [view] = reports_of(self.kind.name)
        refreshes = view.is_running and "still" not in request.GET
        context = self.get_context_data(
            view=view, refreshes=refreshes, refresh_seconds=REFRESH_SECONDS, **kwargs
        )
        response = self.render_to_response(context)
        if refreshes:
            response["Refresh"] = str(REFRESH_SECONDS)
        return response

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Start a run, if none is under way."""
        if runs.start(self.kind, self.actor):
            messages.success(request, _("The run has begun."))
        else:
            messages.info(request, _("A run is under way already."))
        return redirect("staff:run", self.kind.name)
