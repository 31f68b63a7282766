from __future__ import annotations

from typing import Any

from django.core.management.commands import check

from dynamo.checks import TAG


class Command(check.Command):
    """Django's, but for this: our deployment checks need no `--deploy` when asked for by tag.

    Django knows checks that run always and checks that run with `--deploy`, and none that run
    only when asked for. Other tags named beside ours get their deployment checks as well.
    """

    def handle(self, *app_labels: Any, **options: Any) -> None:
        if TAG in (options["tags"] or []):
            options["deploy"] = True
        super().handle(*app_labels, **options)
