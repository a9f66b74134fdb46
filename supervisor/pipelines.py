"""The codes of a pipeline's members: asked for before the spawn, read at the job's end, and never in its way."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from .process import PipeReport
from .sansio.exits import Exited
from .sansio.pipestatus import codes

if TYPE_CHECKING:
    from .course import Course
    from .process import Launch

UNAVAILABLE: Final = "pipestatus-unavailable"


def prepared(course: Course) -> Launch:
    """Return what is to be started: so that it reports, if that is wanted and there is a way, which else is named."""
    launch = course.request.launch
    if not course.request.options.pipestatus:
        return launch
    course.pipe_report = _report(launch)
    if course.pipe_report is None:
        course.limitations.append(UNAVAILABLE)
        return launch
    return replace(launch, env=course.pipe_report.environment)


def _report(launch: Launch) -> PipeReport | None:
    limits = launch.child_limits
    other_user = limits is not None and (limits.user, limits.group) != (None, None)
    if other_user or PurePath(launch.argv[0]).name != "bash":
        return None
    try:
        return PipeReport(os.environ if launch.env is None else launch.env)
    except OSError:
        return None


def members(course: Course) -> tuple[int, ...] | None:
    """Return the codes of the last pipeline's members; None where nobody knows, and if the shell was killed [A4]."""
    status = course.lifecycle.status
    if course.pipe_report is None or not isinstance(status, Exited):
        return None
    return codes(course.pipe_report.read(), status.code)


def close(course: Course) -> None:
    """Nobody will ask any more."""
    if course.pipe_report is not None:
        course.pipe_report.close()
