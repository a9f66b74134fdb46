"""The ends of jobs for threads: each once, by an iterator or a callback, acknowledged when they were dealt with."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pytest

from adapters.blocking import BlockingCompletion, BlockingSupervisor

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE: Final = 30.0
SHORT: Final = 0.05
"""A limit of a wait that is to run out."""


def test_completions_by_callback_are_acknowledged_after_it_returned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that raises is reported, is not acknowledged, and stops no other one."""
    caplog.set_level(logging.ERROR)
    done: list[str] = []
    more = threading.Condition()

    def callback(completion: BlockingCompletion) -> None:
        with more:
            done.append(completion.receipt.capture_id)
            more.notify_all()
        if len(done) == 1:
            raise ZeroDivisionError("in the callback")

    with BlockingSupervisor(tmp_path) as supervisor:
        subscription = supervisor.on_completion(callback)
        jobs = []
        for number in range(3):
            jobs.append(supervisor.start(["true"]).capture_id)
            with more:
                assert more.wait_for(lambda wanted=number + 1: len(done) == wanted, PATIENCE)
        subscription.stop(PATIENCE)
        left = supervisor.start(["true"]).wait(PATIENCE).capture_id
    assert done == jobs
    (report,) = caplog.records
    assert report.exc_info is not None
    assert report.exc_info[0] is ZeroDivisionError
    assert jobs[0] in report.getMessage()
    with BlockingSupervisor(tmp_path) as again:
        found = again.completions(timeout=PATIENCE)
        told = {completion.receipt.capture_id: completion.redelivered for completion in (next(found), next(found))}
    assert told == {jobs[0]: True, left: False}


def test_a_callback_that_has_not_returned_has_acknowledged_nothing(tmp_path: Path) -> None:
    """Closing waits for it, and for its acknowledgement; from inside, `stop` returns at once."""
    subscribed, entered, go = threading.Event(), threading.Event(), threading.Event()
    supervisor = BlockingSupervisor(tmp_path).open()

    def callback(completion: BlockingCompletion) -> None:
        assert subscribed.wait(PATIENCE)
        subscription.stop()
        entered.set()
        assert go.wait(PATIENCE)
        seen.append(completion.receipt.capture_id)

    seen: list[str] = []
    job = supervisor.start(["true"])
    marker = tmp_path / "tool-outputs" / "captures" / job.capture_id / "delivered"
    job.wait(PATIENCE)
    subscription = supervisor.on_completion(callback)
    subscribed.set()
    assert entered.wait(PATIENCE)
    before = marker.read_bytes()
    with pytest.raises(TimeoutError, match="callback"):
        supervisor.close(SHORT)
    assert marker.read_bytes() == before
    go.set()
    supervisor.close(PATIENCE)
    assert seen == [job.capture_id]
    assert marker.read_bytes() != before


def test_completions_are_shared_by_threads_each_once(supervisor: BlockingSupervisor) -> None:
    """One iterator, asked by several; a limit that runs out loses none."""
    ends = supervisor.completions(timeout=0.001)
    got: list[str] = []
    deadline = time.monotonic() + PATIENCE

    def work() -> None:
        while len(got) < 8 and time.monotonic() < deadline:
            try:
                end = next(ends)
            except TimeoutError:
                continue
            got.append(end.receipt.capture_id)
            end.acknowledge()

    with ThreadPoolExecutor(3) as pool:
        working = [pool.submit(work) for _ in range(3)]
        jobs = [supervisor.start(["true"]).capture_id for _ in range(8)]
        for each in working:
            each.result()
    assert sorted(got) == sorted(jobs)
