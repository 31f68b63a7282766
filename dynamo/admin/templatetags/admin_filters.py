"""Contrib's, which exists since Django 6.0."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from django import template

_CONTRIBS = "django.contrib.admin.templatetags.admin_filters"

register = import_module(_CONTRIBS).register if find_spec(_CONTRIBS) else template.Library()
