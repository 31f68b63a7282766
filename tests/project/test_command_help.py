from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand


def _unexplained(command: BaseCommand) -> set[str]:
    """The arguments that `--help` names without saying what they are."""
    parser = command.create_parser("manage.py", "command")
    return {"/".join(one.option_strings) or one.dest for one in parser._actions if not one.help}


def test_help_explains_each_argument_of_our_commands() -> None:
    found = {}
    for name, app in get_commands().items():
        command = load_command_class(app, name)
        django = next(kind for kind in type(command).mro() if kind.__module__.startswith("django."))
        of_django = set() if django is BaseCommand else _unexplained(django())
        if not app.startswith("django.") and (ours := _unexplained(command) - of_django):
            found[name] = ours

    assert found == {}
