import os

import django
from django.core.wsgi import get_wsgi_application

from project.checks import stop_without_static_files

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

# Before the middlewares are made: one of them would warn about the missing folder.
django.setup(set_prefix=False)
stop_without_static_files()
application = get_wsgi_application()
