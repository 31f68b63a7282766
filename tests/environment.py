"""The environment of the suite, set before the settings are read (a pytest plugin, see addopts).

An `.env`, a profile or credentials of AWS on this machine are ignored, so that no test can reach a
real table. So are other variables that change answers: settings, proxies, the size and colors of
the terminal.
"""

import os
import signal

_SETTINGS = (
    "ACCOUNTS_",
    "AWS_",
    "DJANGO_",
    "DYNAMODB_",
    "EMAIL_",
    "EXPORTS_",
    "INVOICES_",
    "PROMETHEUS_",
)
#: What tools set that measure tests and start Python.
_OF_TOOLS = ("COV_", "PYTEST", "PYTHON")
_OF_TERMINALS = {"CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "PYTHON_COLORS"}


def clean_environment(**more: str) -> dict[str, str]:
    """The environment of this process without the settings of the site and of the suite."""
    ours = (*_SETTINGS, *_OF_TOOLS)
    return {name: os.environ[name] for name in os.environ if not name.startswith(ours)} | more


for name in list(os.environ):
    is_proxy = name.lower().endswith("_proxy")
    if name.startswith(_SETTINGS) or name in _OF_TERMINALS or is_proxy:
        del os.environ[name]

os.environ.update(
    DJANGO_SETTINGS_MODULE="project.settings",
    DJANGO_DEBUG="on",
    # The toolbar has its own tests.
    DJANGO_DEBUG_TOOLBAR="off",
    DJANGO_SECRET_KEY="of-the-tests-and-of-nothing-else-in-the-world-0123456789",
    DJANGO_ALLOWED_HOSTS="*",
    ACCOUNTS_SITE_ORIGIN="http://testserver",
    DYNAMODB_TABLE_PREFIX="",
    EMAIL_URL="memorymail://",
    # No fonts of the machine, whether installed or not; tests of fonts name their folder.
    INVOICES_FONT_FOLDER=os.devnull,
    # Connections are refused there; the fixture `engine_url` names an engine.
    AWS_ENDPOINT_URL_DYNAMODB="http://127.0.0.1:9",
    AWS_REGION="us-east-1",
    AWS_ACCESS_KEY_ID="tests",
    AWS_SECRET_ACCESS_KEY="tests",
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    AWS_EC2_METADATA_DISABLED="true",
)

# A suite that runs in the background or by nohup ignores these signals, and so would all programs
# that it starts.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)
