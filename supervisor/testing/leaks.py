"""What a process owns, before and after: children, tasks, descriptors, threads, cgroups."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

CLEARANCE: Final = 2.0
"""Seconds that an end may take to become visible: the last line of a thread, a pipe that the loop closes at its next
turn. Nothing waits for them to pass unless something is left."""
LOOK_AGAIN: Final = 0.005
"""Seconds between two looks."""
LOOKS_UNCOLLECTED: Final = 100
"""Looks between two collections, of which one takes as long as twenty looks."""
HIERARCHIES: Final = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
"""Where the unified hierarchy is mounted, by itself or beside those of version 1, which are every program's."""


@dataclass(frozen=True, slots=True)
class Belongings:
    """What this process owned at one moment."""

    children: dict[int, str]
    """Pids of its children, zombies included, with their names; none are seen without /proc."""
    tasks: set[asyncio.Task[object]]
    """Those of the running loop that are not done, but for the one that asks; none where no loop runs."""
    descriptors: dict[int, str]
    threads: set[threading.Thread]
    cgroups: set[str]
    """The groups below its own."""

    @classmethod
    def now(cls) -> Belongings:
        """Look at each kind."""
        return cls(_children(), _tasks(), _descriptors(), set(threading.enumerate()), _cgroups())

    def beyond(self, before: Belongings) -> list[str]:
        """Return what is here and was not `before`, a sentence each."""
        opened = {number: what for number, what in self.descriptors.items() if before.descriptors.get(number) != what}
        born = {pid: name for pid, name in self.children.items() if pid not in before.children}
        return [
            *(f"a child process: {pid} ({name})" for pid, name in born.items()),
            *(f"a task: {task!r}" for task in self.tasks - before.tasks if not task.done()),
            *(f"a descriptor: {number} ({what})" for number, what in opened.items()),
            *(f"a thread: {thread.name}" for thread in self.threads - before.threads),
            *(f"a cgroup: {path}" for path in self.cgroups - before.cgroups),
        ]


class assert_no_leaks:  # noqa: N801 - read as what it does: `with assert_no_leaks():`
    """A context manager, `with` or `async with`: nothing that was begun inside may be left at its end.

    An end that becomes visible a moment later is waited for, some `clearance` seconds; only `async with` lets the loop
    run meanwhile, which closing a pipe or ending a task needs. If an exception is on its way already, nothing is
    checked.

    Raises: AssertionError with all that is left.
    """

    def __init__(self, *, clearance: float = CLEARANCE) -> None:
        self._before: Belongings | None = None
        self._looks: Final = max(2, math.ceil(clearance / LOOK_AGAIN))

    def __enter__(self) -> Self:
        """Look."""
        self._before = Belongings.now()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Look again, for a while."""
        __tracebackhide__ = True
        if error is None:
            for _ in self._rests():
                time.sleep(LOOK_AGAIN)

    async def __aenter__(self) -> Self:
        """Look."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Look again, for a while."""
        __tracebackhide__ = True
        if error is None:
            for _ in self._rests():
                await asyncio.sleep(LOOK_AGAIN)

    def __del__(self) -> None:
        """Say that it was only called: that checks nothing, and looks as if it did."""
        if self._before is None:
            warnings.warn("assert_no_leaks() checks a block: `with assert_no_leaks():`", RuntimeWarning, stacklevel=1)

    def _rests(self) -> Iterator[None]:
        """Yield for a rest before each further look, until nothing is left. Raises: AssertionError after the last look.

        Looks are counted, not seconds: on a machine that stands still for seconds nothing has ended meanwhile.
        """
        __tracebackhide__ = True
        assert self._before is not None, "it was not entered"
        for look in range(self._looks):
            if not Belongings.now().beyond(self._before):
                return
            if look % LOOKS_UNCOLLECTED == 0:
                gc.collect()  # a cycle may hold a descriptor that nobody can use
            yield
        gc.collect()
        if left := Belongings.now().beyond(self._before):
            raise _leak(left)


def _leak(left: list[str]) -> AssertionError:
    return AssertionError("left behind:\n" + "\n".join(f"  {line}" for line in left))


def _children() -> dict[int, str]:
    found: dict[int, str] = {}
    for task in Path("/proc/self/task").glob("*"):
        try:
            pids = [int(pid) for pid in (task / "children").read_text().split()]
        except OSError:  # the thread ended meanwhile, or the kernel has no such file
            continue
        for pid in pids:
            try:
                found[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:  # somebody reaped it meanwhile
                continue
    return found


def _tasks() -> set[asyncio.Task[object]]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return set()
    return asyncio.all_tasks() - {asyncio.current_task()}


def _descriptors() -> dict[int, str]:
    found: dict[int, str] = {}
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - names, of which the listing's own is gone at once
        try:
            found[int(name)] = os.readlink(f"/dev/fd/{name}")  # noqa: PTH115 - as above
        except OSError:
            continue
    return found


def _cgroups() -> set[str]:
    """Return the groups below ours in the unified hierarchy (cgroups(7)); none where there is no such hierarchy."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return set()
    ours = next((line[3:] for line in lines if line.startswith("0::")), None)
    if ours is None:
        return set()
    root = next((place for place in HIERARCHIES if (place / "cgroup.controllers").exists()), None)
    if root is None:
        return set()
    return {str(Path(path) / name) for path, names, _ in os.walk(root / ours.lstrip("/")) for name in names}
