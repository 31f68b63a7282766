"""System checks of the site as a whole, run by `check --deploy`, and the check at its start.

project.E001   a static file was not collected: the site would not start
project.W001   a static file changed after it was collected
project.W002   every Host header is accepted
project.W003   no mail server is configured
"""

from collections.abc import Iterator
from filecmp import cmp
from operator import itemgetter

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage, staticfiles_storage
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.files.storage import Storage

_COLLECT = "Run manage.py collectstatic --no-input."


def stop_without_static_files() -> None:
    """End the start with one line if `collectstatic` was forgotten.

    Otherwise, every page would be a 500, because in production pages read the names of files from
    the manifest that `collectstatic` writes.
    """
    if problem := _missing_files():
        raise SystemExit(f"The site cannot start: {problem} {_COLLECT}")


@register(Tags.staticfiles, deploy=True)
def check_collected(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    """Compare the static files with the collected ones. Reads all of them.

    Finds nothing if none were collected yet, because the check often runs before. The start fails
    then.
    """
    storage = _manifest_storage()
    if storage is None or not storage.hashed_files:
        return []
    if problem := _missing_files():
        return [Error(problem, hint=_COLLECT, id="project.E001")]
    return [
        Warning(f"{name} changed after it was collected.", hint=_COLLECT, id="project.W001")
        for name, found in sorted(_files(), key=itemgetter(0))
        # The copy without a hash in its name is compared, because URLs are replaced in the other
        # one.
        if not storage.exists(name) or not cmp(found.path(name), storage.path(name), shallow=False)
    ]


def _missing_files() -> str:
    storage = _manifest_storage()
    if storage is None:
        return ""
    if not storage.hashed_files:
        return f"there are no static files in {settings.STATIC_ROOT}."
    missing = [
        name for name, _storage in _files() if storage.hash_key(name) not in storage.hashed_files
    ]
    return f"{', '.join(sorted(missing))} is not among the static files." if missing else ""


def _manifest_storage() -> ManifestStaticFilesStorage | None:
    """The storage; None if it keeps no manifest, as in development."""
    storage = staticfiles_storage
    return storage if isinstance(storage, ManifestStaticFilesStorage) else None


def _files() -> Iterator[tuple[str, Storage]]:
    """The files that `collectstatic` would collect: names, and where each one is found."""
    for finder in get_finders():
        yield from finder.list(["CVS", ".*", "*~"])


@register(Tags.security, deploy=True)
def check_allowed_hosts(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    problem = "DJANGO_ALLOWED_HOSTS is *: the site accepts every Host header."
    warning = Warning(problem, hint="List the host names of the site.", id="project.W002")
    return [warning] if "*" in settings.ALLOWED_HOSTS else []


@register(Tags.security, deploy=True)
def check_mail_server(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    problem = "EMAIL_URL is not set: mails go to a server on this machine."
    hint = "Set it to a mail server, also to one on this machine."
    return [] if settings.EMAIL_IS_CONFIGURED else [Warning(problem, hint=hint, id="project.W003")]
