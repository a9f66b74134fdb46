"""A supervisor's guard and its jobs: each is known to it before its command runs, and until nothing more is owed to it.

Without a guard, or once it is gone, the receipts say so: `no-guard`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .process import Guard

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from .course import Course
    from .process import Child, Launch
    from .services import Spawn

NO_GUARD: Final = "no-guard"


class Guarding:
    """Tells a guard of the jobs of one supervisor. `courses` are those that live."""

    def __init__(self, spawn: Spawn, courses: Mapping[str, Course]) -> None:
        self._inner: Final = spawn
        self._courses: Final = courses
        self._there = False
        self.guard: Final = Guard(self._lost)

    async def open(self) -> None:
        """Start the guard, if the system can give one."""
        self._there = await self.guard.start()

    async def close(self) -> None:
        """Let it go; it is reaped then."""
        await self.guard.close()

    def expect(self, course: Course) -> None:
        """A job begins."""
        if self._there:
            self.guard.expect(course.request.launch.mark, course.request.options.kill_after)
        else:
            course.limitations.append(NO_GUARD)

    def forget(self, course: Course) -> None:
        """A job is over; what its command left running may stay."""
        self.guard.forget(course.request.launch.mark)

    async def spawn(self, protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        """Start a child as the supervisor would; tell the guard which process it is."""
        child = await self._inner(protocol, launch)
        self.guard.started(launch.mark, child.get_pid())
        return child

    def _lost(self) -> None:
        self._there = False
        for course in self._courses.values():
            course.limitations.append(NO_GUARD)
