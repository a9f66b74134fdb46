"""How every job ends, whatever ended it: one visible block.

After the lifecycle says that nothing more will come: the streams are decided, what may be kept is written, the child is
reaped, the files get their final names, the barrier holds, the receipt is published, and only then is anybody told.
Each step has a deadline of its own, so the whole is bounded.

What is true after a `CancelledError` from `start` or `run`: the tree was ended (or its survivors are in the receipt),
the receipt is settled and published, no task, descriptor or thread of the job is left. A second cancellation while this
goes on changes nothing [F5].
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from . import following, launching, pipelines, reporting
from .errors import SpawnError

if TYPE_CHECKING:
    from .course import Course
    from .sansio.receipt import Receipt


async def carry(course: Course) -> None:
    """Carry a job from its launch to its published receipt. Run as one task per job; nobody cancels it.

    Raises: nothing of the world's. A defect of ours is given to whoever waits for the job, after the child was ended.
    """
    try:
        try:
            await launching.launch(course)
        except SpawnError as error:
            error.receipt = await _settle_unspawned(course, error)
            course.launched.set_exception(error)
            course.settled.set_result(error.receipt)
            return
        course.launched.set_result(None)
        await course.over
        receipt, marked = await _settle(course)
        receipt = following.routed(receipt, course)
        course.settled.set_result(receipt)
        if course.kept and course.child is not None and marked is not None:
            course.services.offers.offer(receipt, marked=marked)
    except BaseException as error:
        _give_up(course, error)
        if not isinstance(error, AssertionError):
            raise
    finally:
        course.services.live_streams -= len(course.pumps)
        course.stop_clock()
        pipelines.close(course)
        for future in (course.launched, course.settled):
            if future.done() and not future.cancelled():
                future.exception()  # whoever waits gets it; that nobody does is no event for the loop's handler


async def end_on_cancel(course: Course, task: asyncio.Task[None], future: asyncio.Future[Any]) -> None:
    """Return when `future` is done. If the caller is cancelled before, end the job first, then let it go on [F5]."""
    try:
        await asyncio.shield(future)
    except asyncio.CancelledError:
        course.request_end("caller")
        await outlast(task)
        raise


async def outlast(task: asyncio.Task[Any]) -> None:
    """Return when `task` is done, however often the caller is cancelled meanwhile; then let the cancellation go on."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


async def _settle(course: Course) -> tuple[Receipt, bool | None]:
    """Decide, write, reap, publish; what is returned is that of `_publish`."""
    pumps = course.pumps.values()
    whole = course.lifecycle.ended_normally
    await _end_stdin(course)
    if course.child is None:
        for pump in pumps:
            pump.start()
            pump.pipe_ended()
    await asyncio.gather(*(pump.finish(whole=whole) for pump in pumps))
    spill = reporting.needs_file(course)
    if not spill:
        for pump in pumps:
            pump.keep_inline()
    await asyncio.gather(*(pump.flush(spill=spill) for pump in pumps))
    for pump in pumps:
        if pump.cut:
            pump.stream.end_retention("drain-timeout")
            if pump.raw_copy is not None:
                pump.raw_copy.end_retention("drain-timeout")
    await course.services.turnstile.turn()
    course.release()
    return await _publish(course)


async def _publish(course: Course) -> tuple[Receipt, bool | None]:
    """Give the files their final names and publish the receipt, if there are files [D3, D4].

    Returns the receipt, and whether the end may be told by a marker in the capture [E5]; None: not at all, because what
    was to stand behind it does not [D4].
    """
    capture = course.capture
    if capture is None:
        return reporting.final_receipt(course, None).fitted(), False
    sealed = await capture.seal()
    receipt = reporting.final_receipt(course, sealed).fitted()
    outcome = await capture.publish(receipt.to_json())
    if outcome.published and outcome.error is not None and course.kept:
        await course.services.offers.withdraw(course.capture_id)
    return reporting.after_publication(receipt, outcome), True if outcome.error is None else None


async def _settle_unspawned(course: Course, error: SpawnError) -> Receipt:
    """Settle a job whose command could not start; nothing of it stays on disk [F6]."""
    if course.capture is not None:
        await course.capture.discard()
    return reporting.unspawned_receipt(course, error).fitted()


async def _end_stdin(course: Course) -> None:
    if course.feeder is not None:
        course.feeder.cancel()
        await asyncio.wait({course.feeder})


def _give_up(course: Course, error: BaseException) -> None:
    """Leave no child of a job that a defect of ours, or a loop that is being torn down, has cut short."""
    if course.child is not None:
        course.child.close()
    if course.feeder is not None:
        course.feeder.cancel()
    for pump in course.pumps.values():
        pump.abort()
    for future in (course.launched, course.settled):
        if not future.done():
            if isinstance(error, asyncio.CancelledError):
                future.cancel()
            else:
                future.set_exception(error)
