"""Fixtures of the tests of `dynamo`."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin import site as default_site
from django.contrib.admin.sites import all_sites
from django.test import override_settings
from django.utils import translation

from dynamo.admin import AdminSite
from dynamo.auth import permissions
from tests.dynamo.adminpages import PROJECT

#: That of the site has other pages.
ADMIN_SITE = AdminSite()


@pytest.fixture(scope="module")
def cheap_collections() -> None:
    """Garbage collections of this module leave out what earlier tests made: it takes a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=[True, False], ids=["lean", "botocore"])
def path(request: pytest.FixtureRequest, settings: Any) -> None:
    """Send requests by the direct path, and by botocore's."""
    settings.DYNAMODB_LEAN = request.param


@pytest.fixture(scope="module")
def _settings_of_project() -> Iterator[None]:
    # For all tests of the module: then the templates are compiled and the URLs read once.
    # Without pytest's patches, which look at the site before it can be made.
    before, vars(default_site)["_wrapped"] = vars(default_site)["_wrapped"], ADMIN_SITE
    try:
        # First, because contrib.auth looks for it as soon as the apps change.
        with override_settings(AUTH_USER_MODEL="desk.Clerk"), override_settings(**PROJECT):
            yield
    finally:
        vars(default_site)["_wrapped"] = before


@pytest.fixture
def project(_settings_of_project: None) -> Iterator[None]:
    """A project that has nothing of the site, with the test app.

    After its first use all tests of the module have it.
    """
    permissions._read.clear()
    yield
    permissions._read.clear()
    # LocaleMiddleware leaves the language of its last page active in the thread.
    translation.deactivate()


@pytest.fixture
def site(project: None) -> Iterator[AdminSite]:
    """A site of its own, which `check` of other tests does not find."""
    site = AdminSite()
    yield site
    all_sites.discard(site)
