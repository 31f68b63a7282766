"""The helper process: what it computes, how it ends, and what its parent does then."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dynamo.exceptions import Busy
from dynamo.runtime.deadline import page_deadline
from dynamo.runtime.gates import in_turn
from invoices.output import helper
from invoices.output.helper import HelperEnded, HelperFailed, run_in_helper
from tests import computations
from tests.forked import in_a_child
from tests.programs import start
from tests.waiting import wait_until


@pytest.fixture(scope="module", autouse=True)
def _helper_of_this_module() -> Iterator[None]:
    end_helper()
    yield
    end_helper()


@pytest.fixture
def new_helper() -> Iterator[None]:
    """The settings and the memory of a helper are those of its start."""
    end_helper()
    yield
    end_helper()


def end_helper() -> None:
    """End the helper. The site never needs to."""
    made = helper._helper.made()
    if made is not None and made.process is not None:
        made.process.kill()
        made.process.wait()
    helper._helper.reset()


def is_running(pid: int) -> bool:
    """Whether the process runs. One that has ended, and was not waited for, does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def under_way(function: Callable[[str], None], folder: Path) -> Iterator[tuple[int, Any]]:
    """The id of the helper while it computes `function`, and the future of its result."""
    began = folder / "began"
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(run_in_helper, function, str(began))
        wait_until(lambda: began.exists() or result.done())
        try:
            yield int(began.read_text()), result
        finally:
            end_helper()


def test_all_threads_have_one_helper(at_once: Callable[..., list[Any]]) -> None:
    found = set(at_once(lambda number: run_in_helper(computations.process_id, number)))

    assert len(found) == 1
    assert found != {os.getpid()}


def test_a_helper_that_is_killed_while_it_computes_is_replaced(tmp_path: Path) -> None:
    with under_way(computations.never_end, tmp_path) as (pid, result):
        os.kill(pid, signal.SIGSEGV)

        with pytest.raises(HelperEnded, match=str(signal.strsignal(signal.SIGSEGV))) as caught:
            result.result()

    assert caught.value.code == -signal.SIGSEGV
    assert run_in_helper(computations.process_id) not in {pid, os.getpid()}


def test_a_helper_that_is_killed_while_it_is_idle_is_replaced_without_an_error() -> None:
    before = run_in_helper(computations.process_id)
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: not is_running(before))

    assert run_in_helper(computations.process_id) != before


def test_an_exception_is_returned_with_its_traceback_and_the_helper_goes_on() -> None:
    before = run_in_helper(computations.process_id)

    with pytest.raises(HelperFailed, match=r"(?s)in fail.*LookupError: of no use"):
        run_in_helper(computations.fail)

    assert run_in_helper(computations.process_id) == before


def test_a_computation_that_uses_a_core_for_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(helper, "CPU_SECONDS", 0.2)

    with pytest.raises(HelperEnded) as caught:
        run_in_helper(computations.use_a_core, str(tmp_path / "began"))

    assert caught.value.code == -signal.SIGPROF


def test_a_computation_that_waits_for_too_long_is_ended_by_its_parent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Started before, as that takes long on a slow machine.
    assert run_in_helper(computations.process_id)
    monkeypatch.setattr(helper, "SECONDS", 2)

    with under_way(computations.never_end, tmp_path) as (pid, result):
        # It does not end itself.
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(HelperEnded) as caught:
            result.result()

    assert caught.value.code == -signal.SIGKILL


