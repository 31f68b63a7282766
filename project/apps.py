from django.apps import AppConfig
from django.conf import settings


class ProjectConfig(AppConfig):
    name = "project"

    def ready(self) -> None:
        from project import checks, logs, parameters  # noqa: F401 - checks registers itself

        if settings.SECRET_KEY_PARAMETER:
            parameters.load_keys()
        if settings.METRICS_TOKEN:
            # Imported here, because nothing else needs prometheus-client.
            from project import metrics

            metrics.listen()
        logs.capture_python_messages()
