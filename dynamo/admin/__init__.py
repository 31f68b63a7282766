"""Django's admin for the models of this library, with contrib.admin's pages and names.

from dynamo import admin

Install `dynamo.admin` instead of `django.contrib.admin`; docs/admin.md describes it.
"""

from dynamo._internal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
