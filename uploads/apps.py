"""The uploads app."""

from __future__ import annotations

from django.apps import AppConfig

from uploads import bucket


class UploadsConfig(AppConfig):
    """Makes the table `uploads`, the commands, and the bucket of the template known."""

    name = "uploads"
    cloudformation = bucket.CLOUDFORMATION
