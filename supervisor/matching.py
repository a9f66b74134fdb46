"""Which engine searches, on which thread: hyperscan where it is installed, else the one on the standard library.

Building hyperscan's database takes a few tenths of a second, and a database belongs to one thread, so engines are kept
for each thread and each set of needles. All streams of one loop are on one thread and share what they have in common.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from .sansio.engines import stdlib
from .sansio.rules import DEFAULT_RULES

if TYPE_CHECKING:
    from .sansio.engines import Engine
    from .sansio.needles import NeedleSet
    from .sansio.rules import RuleSet


class _Built(threading.local):
    """What a thread has built."""

    def __init__(self) -> None:
        self.engines: WeakKeyDictionary[NeedleSet, dict[RuleSet, Engine]] = WeakKeyDictionary()


_built: Final = _Built()


def engine_name() -> str:
    """Return the name of the engine that is in use."""
    try:
        from .sansio.engines.hyperscan import HyperscanEngine  # noqa: PLC0415 - it may be absent
    except ImportError:
        return stdlib.StdlibEngine.name
    return HyperscanEngine.name


def engine_for(needles: NeedleSet, rules: RuleSet = DEFAULT_RULES) -> Engine:
    """Return this thread's engine of `needles` and `rules`, built at the first call.

    It is kept as long as the needles are, and may be used on this thread only.
    """
    built = _built.engines.setdefault(needles, {})
    engine = built.get(rules)
    if engine is None:
        engine = built[rules] = _fastest(needles, rules)
    return engine


def _fastest(needles: NeedleSet, rules: RuleSet) -> Engine:
    """Build hyperscan's engine; the standard library's without it, or where a caller's rule is too large for it."""
    try:
        from .sansio.engines.hyperscan import HyperscanEngine, HyperscanError  # noqa: PLC0415 - it may be absent
    except ImportError:
        return stdlib.engine_for(needles, rules)
    try:
        return HyperscanEngine(needles.values, rules.rules)
    except HyperscanError:
        return stdlib.engine_for(needles, rules)
