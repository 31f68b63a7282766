"""Contrib's."""

from django.contrib.admin.templatetags.admin_urls import register as register
