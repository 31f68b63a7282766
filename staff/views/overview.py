"""The first page of staff: finding an account, and the site at a glance."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.generic import FormView

from accounts.views.pages import FormPageMixin
from dynamo.exceptions import DamagedItem
from staff import charts
from staff.finding import find
from staff.forms import FindForm
from staff.reports import reports_of
from staff.runs import KINDS
from staff.views.pages import StaffMixin


class OverviewView(StaffMixin, FormPageMixin, FormView):
    """The search, which is a POST so that no address is left in a log, and what the runs found."""

    template_name = "staff/overview.html"
    form_class = FindForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """How the runs stand: 1 request for all."""
        survey, *checks = reports_of(*KINDS)
        days = survey.result["accounts"]["days"] if survey.result else []
        return super().get_context_data(
            survey=survey, checks=checks, chart=charts.bars(days), **kwargs
        )

    def form_valid(self, form: FindForm) -> HttpResponse:
        """To the account; else what there is of a guard."""
        who = form.cleaned_data["who"]
        try:
            found = find(who)
        except DamagedItem as error:
            form.add_error("who", str(error))
            return self.form_invalid(form)
        if found.user:
            return redirect("staff:account", found.user.pk)
        form.add_error("who", _("No account goes by this."))
        return self.render_to_response(self.get_context_data(form=form, guard=found.guard))
