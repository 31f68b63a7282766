"""Accounts in the admin (`dynamo.admin`): what is stored for an account, and the actions of staff.

`accounts.User` is registered. Your own model is registered as in Django:

    from accounts.admin import AccountAdmin
    from dynamo import admin

    admin.site.register(Member, AccountAdmin)
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.crypto import get_random_string
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _, override

from accounts import services
from accounts.emails import mails
from accounts.exceptions import StaleUser, TooManyAttempts
from accounts.limits.attempts import begin_mail
from accounts.limits.clients import browser_name, counted_client
from accounts.models import AbstractAccount, account_model
from accounts.pages import notices
from accounts.pages.base import signed_in, stale_text
from accounts.sessions import services as sessions
from dynamo import DamagedItem, Page, Transaction, admin
from dynamo.admin.actions import DELETE, NOTHING_DONE, Described, Function, as_stored
from dynamo.admin.models import LogEntry, journal_of, label_of, list_entries
from dynamo.admin.options import Column, Context
from dynamo.auth.usernames import as_uuid
from dynamo.client.plain import PlainModel
from dynamo.model.unique import OWNER, SEPARATOR, UniqueKey
from dynamo.tables.guards import Snapshot
from dynamo.transactions import read_together
from dynamo.wire.types import Address, Item
from dynamo.wire.values import PARTITION_KEY_MAX_BYTES, text_of

#: The page of an account shows this many entries of the audit log. The history page has all
#: entries.
SHOWN_ENTRIES = 5

#: The action that ends the session in the query of the page: `?session=`.
END_SESSION = "endSession"

#: The correction of an email address, in the audit log.
CHANGE_EMAIL = "changeEmail"

EMAIL_HELP = _(
    "The new address gets a link that confirms it. If the old address was confirmed, a notice is "
    "sent there. Links that were sent before stop working. The account stays signed in."
)

#: An account is read this many times if its guard keys change between two reads.
ATTEMPTS = 3

LogEntry.labels[CHANGE_EMAIL] = _("Corrected the email address")


def _send(
    kind: str, request: HttpRequest, user: AbstractAccount, email: str, write: Transaction
) -> None:
    """Count and enqueue a mail with a link: `reset` or `confirm`.

    Raises:
        ValidationError: the address or the client has reached the limit of such mails.
    """
    try:
        begin_mail(kind, email, counted_client(request))
    except TooManyAttempts as error:
        raise ValidationError(str(error)) from error
    if kind == "reset":
        mails.send_reset(email, write=write)
    else:
        mails.send_confirmation(user, write=write)


#: Performs an action. A returned text becomes part of its entry in the audit log.
Act = Callable[[HttpRequest, AbstractAccount, Transaction], str | None]


def _action(name: str, title: object, label: object, act: Act) -> Function:
    """An action on accounts, by its name in URLs and in the audit log, where it has the `label`.

    No action grants rights. Users cannot act on their own account here, and only a superuser can
    act on the account of another member of staff.
    """

    def checked(
        self: "AccountAdmin", request: HttpRequest, user: AbstractAccount, write: Transaction
    ) -> str | None:
        if user == signed_in(request):
            raise ValidationError(_("You cannot do this to your own account."))
        if not self.admin_site.may_write(request, user):
            raise ValidationError(_("Only a superuser can do this to a staff account."))
        return act(request, user, write)

    checked.__name__ = name
    LogEntry.labels[name] = label
    return admin.action(checked, permissions=["act"], description=title, dangerous=True)


def _calling(operation: Callable[..., None]) -> Act:
    return lambda _request, user, write: operation(user, write=write)


def _end_session(request: HttpRequest, user: AbstractAccount, write: Transaction) -> str:
    found = sessions.find(user, request.GET["session"])
    sessions.end(user, request.GET["session"], write=write)
    with override(None):  # the stored text is read in any language
        return f"{browser_name(found.browser)}, {found.address}" if found else ""


def _sending(kind: str, may_get: Callable[[AbstractAccount], bool]) -> Act:
    """The action that sends the mail `kind` again to an account that exists and `may_get` it."""

    def act(request: HttpRequest, user: AbstractAccount, write: Transaction) -> None:
        if may_get(user):
            write.check(user, user.same_account(), otherwise=StaleUser(user.pk, deleted=True))
            _send(kind, request, user, user.email, write)

    return act


_ACTIONS = (
    _action(
        "deactivate", _("Deactivate…"), _("Deactivated the account"), _calling(services.deactivate)
    ),
    _action("activate", _("Activate…"), _("Activated the account"), _calling(services.activate)),
    _action(
        "endSessions", _("End all sessions…"), _("Ended all sessions"), _calling(sessions.end_all)
    ),
    _action(
        "sendPasswordReset",
        _("Send a password reset…"),
        _("Sent a password reset"),
        _sending("reset", lambda user: user.is_active and user.has_usable_password()),
    ),
    _action(
        "sendConfirmation",
        _("Send the confirmation again…"),
        _("Sent the confirmation again"),
        _sending("confirm", lambda user: not user.is_confirmed),
    ),
    _action(END_SESSION, _("End a session…"), _("Ended a session"), _end_session),
)


class AccountAdmin(admin.ModelAdmin):
    """The pages of accounts in the admin. Every write asks for the password.

    No form grants rights or sets a password: a new account gets a link by mail. The permission to
    change accounts allows the actions and the correction of the email address.
    """

    dangerous = ("add", "change", "delete")
    # No form changes the attributes of an account.
    not_asked = "exclude fields fieldsets readonly_fields"

    list_display: Sequence[Column] = ("username", "email", "date_joined", "standing")
    #: By default, each attribute that is unique by itself.
    search_fields: Sequence[str] = ()
    search_help_text = (
        _(
            "By the first letters of username or email address (at least two), by another unique "
            "value, by primary key, or by the key of a guard item."
        )
        if settings.ACCOUNTS_PREFIX_SEARCH
        else _("By a unique value, by primary key, or by the key of a guard item.")
    )
    #: The attributes that the page of an account shows if it has them. By default, these are the
    #: values that people type, except username and email address.
    shown_fields: Sequence[str] | None = None

    change_list_template = "accounts/admin/change_list.html"
    change_form_template = "accounts/admin/change_form.html"
    delete_confirmation_template = "accounts/admin/delete_confirmation.html"
    #: The template of the pages that add an account and that correct an email address.
    account_form_template = "accounts/admin/account_form.html"

    def __init__(self, model: type[AbstractAccount], admin_site: object) -> None:
        super().__init__(model, admin_site)
        known = model.get_attributes()
        absent = {name for name in ("username", "email") if name not in known}
        self.list_display = [name for name in self.list_display if name not in absent]
        self.search_fields = self.search_fields or model.unique_names()

    @property
    def media(self) -> forms.Media:
        return super().media + forms.Media(css={"all": ["accounts/admin.css"]})

    # Actions --------------------------------------------------------------------------------------

    actions: Sequence[Column] = _ACTIONS

    def get_actions(
        self, request: HttpRequest, action_location: object = None
    ) -> dict[str, Described]:
        """Leave out the deletion of several accounts: one deletion may cost many requests."""
        found = super().get_actions(request)
        found.pop(DELETE, None)
        if "session" not in request.GET:
            found.pop(END_SESSION, None)
        return found

    @admin.display(description=_("State"))
    def standing(self, obj: AbstractAccount) -> str:
        states = {
            _("Deactivated"): not obj.is_active,
            _("Staff"): obj.is_staff,
            _("Superuser"): obj.is_superuser,
        }
        return " · ".join(str(state) for state, is_so in states.items() if is_so)

    # Permissions ----------------------------------------------------------------------------------

    def permission(self, name: str) -> str:
        return super().permission("change" if name == "act" else name)

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Whether the user may call actions and correct email addresses."""
        return super().has_change_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may change the account in the form of this page.

        Only the page that corrects the email address has a form.
        """
        may_act = self._corrects(request) and self.has_act_permission(request)
        return may_act and self._is_below(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._is_below(request, obj) and super().has_delete_permission(request, obj)

    def _is_below(self, request: HttpRequest, obj: object) -> bool:
        """Whether the user may write this account.

        False for their own, and for staff unless superuser.
        """
        is_own = obj is not None and obj == signed_in(request)
        return not is_own and self.admin_site.may_write(request, obj)

    def _corrects(self, request: HttpRequest) -> bool:
        match = request.resolver_match
        return match is not None and match.url_name == self._url_name("email")

    def _url_name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"

    # Adding, correcting and deleting --------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: object = None) -> object:
        fields: tuple[str, ...] = ()
        text: object = ""
        if obj is None:
            fields = self.model.sign_up_fields
            text = _("A link that sets the password is sent to this address.")
        elif self._corrects(request):
            fields, text = ("email",), EMAIL_HELP
        # On other pages the template shows the account, without a form.
        return [(None, {"fields": fields, "description": text})] if fields else []

    def add_view(self, request: HttpRequest, *args: object, **options: object) -> HttpResponse:
        return self._form_page(request, None, _("Add an account"))

    def email_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        answer = self._form_page(request, object_id, _("Correct the email address"))
        if not getattr(answer, "context_data", {}).get("has_change_permission", True):
            raise PermissionDenied
        return answer

    def _form_page(
        self, request: HttpRequest, object_id: str | None, title: object
    ) -> HttpResponse:
        buttons = ("show_save_and_add_another", "show_save_and_continue", "show_delete")
        context = {**dict.fromkeys(buttons, False), "title": title}
        answer = self.changeform_view(request, object_id, extra_context=context)
        if isinstance(answer, TemplateResponse):
            answer.template_name = self.account_form_template
        return answer

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool, write: Transaction
    ) -> None:
        """Add or correct an account, and send its owner the mails that belong to it."""
        email = form.cleaned_data["email"]
        before = as_stored(obj)
        if change:
            user, kind = before, "confirm"
            old = before.email if before.is_confirmed else ""
            is_other = not before.has_unique_values(email=email)
            services.change_email(user, email, write=write)
        else:
            kind, old, is_other = "reset", "", True
            user = form.instance = services.register(
                **{name: form.cleaned_data[name] for name in self.model.sign_up_fields},
                # The owner replaces this password. A form that is sent again may have another one.
                password=get_random_string(32),
                is_password=lambda *_: True,
                request_id=form.hidden_value(),
                write=write,
            )

        if not is_other:
            return
        if old:
            notices.send(request, "email_changed", user, to=old, by_staff=True, write=write)
        _send(kind, request, user, email, write)

    def delete_model(self, request: HttpRequest, obj: Any, write: Transaction) -> None:
        services.delete(obj, write=write)
        notices.send(request, "deleted", obj, by_staff=True, write=write)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: object = None
    ) -> HttpResponse:
        return self._show_done(request, obj, "add")

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        return self._show_done(
            request, obj, "" if obj.email == as_stored(obj).email else CHANGE_EMAIL
        )

    def _show_done(self, request: HttpRequest, user: AbstractAccount, done: str) -> HttpResponse:
        called = ", ".join(dict.fromkeys([f"“{user}”", user.email]))
        text = f"{label_of(done)}: {called}" if done else NOTHING_DONE
        self.message_user(request, text, messages.SUCCESS if done else messages.INFO)
        return redirect(self.url("change", user))

    def commit(
        self, request: HttpRequest, write: Transaction, action: str, obj: Any, **options: Any
    ) -> bool:
        """Like `ModelAdmin.commit`. An action on an account that changed raises ValidationError."""
        is_form = action in {"add", "change"}
        if action == "change":
            action, options["what"] = CHANGE_EMAIL, ""
        try:
            return super().commit(request, write, action, obj, **options)
        except StaleUser as error:
            if is_form:
                raise
            raise ValidationError(stale_text(error)) from error

    # Pages ----------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        correct = self.admin_site.admin_view(self.email_view)
        return [
            path("<path:object_id>/email/", correct, name=self._url_name("email")),
            *super().get_urls(),
        ]

    def get_page(self, request: HttpRequest, changelist: Any) -> Page[Any]:
        """A page of a search, or of the whole table.

        Costs at most 3 requests for the whole table.
        """
        page = super().get_page(request, changelist)
        changelist.is_whole = not (changelist.query or changelist.after or page.next)
        if changelist.is_whole:
            never = datetime.min.replace(tzinfo=UTC)
            page.items.sort(
                key=lambda user: getattr(user, "date_joined", None) or never, reverse=True
            )
        return page

    def get_search_results(
        self, request: HttpRequest, search_term: str, after: str | None = None
    ) -> Page[Any]:
        """The accounts with a value that begins with `search_term`, else what `find` finds."""
        page = super().get_search_results(request, search_term, after)
        if page.items or after:
            return page
        try:
            found = self.find(search_term)
        except DamagedItem as error:
            messages.error(request, str(error))
            return page
        if isinstance(found, AbstractAccount):
            return Page([found], None)
        if found:
            text = _("There is a guard item %(key)s. Its owner: %(owner)s")
            key = text_of(found, self.model._guard_table().key_name)
            messages.warning(request, text % {"key": key, "owner": text_of(found, OWNER)})
        return page

    def find(self, who: str) -> AbstractAccount | Item | None:
        """Find the account that `who` names. If there is none, find a guard item of the value.

        `who` is:

        - as in the commands, an email address (with an @), a primary key (a UUID) or a username;
        - the key of a guard item, `userName#bob` or `email#bob@example.com`, in any spelling; the
          key of any other guard item as it is stored, `club,card#["chess", "18"]`;
        - a text that begins with an account's key and a #.

        Costs 2 requests and 2 read units; 1 more of each for the guard item if there is no account.
        """
        if pk := as_uuid(who.partition(SEPARATOR)[0]):
            return self._get(pk)
        unique = next((key for key in self.model._unique_keys if who.startswith(key.prefix)), None)
        if unique is not None:
            return self._find_by_guard(unique, who)
        named = {self.model.attribute_of(who): who}
        try:
            return self.model.find(**named)
        except self.model.DoesNotExist:
            with suppress(ValueError):
                return self.model.read_guard(**named)
        return None

    def _find_by_guard(self, unique: UniqueKey, who: str) -> AbstractAccount | Item | None:
        key: str | None = who
        if [attribute.attr_type for attribute in unique.attributes] == ["S"]:
            # The value may be typed in any spelling.
            key = unique.usable_key({unique.stored_names[0]: {"S": who[len(unique.prefix) :]}})
        if key is None or len(key.encode()) > PARTITION_KEY_MAX_BYTES:
            return None
        guard: Item | None = self.model._read_guard(key)
        user = self._get(text_of(guard, OWNER))
        has_it = user is not None and key in self.model.guard_keys_of(user.stored).values()
        return user if has_it else guard

    def _get(self, pk: str) -> AbstractAccount | None:
        with suppress(self.model.DoesNotExist):
            return self.model._get_owner(pk)
        return None

    def read_account(
        self, pk: str, also: Sequence[PlainModel | Address] = ()
    ) -> tuple[AbstractAccount, list[dict[str, str]], list[Item | None]]:
        """The account `pk`, its guard items, and the stored items `also`, all at one instant.

        For each guard item that the account must have: `key`; `owner` (empty without one);
        `owner_url`, the page of the owner; and `state`, which is `sound`, or what `checkguards`
        would report.

        Costs 2 requests, 1 read unit, and 2 more for each of these items. Each guard item that
        names another owner costs 1 more request.

        Raises:
            DoesNotExist: there is no such account.
            DamagedItem: it cannot be read.
        """
        model = self.model
        user = model._get_owner(pk)
        address = model._guard_table().address
        for _attempt in range(ATTEMPTS):
            keys = list(model.guard_keys_of(user.stored).values())
            item, *others = read_together([user, *map(address, keys), *also])
            if item is None:
                raise model.DoesNotExist
            user = model.from_raw_data(item)
            if list(model.guard_keys_of(user.stored).values()) == keys:
                break
        guards = [self._guard(key, user, guard) for key, guard in zip(keys, others, strict=False)]
        return user, guards, others[len(keys) :]

    def _guard(self, key: str, user: AbstractAccount, stored: Item | None) -> dict[str, str]:
        snapshot = Snapshot(self.model, key, stored, {user.pk: user.stored})
        if snapshot.owner not in {None, user.pk}:
            # The finding depends on the account that the guard item names.
            snapshot = Snapshot.read(self.model, key, [user.pk])
        findings = snapshot.findings(self.model.date_joined.attr_name)
        owner = text_of(snapshot.guard, OWNER)
        return {
            "key": key,
            "owner": owner,
            # The owner in a damaged guard item may be any text.
            "owner_url": self.url("change", self.model(owner)) if as_uuid(owner) else "",
            "state": findings[0].fault if findings else "sound",
        }

    def shown_values(self, user: AbstractAccount) -> list[tuple[object, object]]:
        """The labels and values of `shown_fields`."""
        names: Iterable[str] | None = self.shown_fields
        if names is None:
            names = self.model.typed_attributes().keys() - {"username", "email"}
        fields = self.model._meta.by_name.items()
        return [
            (capfirst(field.verbose_name), getattr(user, name))
            for name, field in fields
            if name in names and not getattr(field.attribute, "sensitive", False)
        ]

    def account_context(self, pk: str) -> dict[str, Any]:
        """The context of the page of the account. Raises the errors of `read_account`.

        Costs 2 requests.

        A subclass reads further items at the same instant (`also`), and adds to the context.
        """
        user, guards, _others = self.read_account(pk)
        return {"shown": user, "guards": guards, "values": self.shown_values(user)}

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: Context = None,
    ) -> HttpResponse:
        """The page of the values that are stored for an account, without its password hash.

        Costs 4 requests.
        """
        log = list_entries(journal_of(self.model(object_id)), limit=SHOWN_ENTRIES)
        # The page has its own links to the history and to the deletion.
        context: dict[str, Any] = {"log": log, "pk": object_id, "show_delete": False}
        try:
            context |= self.account_context(object_id)
        except self.model.DoesNotExist:
            if log:
                messages.warning(request, _("This account was deleted."))
                return redirect(self.url("history", self.model(object_id)))
        except DamagedItem:
            pass  # the page says so
        else:
            user = context["shown"]
            context["values"] = [(label, value) for label, value in context["values"] if value]
            context |= {
                "standing": self.standing(user),
                "sessions": [
                    (item, browser_name(item.browser)) for item in sessions.active_sessions(user)
                ],
                "user_page": f"admin:{self._url_name('change')}",
                "is_own": user == signed_in(request),
                "may_write": self.admin_site.may_write(request, user),
                "may_act": self.has_act_permission(request) and self._is_below(request, user),
                "may_delete": self.has_delete_permission(request, user),
            }
        return super().change_view(
            request, object_id, form_url, {**context, **(extra_context or {})}
        )


if settings.AUTH_USER_MODEL == "accounts.User":
    admin.site.register(account_model(), AccountAdmin)
