"""Contrib's."""

from django.contrib.admin.templatetags.log import register as register
