"""Contrib's; keys in URLs are those of `dynamo.admin.keys`."""

from __future__ import annotations

from django import template
from django.contrib.admin.templatetags.admin_urls import register as contribs

from dynamo.admin.keys import quote

register = template.Library()
register.filters.update(contribs.filters)
register.tags.update(contribs.tags)
register.filter("admin_urlquote", quote)
