#!/usr/bin/env python
"""Django's command-line utility for administrative tasks."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from django.core.management import execute_from_command_line
    from django.utils.autoreload import DJANGO_AUTORELOAD_ENV, run_with_reloader

    reloads = sys.argv[1:2] == ["runserver"] and "--noreload" not in sys.argv
    if reloads and os.environ.get(DJANGO_AUTORELOAD_ENV) != "true":
        # This process only restarts the one that serves. Django would load the site in both, one
        # after the other, and the first page would take twice as long.
        run_with_reloader(execute_from_command_line)
        return
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
