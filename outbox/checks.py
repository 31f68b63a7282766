"""The system check of waiting tasks, under the tag `dynamodb` as those of `dynamo.tables`.

outbox.E001   OPTIONS in TASKS cannot be used (checked by the backend)
outbox.W001   a task has waited for long: most likely no worker runs
"""

from django.core.checks import CheckMessage, Warning, register

from dynamo import DynamoError
from outbox.steps import LONG_SECONDS, waited_seconds
from outbox.worker import partitions


@register("dynamodb", deploy=True)
def check_workers(**_options: object) -> list[CheckMessage]:
    """Whether tasks wait and nothing runs them. Costs half a read unit per shard."""
    try:
        waits = max((waited_seconds(partition) for partition in partitions()), default=0)
    except DynamoError:
        # The check of `dynamo.tables.checks` reports the error.
        return []
    if waits < LONG_SECONDS:
        return []
    text = f"A task has waited for {waits:,.0f} seconds."
    return [Warning(text, hint="Run manage.py runtasks.", id="outbox.W001")]
