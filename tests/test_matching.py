"""Which engine searches, when, on which thread, and what happens without hyperscan (contract C5)."""

from __future__ import annotations

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
LINES = 2 * BUILD_AFTER_BYTES // len("hunter2sec9\n")
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


def enough(matcher: matching.Matcher) -> None:
    """Search as much as it takes to have the fastest engine built, and wait for it."""
    matcher.scan(b"\n" * BUILD_AFTER_BYTES, 0)
    assert matcher.builder is not None
    matcher.builder.join()


def test_a_long_output_is_searched_with_hyperscan_and_a_short_one_is_not_worth_it() -> None:
    """Before and after, and with what was held while it changed, the text is the same."""
    pytest.importorskip("hyperscan")
    matcher = matching.Matcher(NEEDLES, DEFAULT_RULES)
    sanitizer = Sanitizer(NEEDLES, engine=matcher)
    assert sanitizer.feed(LINE + LINE[:7], bulk=True) + sanitizer.quiet() == CLEAN
    assert (matcher.name, matcher.builder) == ("stdlib", None)
    enough(matcher)
    assert matcher.name == "hyperscan"
    assert sanitizer.feed(LINE[7:]) == CLEAN
    assert not matcher.is_clean(b"\x1b")
    assert matcher.is_clean(b"a")


def test_it_is_built_once() -> None:
    """However much is searched."""
    matcher = matching.Matcher(NEEDLES, DEFAULT_RULES)
    enough(matcher)
    builder = matcher.builder
    matcher.scan(b"\n" * BUILD_AFTER_BYTES, 0)
    assert matcher.builder is builder


def test_streams_of_one_thread_share_a_matcher() -> None:
    """Of the same needles and rules; other threads have their own, for hyperscan's scratch space is one scan's."""
    matcher = matcher_for(NEEDLES)
    assert matcher_for(NEEDLES) is matcher
    assert matcher_for(NEEDLES, NO_RULES) is not matcher
    found = []
    thread = threading.Thread(target=lambda: found.append(matcher_for(NEEDLES)))
    thread.start()
    thread.join()
    assert found[0] is not matcher


def test_a_matcher_is_forgotten_with_its_needles() -> None:
    """A supervisor's needles change with the environments of its children."""
    needles = NeedleSet.build({"A": "hunter2sec9"})
    matchers = matching._made.__dict__.setdefault("matchers", {})
    before = len(matchers)
    matcher_for(needles)
    assert len(matching._made.matchers) == before + 1
    del needles
    assert len(matching._made.matchers) == before


def test_what_hyperscan_refuses_the_standard_library_searches_for() -> None:
    """A caller's rule may be too large for it."""
    rules = DEFAULT_RULES.with_rules([LARGE])
    assert fastest(NEEDLES.values, rules) is None
    matcher = matching.Matcher(NEEDLES, rules)
    enough(matcher)
    assert matcher.name == "stdlib"


def test_without_hyperscan_the_standard_library_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no wheel the import fails, and nothing else does."""
    assert matching.engine_name() in {"hyperscan", "stdlib"}
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    monkeypatch.delitem(sys.modules, "supervisor.sansio.engines.hyperscan", raising=False)
    assert matching.engine_name() == "stdlib"
    matcher = matching.Matcher(NEEDLES, DEFAULT_RULES)
    enough(matcher)
    assert matcher.name == "stdlib"


def test_without_a_thread_to_spare_the_standard_library_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of threads, or an interpreter at its end, costs speed and no output."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    matcher = matching.Matcher(NEEDLES, DEFAULT_RULES)
    assert matcher.scan(b"hunter2sec9" * 100_000, 0).occurrences
    assert matcher.name == "stdlib"


@pytest.mark.asyncio
async def test_a_jobs_streams_are_searched_by_the_loops_matcher(tmp_path: Path) -> None:
    """For what was known at the job's start, and for what it is told while it runs."""
    command = f"yes hunter2sec9 | head -n {LINES}; read line; yes later3val4 | head -n {LINES}"
    async with Supervisor(tmp_path, secrets={"A": "hunter2sec9"}) as supervisor:
        before = matcher_for(supervisor._services.needles(None))
        job = await supervisor.start(command, shell=True, stdin=PIPE)
        shown = 0
        async for page in job.follow("stdout"):
            shown += page.text.count("\n")
            if shown == LINES:
                break
        supervisor.add_secret("B", "later3val4")
        await job.write(b"\n")
        receipt = await job.wait()
        after = matcher_for(supervisor._services.needles(None))
    stream = receipt.streams["stdout"]
    assert stream is not None
    assert stream.redactions == {"A": LINES, "B": LINES}
    assert before.builder is not None
    assert after.builder is not None
    assert before is not after
