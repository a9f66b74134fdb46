"""Which engine is used, on which thread, and what happens without hyperscan (contract C5)."""

from __future__ import annotations

import sys
import threading

import pytest

from supervisor import matching
from supervisor.sansio.engines.stdlib import StdlibEngine
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.rules import DEFAULT_RULES, NO_RULES, Rule
from supervisor.sansio.sanitizer import Sanitizer

NEEDLES = NeedleSet.build({"A": "hunter2sec9"})
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


def test_streams_of_one_thread_share_an_engine() -> None:
    """Of the same needles and rules; it finds both."""
    engine = matching.engine_for(NEEDLES)
    assert matching.engine_for(NEEDLES) is engine
    assert matching.engine_for(NEEDLES, NO_RULES) is not engine
    text = Sanitizer(NEEDLES, engine=engine).feed(b"hunter2sec9 AKIA" + b"IOSFODNN7EXAMPLE.\n")
    assert text == b"[REDACTED:A] AKIA[REDACTED:aws-key-id].\n"


def test_each_thread_has_its_own() -> None:
    """Hyperscan's scratch space belongs to one scan; the standard library's engine may be shared."""
    pytest.importorskip("hyperscan")
    found = []
    thread = threading.Thread(target=lambda: found.append(matching.engine_for(NEEDLES)))
    thread.start()
    thread.join()
    assert found[0] is not matching.engine_for(NEEDLES)


def test_an_engine_is_forgotten_with_its_needles() -> None:
    """A supervisor's needles change with the environments of its children."""
    needles = NeedleSet.build({"A": "hunter2sec9"})
    before = len(matching._built.engines)
    matching.engine_for(needles)
    assert len(matching._built.engines) == before + 1
    del needles
    assert len(matching._built.engines) == before


def test_what_hyperscan_refuses_the_standard_library_searches_for() -> None:
    """A caller's rule may be too large for it."""
    engine = matching.engine_for(NEEDLES, DEFAULT_RULES.with_rules([LARGE]))
    assert isinstance(engine, StdlibEngine)


def test_without_hyperscan_the_standard_library_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no wheel the import fails, and nothing else does."""
    assert matching.engine_name() in {"hyperscan", "stdlib"}
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    monkeypatch.delitem(sys.modules, "supervisor.sansio.engines.hyperscan", raising=False)
    assert matching.engine_name() == "stdlib"
    assert isinstance(matching.engine_for(NeedleSet.build({"A": "hunter2sec9"})), StdlibEngine)
