"""The pages of the account itself, the start page and the language switch."""

from copy import copy
from functools import partial

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout, views as auth_views
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.urls import ResolverMatch
from django.utils import translation
from django.utils.translation import gettext as _, gettext_lazy
from django.views import View, csrf
from django.views.i18n import set_language

from accounts import services
from accounts.attributes import readable_phone_number
from accounts.exceptions import StaleUser
from accounts.forms import (
    OwnPasswordChangeForm,
    PasswordConfirmedForm,
    ProfileForm,
    UsernameChangeForm,
)
from accounts.languages import language_of, remember, site_language
from accounts.models import AbstractAccount, account_model
from accounts.pages import keptforms, notices
from accounts.pages.base import (
    CHANGED_MEANWHILE,
    TOO_LONG_TO_KEEP,
    FormPageMixin,
    KeepFormMixin,
    NextPageMixin,
    PasswordConfirmedView,
    SignedInFormMixin,
    change_and_mail,
    page_after_sign_out,
    sign_in_page,
    signed_in,
    start_page,
)
from accounts.pages.signin import FreshSignInMixin
from accounts.personal_data import account_of, exported_by_apps, sessions_of
from dynamo import TableMissing, Transaction, Unavailable
from dynamo.middleware import unavailable
from dynamo.wire.fields import ShownEncoder


class ProfileView(SignedInFormMixin, KeepFormMixin, FormPageMixin, NextPageMixin):
    """The page of the profile. After it was sent, the page in `next` follows."""

    template_name = "accounts/profile.html"
    form_class = ProfileForm
    next_page = "profile"

    def get_form_kwargs(self) -> dict[str, object]:
        return super().get_form_kwargs() | {"instance": signed_in(self.request)}

    def get_initial(self) -> dict[str, object]:
        user = signed_in(self.request)
        return {
            "phone_number": readable_phone_number(user.phone_number),
            "language": language_of(user) or "",
        }

    def form_valid(self, form: ProfileForm) -> HttpResponse:
        user = form.save()
        page_language = translation.get_language()
        is_switched = "language" in form.changed_data
        chosen = language_of(user) or _browser_language(self.request)
        with translation.override(chosen if is_switched else page_language):
            messages.success(self.request, _("Your details were saved."))
            response = super().form_valid(form)
        if is_switched:
            # Otherwise, the cookie of the language switch would take precedence over the browser's
            # language.
            remember(response, language_of(user))
        return response


def _browser_language(request: HttpRequest) -> str:
    """The language of the browser, without the cookie of the language switch."""
    without_cookie = copy(request)
    without_cookie.COOKIES = {}
    return translation.get_language_from_request(without_cookie)


class UsernameChangeView(PasswordConfirmedView):
    template_name = "accounts/username_change.html"
    form_class = UsernameChangeForm
    success_message = gettext_lazy("Your username was changed.")

    def get_initial(self) -> dict[str, object]:
        return {"username": signed_in(self.request).username}

    def change(self, user: AbstractAccount, form: PasswordConfirmedForm) -> None:
        username = form.cleaned_data["username"]
        notify = partial(notices.send, self.request, "username_changed", user)
        change_and_mail(
            partial(services.change_username, user, username),
            *([notify] if username != user.username else []),
        )


class AccountDeleteView(PasswordConfirmedView):
    template_name = "accounts/account_delete.html"
    form_class = PasswordConfirmedForm
    success_message = gettext_lazy("Your account was deleted.")

    def get_success_url(self) -> str:
        return page_after_sign_out()

    def change(self, user: AbstractAccount, form: PasswordConfirmedForm) -> None:
        try:
            with Transaction() as write:
                services.delete(user, write=write)
                notices.send(self.request, "deleted", user, write=write)
        except StaleUser as error:
            if not error.deleted:
                raise
        logout(self.request)


