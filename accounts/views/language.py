"""The switch at the foot of each page."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.i18n import set_language

from accounts import services
from accounts.exceptions import StaleUser
from accounts.languages import spoken
from accounts.views.pages import signed_in


def switch_language(request: HttpRequest) -> HttpResponse:
    """Django's `set_language`, which for who is signed in also changes the profile.

    Else the profile, which comes first, would undo it; and no other device would know of it.
    """
    response: HttpResponse = set_language(request)
    chosen = response.cookies.get(settings.LANGUAGE_COOKIE_NAME)
    if chosen is None:
        return response
    if not spoken(chosen.value):
        # Django takes every language that it has itself.
        del response.cookies[settings.LANGUAGE_COOKIE_NAME]
    elif request.user.is_authenticated:
        try:
            services.edit_profile(signed_in(request), language=chosen.value)
        except StaleUser:
            messages.error(
                request, _("The account was changed at the same moment. Please try again.")
            )
    return response