@pytest.mark.usefixtures("new_helper")
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limit")
def test_a_computation_that_takes_too_much_memory_is_ended() -> None:
    most = helper.MOST_BYTES // 1024 // 1024
    assert run_in_helper(computations.take_memory, most // 4)

    with pytest.raises(HelperEnded):
        run_in_helper(computations.take_memory, most)


def test_a_computation_that_does_not_get_its_turn_is_refused(tmp_path: Path) -> None:
    with under_way(computations.never_end, tmp_path) as (pid, _result):
        with page_deadline(0.1), pytest.raises(Busy, match="no free slot"):
            run_in_helper(computations.mark, str(tmp_path / "late"))
        os.kill(pid, signal.SIGKILL)

    assert not (tmp_path / "late").exists()


@pytest.mark.usefixtures("new_helper")
def test_the_helper_has_neither_secrets_nor_the_settings_of_aws(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    monkeypatch.setenv("AWS_SESSION_TOKEN", "secret")

    found = run_in_helper(computations.environment)

    assert {name for name in found if name.startswith(("AWS_", "DJANGO_"))} == set()
    assert run_in_helper(computations.unknown_setting, "EXPORTS_BUCKET") is None
    assert run_in_helper(computations.unknown_setting, "TIME_ZONE") == "Asia/Tokyo"


def test_the_end_of_a_server_and_ctrl_c_reach_the_helper_through_its_parent_only() -> None:
    before = run_in_helper(computations.process_id)

    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(before, number)

    assert run_in_helper(computations.process_id) == before


def test_a_child_that_is_forked_in_the_middle_of_a_computation_has_a_helper_of_its_own(
    tmp_path: Path,
) -> None:
    with under_way(computations.never_end, tmp_path) as (pid, result):

        def child() -> None:
            theirs = run_in_helper(computations.process_id)
            assert theirs not in {pid, os.getpid()}
            assert run_in_helper(computations.process_id) == theirs

        assert in_a_child(child) == 0
        assert not result.done()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(HelperEnded):
            result.result()


#: A parent with a helper. Its first argument says what both do.
_PARENT = """
import os, sys, threading
from django.conf import settings
import django
django.setup()
from tests import computations
from invoices.output import helper
kind, folder = sys.argv[1:]
if __name__ == "__main__":
    helper.run_in_helper(computations.mark, f"{folder}/helper")
    if kind == "in the middle":
        # Of the orphan, which its parent does not end.
        helper.SECONDS = 3
        busy = [computations.never_end, f"{folder}/busy"]
        threading.Thread(target=helper.run_in_helper, args=busy).start()
    if kind == "with a forked sibling" and not os.fork():
        computations.mark(f"{folder}/sibling")
        threading.Event().wait()
    if kind != "at its end":
        threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("kind", "waits_for"),
    [("in the middle", "busy"), ("with a forked sibling", "sibling"), ("at its end", "helper")],
)
def test_the_helper_ends_with_its_parent(kind: str, waits_for: str, tmp_path: Path) -> None:
    with start("-c", _PARENT, kind, tmp_path, stderr=False) as parent:
        try:
            wait_until((tmp_path / waits_for).exists)
            pid = int((tmp_path / "helper").read_text())
            if kind == "at its end":
                assert parent.wait(120) == 0
            else:
                assert is_running(pid)
                parent.kill()
                parent.wait()

            wait_until(lambda: not is_running(pid))
        finally:
            parent.kill()
            if kind == "with a forked sibling":
                os.kill(int((tmp_path / waits_for).read_text()), signal.SIGKILL)


@pytest.mark.usefixtures("new_helper")
def test_a_process_that_does_one_thing_at_a_time_computes_for_itself() -> None:
    helper.compute_here()

    assert run_in_helper(computations.process_id) == os.getpid()
    assert helper._helper.made() is None


def test_a_page_passes_its_turn_on_while_the_helper_computes(tmp_path: Path) -> None:
    turns = threading.Semaphore(1)

    def make_a_page() -> None:
        with in_turn(turns):
            run_in_helper(computations.never_end, str(tmp_path / "began"))

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(make_a_page)
        wait_until((tmp_path / "began").exists)
        with page_deadline(60), in_turn(turns):
            os.kill(int((tmp_path / "began").read_text()), signal.SIGKILL)
        with pytest.raises(HelperEnded):
            first.result()
