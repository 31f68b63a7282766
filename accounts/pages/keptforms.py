"""Keeps forms that were typed but not sent, or sent after their session had ended.

Nothing is stored for a visitor who is not signed in. The sign-in page carries the form in one
hidden field, `FIELD`: signed, compressed, and without passwords, CSRF tokens and files. After the
sign-in the session has it, and the form's own page shows it again. It is never sent by itself.

A visitor who leaves a page with a form by one of its buttons (`LEAVE`), switches the language
there, or looks at the preview of an invoice, does not lose what was typed either: it is kept in the
same way.

Each form names the account on whose page it was opened, in the hidden field `OWNER`, and is shown
to this account only. The session cannot tell that: it is deleted at a sign-out, and another person
may have signed in in another tab.

A session keeps the newest forms (`MOST_KEPT`, `MAX_PACKED`), one for each URL that they were sent
to. It keeps a form for a day, or until a form that was sent to that URL is accepted. Therefore, the
page can be loaded again if its answer was lost. The session is written at the sign-in anyway; the
write that removes the form costs 1 request.
"""

from dataclasses import dataclass

from django.core import signing
from django.http import HttpRequest, QueryDict
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from dynamo.forms import REQUEST_ID_SECONDS
from dynamo.middleware import typed_fields

#: The hidden field of the sign-in page.
FIELD = "kept_form"

#: The hidden field of a form that names its account.
OWNER = "form_owner"

#: The name of a button that leads to another page of this site; its value is the address.
LEAVE = "leave"
#: The name of a button that removes a kept form and shows an empty one.
START_EMPTY = "start_empty"
#: This kept value says that the visitor left the page without sending the form.
LEFT = "left"

#: A session keeps a form for as long as its request id can be sent.
KEPT_SECONDS = REQUEST_ID_SECONDS

#: The largest number of forms in a session. It is small, because every page reads the session.
MOST_KEPT = 5

#: The size of the packed forms of a session, in characters. 200 lines of 200 random Japanese
#: characters have 130,000, and a session can hold 400,000.
MAX_PACKED = 250_000

_SALT = "accounts.pages.keptforms"
_KEY = "accounts.kept_forms"


@dataclass(frozen=True)
class KeptForm:
    """What was sent to the URL `path`, by a form that was opened by `account`."""

    path: str
    fields: list[tuple[str, str]]
    account: str


def owner_field(account: str) -> SafeString:
    """The hidden field `OWNER`, signed, for the forms of pages that `account` opens."""
    return format_html(
        '<input type="hidden" name="{}" value="{}">', OWNER, _owner_signer().sign(account)
    )


def pack(request: HttpRequest) -> str | None:
    """The form in `request` as text that only this site can make.

    Empty if there is nothing to keep, or if the form does not name its account, so that no page of
    this site sent it. None if it is too large to be kept.
    """
    fields = _typed(request)
    try:
        account = _owner_signer().unsign(request.POST.get(OWNER, ""))
    except signing.BadSignature:
        return ""
    return _packed(request.get_full_path(), fields, account) if fields else ""


def _typed(request: HttpRequest) -> list[tuple[str, str]]:
    return [(name, value) for name, value in typed_fields(request.POST) if name != OWNER]


def _packed(path: str, fields: list[tuple[str, str]], account: str) -> str | None:
    packed = signing.dumps([path, fields, account], salt=_SALT, compress=True)
    return packed if len(packed) <= MAX_PACKED else None


def unpack(packed: str) -> KeptForm | None:
    """The form, or None if the text was not made by `pack` within the last day."""
    try:
        return KeptForm(*signing.loads(packed, salt=_SALT, max_age=KEPT_SECONDS))
    except signing.BadSignature:
        return None


def keep(request: HttpRequest, packed: str, account: str) -> KeptForm | None:
    """Keep a packed form in the session of `account`, unless it belongs to another account.

    Replaces the form of the same URL, and drops the oldest if there are too many. Returns None if
    nothing was kept.
    """
    kept = unpack(packed)
    if kept is None or kept.account != account:
        return None
    forms = [*_others(request, kept.path), [kept.path, packed]][-MOST_KEPT:]
    while sum(len(packed) for _path, packed in forms) > MAX_PACKED:
        del forms[0]
    request.session[_KEY] = forms
    return kept


def _others(request: HttpRequest, path: str) -> list[list[str]]:
    """The kept forms of other URLs, oldest first."""
    return [item for item in request.session.get(_KEY, ()) if item[0] != path]


def keep_left(request: HttpRequest, url: str, account: str) -> bool:
    """Keep the form in `request`, whose page `url` the visitor leaves. False if it is too large.

    It is the form of `account`: a sign-in of another account would have changed the CSRF token.
    """
    packed = _packed(url, [*_typed(request), (LEFT, "yes")], account)
    keep(request, packed or "", account)
    return packed is not None


def kept_for(request: HttpRequest, url: str = "") -> QueryDict | None:
    """What was sent to `url`, by default that of `request`, and is kept in its session."""
    url = url or request.get_full_path()
    packed = dict(request.session.get(_KEY, ())).get(url)
    if packed is None:
        return None
    kept = unpack(packed)
    if kept is None:
        forget(request, url)
        return None
    return QueryDict(urlencode(kept.fields), mutable=True)


def newest_url(request: HttpRequest) -> str | None:
    """The URL of the newest kept form whose URL is that of `request` with a longer query."""
    here = request.get_full_path()
    here += "&" if "?" in here else "?"
    urls = [url for url, _packed in request.session.get(_KEY, ()) if url.startswith(here)]
    return next((url for url in reversed(urls) if kept_for(request, url)), None)


def forget(request: HttpRequest, url: str = "") -> None:
    """Remove the form that is kept for `url`, by default that of `request`."""
    others = _others(request, url or request.get_full_path())
    if len(others) < len(request.session.get(_KEY, ())):
        request.session[_KEY] = others


def _owner_signer() -> signing.Signer:
    return signing.Signer(salt="accounts.pages.keptforms.owner")
