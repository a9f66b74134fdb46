"""The contract suite: what a child must show, so that a test which plays one learns the truth about a real one.

The suite is run by this project's own tests on `FakeChild` and on real processes, on both event loops. Run it on a
`spawn` or a fake of your own.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from . import checks
from .stage import Stage, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from .stage import ScriptedChild

    Make = Callable[[], AbstractAsyncContextManager[ScriptedChild]]
    Check = Callable[[Stage], Awaitable[None]]

PATIENCE: Final = 30.0
"""Seconds after which a check has failed; none waits for them to pass."""
CLEARANCE: Final = 2.0
"""Seconds that an end may take to become visible: the last descriptor of a thread that is ending."""

CHECKS: Final[Mapping[str, Check]] = {
    check.__name__: check
    for check in (
        checks.output_can_be_read_while_the_child_lives,
        checks.exit_is_seen_while_a_descendant_holds_the_pipes,
        checks.end_of_output_does_not_end_the_job,
        checks.a_held_pipe_costs_one_drain_window,
        checks.output_before_the_exit_is_complete,
        checks.stdout_and_stderr_are_apart,
        checks.merged_streams_share_one_pipe,
        checks.a_child_that_obeys_term_gets_no_kill,
        checks.a_child_that_ignores_term_is_killed,
        checks.a_descendant_is_ended_with_the_tree,
        checks.code_and_signal_are_told_as_they_are,
        checks.a_signal_to_the_leader_is_the_childs_affair,
        checks.stdin_goes_round,
        checks.without_stdin_there_is_nothing_to_read,
        checks.a_failed_start_is_one_typed_error,
        checks.it_settles_once_in_every_order_of_ends,
        checks.a_cancelled_run_leaves_nothing,
        checks.a_start_that_is_cancelled_leaves_nothing,
        checks.leaving_the_block_ends_the_child,
    )
}
"""By name, in the order in which `check_child` runs them: one test each, for whoever wants it."""

REPLAYED: Final = tuple(
    check.__name__
    for check in (
        checks.a_held_pipe_costs_one_drain_window,
        checks.output_before_the_exit_is_complete,
        checks.stdout_and_stderr_are_apart,
        checks.merged_streams_share_one_pipe,
        checks.code_and_signal_are_told_as_they_are,
        checks.it_settles_once_in_every_order_of_ends,
    )
)
"""The checks that a replayed history can meet: those whose script is output and ends alone, known before the start. In
the others a step of the child answers the supervisor (its stdin, a signal, a state that was seen first), and what has
been recorded answers nobody."""


async def check_child(make: Make, names: tuple[str, ...] = tuple(CHECKS), *, patience: float = PATIENCE) -> None:
    """Return if children made by `make` keep the contract, as seen through a `Supervisor`.

    A temporary directory is the conversation of each. After each check no task and no descriptor of it may be left.

    Args:
        make: Makes a new child, as an async context manager: `ScriptedFake`, `RealChild`, or one of your own.
        names: Which of `CHECKS` to run.
        patience: Seconds that one check may take.

    Raises: at the first check that fails, with its name as a note: AssertionError, TimeoutError, or what the child
        itself raised.
    """
    for name in names:
        try:
            await _run(CHECKS[name], make, patience)
        except Exception as error:
            error.add_note(f"the check was {name}")
            raise


async def _run(check: Check, make: Make, patience: float) -> None:
    tasks, descriptors = asyncio.all_tasks(), _descriptors()
    async with asyncio.timeout(patience):
        await check(Stage(make))
    left = asyncio.all_tasks() - tasks
    if left:
        raise AssertionError(f"tasks left: {left}")
    try:
        async with asyncio.timeout(CLEARANCE):
            await until(lambda: _descriptors() <= descriptors)
    except TimeoutError:
        raise AssertionError(f"descriptors left: {_descriptors() - descriptors}") from None


def _descriptors() -> int:
    """Return how many descriptors this process has open; the listing's own is always one of them."""
    return len(os.listdir("/dev/fd"))  # noqa: PTH208 - a count of names
