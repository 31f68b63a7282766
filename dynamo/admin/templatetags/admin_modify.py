"""Contrib's."""

from django.contrib.admin.templatetags.admin_modify import register as register
