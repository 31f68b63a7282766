"""The WSGI application."""

import os

import django
from django.core.wsgi import get_wsgi_application

from project.collected import stop_if_not

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

# Before the middlewares are made, one of which would warn of the missing folder in its own words.
django.setup(set_prefix=False)
stop_if_not()
application = get_wsgi_application()
