"""Which engine searches, when, on which thread, and what happens without hyperscan (contract C5)."""

from __future__ import annotations

import gc
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from supervisor import PIPE, Supervisor, matching
from supervisor.matching import BUILD_AFTER_BYTES, fastest, matcher_for
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.rules import DEFAULT_RULES, NO_RULES, Rule
from supervisor.sansio.sanitizer import Sanitizer

if TYPE_CHECKING:
    from pathlib import Path

NEEDLES = NeedleSet.build({"A": "hunter2sec9"})
LINE = b"hunter2sec9 AKIA" + b"IOSFODNN7EXAMPLE.\n"
CLEAN = b"[REDACTED:A] AKIA[REDACTED:aws-key-id].\n"
LARGE = Rule(
    name="large",
    lead="large_",
    value="[a-z]",
    minimum=1,
    ahead="(?:[a-z]{1,99}[0-9]{1,99}){0,32}x",
    source="this test",
    example="large_ab",
    near_miss="large",
)
"""An expression beyond what hyperscan compiles."""


async def enough(matcher: matching.Matcher) -> None:
    """Search as much as it takes to have the fastest engine built, and wait for it."""
    matcher.scan(b"\n" * BUILD_AFTER_BYTES, 0)
    assert matcher.building is not None
    await matcher.building


@pytest.mark.asyncio
async def test_a_long_output_is_searched_with_hyperscan_and_a_short_one_is_not_worth_it() -> None:
    """Before and after, and with what was held while it changed, the text is the same."""
    pytest.importorskip("hyperscan")
    matcher = matching.Matcher(NEEDLES)
    sanitizer = Sanitizer(NEEDLES, engine=matcher)
    assert sanitizer.feed(LINE + LINE[:7], bulk=True) + sanitizer.quiet() == CLEAN
    assert (matcher.name, matcher.building) == ("stdlib", None)
    await enough(matcher)
    assert matcher.name == "hyperscan"
    assert sanitizer.feed(LINE[7:]) == CLEAN
    assert not matcher.is_clean(b"\x1b")
    assert matcher.is_clean(b"a")


@pytest.mark.asyncio
async def test_it_is_built_once_and_leaves_no_thread() -> None:
    """However much is searched."""
    matcher = matching.Matcher(NEEDLES)
    await enough(matcher)
    building = matcher.building
    matcher.scan(b"\n" * BUILD_AFTER_BYTES, 0)
    assert matcher.building is building
    assert matching.THREAD not in {thread.name for thread in threading.enumerate()}


def test_streams_of_one_thread_share_a_matcher() -> None:
    """Of the same needles and rules; other threads have their own, for hyperscan's scratch space is one scan's."""
    matcher = matcher_for(NEEDLES)
    assert matcher_for(NEEDLES) is matcher
    assert matcher_for(NeedleSet.build({"A": "hunter2sec9"}, rules=NO_RULES)) is not matcher
    found = []
    thread = threading.Thread(target=lambda: found.append(matcher_for(NEEDLES)))
    thread.start()
    thread.join()
    assert found[0] is not matcher


def test_a_matcher_is_forgotten_with_its_needles() -> None:
    """A supervisor's needles change with the environments of its children."""
    needles = NeedleSet.build({"A": "hunter2sec9"})
    gc.collect()  # those of other tests
    before = len(matching._matchers())
    matcher_for(needles)
    assert len(matching._matchers()) == before + 1
    del needles
    assert len(matching._matchers()) == before


@pytest.mark.asyncio
async def test_what_hyperscan_refuses_the_standard_library_searches_for() -> None:
    """A caller's rule may be too large for it."""
    rules = DEFAULT_RULES.with_rules([LARGE])
    assert fastest(NEEDLES.values, rules) is None
    matcher = matching.Matcher(NeedleSet.build({"A": "hunter2sec9"}, rules=rules))
    await enough(matcher)
    assert matcher.name == "stdlib"


@pytest.mark.asyncio
async def test_without_hyperscan_the_standard_library_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no wheel the import fails, and nothing else does."""
    assert matching.engine_name() in {"hyperscan", "stdlib"}
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    monkeypatch.delitem(sys.modules, "supervisor.sansio.engines.hyperscan", raising=False)
    assert matching.engine_name() == "stdlib"
    matcher = matching.Matcher(NEEDLES)
    await enough(matcher)
    assert matcher.name == "stdlib"


@pytest.mark.asyncio
async def test_without_a_thread_to_spare_the_standard_library_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of threads, or an interpreter at its end, costs speed and no output."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    matcher = matching.Matcher(NEEDLES)
    await enough(matcher)
    assert matcher.name == "stdlib"
    assert matcher.scan(b"hunter2sec9", 0).occurrences == [(0, 11, 0)]


@pytest.mark.asyncio
async def test_a_jobs_streams_are_searched_by_the_loops_matcher(tmp_path: Path) -> None:
    """For what was known at the job's start, and for what it is told while it runs; the closing waits for building."""
    much = f"yes | head -c {BUILD_AFTER_BYTES}"
    command = f"echo hunter2sec9; {much}; read line; yes later3val4 | head -n 9; {much}"
    async with Supervisor(tmp_path, secrets={"A": "hunter2sec9"}) as supervisor:
        before = matcher_for(supervisor._services.needles(None))
        job = await supervisor.start(command, shell=True, stdin=PIPE)
        shown = 0
        async for page in job.follow("stdout"):
            shown += len(page.text)
            if shown == len("[REDACTED:A]\n") + BUILD_AFTER_BYTES:
                break
        supervisor.add_secret("B", "later3val4")
        await job.write(b"\n")
        receipt = await job.wait()
        after = matcher_for(supervisor._services.needles(None))
    stream = receipt.streams["stdout"]
    assert stream is not None
    assert stream.redactions == {"A": 1, "B": 9}
    for matcher in (before, after):
        assert matcher.building is not None
        assert matcher.building.done()
    assert before is not after
