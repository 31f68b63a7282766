"""Whether `collectstatic` was run, without which every page of production would be a 500.

There pages name static files by the manifest that it writes, under names that contain a hash, so
that browsers may keep them for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.storage import ManifestFilesMixin, staticfiles_storage
from django.core.files.storage import Storage


def stop_if_not() -> None:
    """End the start with one line where a page would look for a file in vain.

    SystemExit, as for settings: see `project.environment`.
    """
    if wrong := complaint():
        raise SystemExit(f"The site cannot start: {wrong} Run manage.py collectstatic --no-input.")


def are_none() -> bool:
    """Whether pages need a manifest, and `collectstatic` never wrote one."""
    storage = _manifest()
    return storage is not None and not storage.hashed_files


def complaint() -> str:
    """Which static files are not collected, in a sentence; empty where all are, or need not be."""
    storage = _manifest()
    if storage is None:
        return ""
    known = storage.hashed_files
    if are_none():
        return f"there are no static files in {settings.STATIC_ROOT}."
    absent = [name for name, _found in _files() if storage.hash_key(name) not in known]
    return f"{', '.join(sorted(absent))} is not among the static files." if absent else ""


def outdated() -> list[str]:
    """The static files that have changed since they were collected. Reads all of them."""
    storage = _manifest()
    if storage is None:
        return []
    return sorted(
        name for name, found in _files() if _bytes(found, name) != _collected(storage, name)
    )


def _manifest() -> Any:
    """The storage, where it keeps a manifest; else None."""
    storage: Any = staticfiles_storage
    return storage if isinstance(storage, ManifestFilesMixin) else None


def _files() -> Iterator[tuple[str, Storage]]:
    """What `collectstatic` would collect: names, and where each is found."""
    for finder in get_finders():
        yield from finder.list(["CVS", ".*", "*~"])


def _collected(storage: Storage, name: str) -> bytes | None:
    # The copy under its own name: in the other one the addresses of files are replaced.
    return _bytes(storage, name) if storage.exists(name) else None


def _bytes(storage: Storage, name: str) -> bytes:
    with storage.open(name) as file:
        content: bytes = file.read()
        return content
