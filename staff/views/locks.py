"""One lock, and the form that breaks it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from locks import registry
from locks.exceptions import BadLockName, LockChanged, UnknownLock
from staff import actions
from staff.forms import BreakLockForm
from staff.views.pages import ConfirmView


class LockView(ConfirmView):
    """The lock `?name=`, which is not part of the path because it may be any text, even `..`."""

    template_name = "staff/lock.html"
    form_class = BreakLockForm
    button = gettext_lazy("Break the lock")
    done = gettext_lazy("The lock is free now.")
    was_so = gettext_lazy("The lock was free already.")

    @cached_property
    def lock(self) -> registry.LockView:
        """Costs 1 request; raises Http404."""
        try:
            return registry.look(self.request.GET.get("name", ""))
        except (BadLockName, UnknownLock) as error:
            raise Http404 from error

    @property
    def back(self) -> str:
        # Breaking a claim deletes its item.
        if self.lock.state is registry.State.CLAIMED:
            return reverse("staff:overview")
        return f"{reverse('staff:lock')}?{urlencode({'name': self.lock.name})}"

    def get_initial(self) -> dict[str, Any]:
        return {"holder": _holding(self.lock)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            lock=self.lock,
            is_free=self.lock.state is registry.State.RELEASED,
            is_claim=self.lock.state is registry.State.CLAIMED,
            is_over=self.lock.renewed_at is not None
            and self.lock.lease_seconds is not None
            and self.lock.is_silent(datetime.now(UTC)),
            **kwargs,
        )

    def act(self, form: BreakLockForm) -> bool:
        if form.cleaned_data["holder"] != _holding(self.lock):
            raise LockChanged(self.lock.name)
        return actions.break_seen_lock(self.actor, self.lock, form.cleaned_data["reason"])

    def form_valid(self, form: BreakLockForm) -> HttpResponse:
        """Break it, or show who holds it now."""
        try:
            return super().form_valid(form)
        except LockChanged:
            del self.lock
            form.data = {**dict(form.data.items()), "holder": _holding(self.lock)}
            form.add_error(
                None, _("Another holds the lock by now, as shown here. Nothing was broken.")
            )
            return self.form_invalid(form)
        except UnknownLock as error:
            raise Http404 from error


def _holding(lock: registry.LockView) -> str:
    """A short text that is the same in all views of one holder's one lease."""
    return hashlib.sha256(repr(lock.holding).encode()).hexdigest()
