from locks._internal.registry import (
    BREAK_ATTEMPTS as BREAK_ATTEMPTS,
    HolderWatch as HolderWatch,
    LockView as LockView,
    State as State,
    all_locks as all_locks,
    break_lock as break_lock,
    look as look,
)
