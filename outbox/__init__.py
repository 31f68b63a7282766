"""Background tasks: a backend of Django's tasks framework whose tasks join transactions."""


def __getattr__(name: str) -> object:
    from dynamo.runtime.lazy import exported

    return exported(__name__, name)
