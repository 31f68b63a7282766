"""Django's admin for the models of this library, with contrib.admin's pages and names.

from dynamo import admin

Install `dynamo.admin` instead of `django.contrib.admin`; docs/admin.md describes it.
"""


def __getattr__(name: str) -> object:
    from dynamo.runtime.lazy import exported

    return exported(__name__, name)
