from outbox.backend import ImmediateBackend as ImmediateBackend, TaskBackend as TaskBackend
from outbox.tasks import Retry as Retry, Task as Task, TaskContext as TaskContext, task as task
