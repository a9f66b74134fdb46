"""What the tests of the rules share: a text as it becomes, the same in one chunk, byte by byte and cut in two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from supervisor.sansio.engines.stdlib import engine_for
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.redactor import Redactor
from supervisor.sansio.rules import DEFAULT_RULES, RuleSet

if TYPE_CHECKING:
    from collections.abc import Callable

NOTHING = NeedleSet.build()


@pytest.fixture(scope="session")
def redacted() -> Callable[..., str]:
    """Return a function that redacts a text by rules alone, in many ways that must agree."""

    def become(text: str, rules: RuleSet = DEFAULT_RULES, end: str = "finish") -> str:
        engine = engine_for(NOTHING, rules)
        middle = len(text) // 2
        results = set()
        for chunks in ([text], list(text), [text[:middle], text[middle:]]):
            for bulk in (True, False):
                subject = Redactor(NOTHING, rules, engine)
                shown = b"".join(subject.feed(chunk.encode(), bulk=bulk) for chunk in chunks)
                results.add((shown + getattr(subject, end)()).decode())
        assert len(results) == 1
        return results.pop()

    return become
