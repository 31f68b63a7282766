"""`shell`: Django's, which imports the models of the library as well."""

from django.core.management.commands import shell

from dynamo.client.plain import all_models


class Command(shell.Command):
    """Django's command, which also imports the models of DynamoDB."""

    def get_auto_imports(self) -> list[str]:
        # As in Django, a model of an earlier app hides one of the same name.
        models = [model for model in all_models() if model._meta.app_config]
        ours = [f"{model.__module__}.{model.__name__}" for model in models]
        return [*(super().get_auto_imports() or ()), *reversed(ours)]
