"""Which engine searches: hyperscan where it is installed, else the one on the standard library.

Building hyperscan's database takes a few tenths of a second of a processor, which most commands' output is not worth
and no event loop has. So a stream begins with the standard library's engine, and once a set of needles has been
searched for in some megabytes, a thread builds the other. They find the same, so nobody can tell when it took over.

A database belongs to one thread at a time: the one that searches. All streams of one loop are on one thread and share
their matcher.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from .sansio.engines import stdlib
from .sansio.needles import NOTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sansio.engines import Engine, Findings
    from .sansio.needles import NeedleSet
    from .sansio.rules import RuleSet

BUILD_AFTER_BYTES: Final = 2 * 1024 * 1024
"""A third of the text that the standard library's engine searches while hyperscan's is built, on another processor."""
THREAD: Final = "spoolvisor-matching"


class Matcher:
    """An engine that begins at once and becomes the fastest that there is when it is worth it. Used on one thread."""

    def __init__(self, needles: NeedleSet) -> None:
        self.building: asyncio.Task[None] | None = None
        """The building of the fastest engine, once it was begun."""
        self._engine: Engine = stdlib.engine_for(needles)
        # Not the needles: they would keep themselves, as long as we are kept for them.
        self._values: Final = needles.values
        self._rules: Final = needles.rules
        self._before_building = BUILD_AFTER_BYTES

    @property
    def name(self) -> str:
        """The name of the engine that searches now."""
        return self._engine.name

    def is_clean(self, text: bytes) -> bool:
        """Whether `text` contains no control character or escape."""
        return self._engine.is_clean(text)

    def scan(self, buffer: bytes, start: int) -> Findings:
        """Return the needles that begin at `start` or later, overlapping ones included, and the leads anywhere."""
        if self._before_building > 0:
            self._before_building -= len(buffer)
            if self._before_building <= 0:
                self.building = asyncio.get_running_loop().create_task(self._build())
        return self._engine.scan(buffer, start)

    async def _build(self) -> None:
        # A thread of its own, which is gone when it is done: the loop's executor keeps its threads.
        loop = asyncio.get_running_loop()
        built: asyncio.Future[Engine | None] = loop.create_future()

        def build() -> None:
            engine = None
            try:
                engine = fastest(self._values, self._rules)
            finally:
                with suppress(RuntimeError):  # the loop was closed meanwhile
                    loop.call_soon_threadsafe(built.set_result, engine)

        thread = threading.Thread(target=build, name=THREAD)
        try:
            thread.start()
        except RuntimeError:  # there is no thread to spare, or the interpreter is at its end
            return
        try:
            engine = await asyncio.shield(built)
            self._engine = engine or self._engine
        finally:
            thread.join()


_made: Final = threading.local()


def _matchers() -> WeakKeyDictionary[NeedleSet, Matcher]:
    made: WeakKeyDictionary[NeedleSet, Matcher]
    made = _made.__dict__.setdefault("matchers", WeakKeyDictionary())
    return made


def matcher_for(needles: NeedleSet) -> Matcher:
    """Return this thread's matcher of `needles` and of their rules, kept as long as they are."""
    made = _matchers()
    if needles not in made:
        made[needles] = Matcher(needles)
    return made[needles]


def matcher_of(needles: NeedleSet, *, redact: bool) -> Matcher:
    """Return the matcher of a stream: without redaction one that finds control characters alone."""
    return matcher_for(needles if redact else NOTHING)


async def settled() -> None:
    """Return when nothing is being built on this loop, and so no thread is left. Cancellation: it goes on."""
    loop = asyncio.get_running_loop()
    tasks = [matcher.building for matcher in _matchers().values()]
    building = [task for task in tasks if task is not None and not task.done() and task.get_loop() is loop]
    if building:
        await asyncio.wait(building)


def fastest(values: Sequence[bytes], rules: RuleSet) -> Engine | None:
    """Build hyperscan's engine; None without it, or where a caller's rule is too large for it. Takes a while."""
    try:
        from .sansio.engines.hyperscan import HyperscanEngine, HyperscanError  # noqa: PLC0415 - it may be absent
    except ImportError:
        return None
    try:
        return HyperscanEngine(values, rules.rules)
    except HyperscanError:
        return None


def engine_name() -> str:
    """Return the name of the engine that long outputs are searched with."""
    try:
        from .sansio.engines.hyperscan import NAME  # noqa: PLC0415 - it may be absent
    except ImportError:
        return stdlib.NAME
    return NAME
