"""Contrib's tags, in this app of another name; `admin_list` here goes before contrib's."""

from django.contrib.admin import templatetags

__path__ = [*__path__, *templatetags.__path__]