class AccountExportView(FreshSignInMixin, View):
    """Downloads the data that is stored about the account, as JSON.

    Other apps add data by `account_exporting`.
    """

    def get(self, request: HttpRequest) -> HttpResponse:
        user = signed_in(request)
        own = {"account": account_of(user), "sessions": sessions_of(user)}
        data = own | exported_by_apps(user)
        options = {"indent": 2, "ensure_ascii": False}
        response = JsonResponse(data, ShownEncoder, json_dumps_params=options)
        response["Content-Disposition"] = 'attachment; filename="account.json"'
        return response


class PasswordChangeView(FormPageMixin, auth_views.PasswordChangeView):
    """Django's view. It ends the account's other sessions."""

    template_name = "accounts/password_change_form.html"
    form_class = OwnPasswordChangeForm

    def form_valid(self, form: OwnPasswordChangeForm) -> HttpResponse:
        form.notify = partial(notices.send, self.request, "password_changed", form.user)
        response = super().form_valid(form)
        notices.remember(self.request, response, form.user)
        return response


def switch_language(request: HttpRequest) -> HttpResponse:
    """Django's `set_language`, which also changes the profile of a visitor who is signed in.

    Otherwise the language of the profile would replace the chosen one on the next page. If the page
    sends a form with it, the form is kept for that page.
    """
    response: HttpResponse = set_language(request)
    if keptforms.OWNER in request.POST and request.user.is_authenticated:
        page = response.headers.get("Location", "")
        if not keptforms.keep_left(request, page, signed_in(request).pk):
            messages.error(request, TOO_LONG_TO_KEEP)
    chosen = response.cookies.get(settings.LANGUAGE_COOKIE_NAME)
    if chosen is None:
        return response
    if not site_language(chosen.value):
        # Django accepts every language that it knows.
        del response.cookies[settings.LANGUAGE_COOKIE_NAME]
    elif request.user.is_authenticated:
        try:
            services.edit_profile(signed_in(request), language=chosen.value)
        except StaleUser:
            messages.error(request, CHANGED_MEANWHILE)
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The answer to a form with an outdated CSRF token. Nothing was done.

    A sign-in changes the token. Therefore, a sign-up or sign-in form that is sent twice is answered
    here the second time. If this form signed the visitor in, the second answer is the same page as
    the first. If another form signed them in, it is not, because these values were not accepted.

    Any other form was open in a second tab while its user signed in again. Such a form is shown
    again with its values.
    """
    match = request.resolver_match
    # Scripts cannot set this header. The form of another site is not shown, because visitors could
    # think that it is theirs and send it.
    is_own = request.headers.get("Sec-Fetch-Site") == "same-origin"
    try:
        if match and _has_signed_in(request, match.url_name):
            packed = request.POST.get(keptforms.FIELD, "") if is_own else ""
            return _kept(request, packed) or redirect(start_page())
        if match and is_own and (shown := _form_again(request, match)):
            return shown
    except (Unavailable, TableMissing) as error:
        # The middleware that handles these errors only wraps views.
        return unavailable(request, error)
    return csrf.csrf_failure(request, reason)


def _form_again(request: HttpRequest, match: ResolverMatch) -> HttpResponse | None:
    """The page of the form that was sent, with its values; None if it must not be shown again."""
    if not issubclass(getattr(match.func, "view_class", type(None)), SignedInFormMixin):
        return None
    if not request.user.is_authenticated:
        return sign_in_page(request)
    return _kept(request, keptforms.pack(request) or "")


def _kept(request: HttpRequest, packed: str) -> HttpResponse | None:
    """A redirect to the page that shows the form; None if the form is not the visitor's."""
    kept = keptforms.keep(request, packed, signed_in(request).pk)
    return HttpResponseRedirect(kept.path) if kept else None


def _has_signed_in(request: HttpRequest, url_name: str | None) -> bool:
    """Whether the visitor's account has the names in the sent sign-up or sign-in form."""
    if url_name not in {"signup", "login"} or not request.user.is_authenticated:
        return False
    username = request.POST.get("username", "").strip()
    if url_name == "signup":
        typed = {"username": username, "email": request.POST.get("email", "").strip()}
    else:
        typed = {account_model().attribute_of(username): username}
    try:
        return signed_in(request).has_unique_values(**typed)
    except ValueError:
        return False  # not a valid name
