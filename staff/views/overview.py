"""The first page of staff, which finds accounts and shows the last reports, and a page for each."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.generic import FormView, TemplateView

from accounts.pages import FormPageMixin
from dynamo.exceptions import DamagedItem
from staff.finding import find
from staff.forms import FindForm
from staff.reports import KINDS, last_reports
from staff.views.pages import StaffMixin


class OverviewView(StaffMixin, FormPageMixin, FormView):
    """The search is a POST, so that no email address is in a log.

    Besides the requests of every page, costs 1 request.
    """

    template_name = "staff/overview.html"
    form_class = FindForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        statistics, *checks = last_reports(*KINDS.values())
        return super().get_context_data(statistics=statistics, checks=checks, **kwargs)

    def form_valid(self, form: FindForm) -> HttpResponse:
        """Redirect to the account; without one, show any guard of the value."""
        try:
            found = find(form.cleaned_data["who"])
        except DamagedItem as error:
            form.add_error("who", str(error))
            return self.form_invalid(form)
        if found.user:
            return redirect("staff:account", found.user.pk)
        form.add_error("who", _("No account goes by this."))
        return self.render_to_response(self.get_context_data(form=form, guard=found.guard))


class ReportView(StaffMixin, TemplateView):
    """Besides the requests of every page, costs 1 request."""

    template_name = "staff/report.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kinds = [kind for kind in KINDS.values() if kind.key == kwargs["kind"]]
        if not kinds:
            raise Http404
        [view] = last_reports(*kinds)
        return super().get_context_data(view=view, **kwargs)
