"""Which commands a test expects: who gets which child, and how a mistake is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from supervisor import SpawnError, Supervisor
from supervisor.testing import FakeChild, FakeChildren, MissingCommand, UnexpectedCommand, assert_receipt

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio


async def say(child: FakeChild) -> None:
    """A script that prints its arguments."""
    launch = await child.started()
    await child.feed(" ".join(launch.argv).encode())
    child.exit(0)


async def test_children_are_handed_out_in_order_and_by_their_arguments() -> None:
    """An equal list, a beginning, a function, anything: the first expectation that matches is used, once."""
    with FakeChildren() as children:
        first = children.expect(["git", "status"], script=say)
        second = children.expect(["git", ...], script=say)
        third = children.expect(lambda argv: argv[0].startswith("py"), script=say)
        fourth = children.expect(["git", "status"], script=say)
        last = children.expect(script=say)
        async with Supervisor(spawn=children.spawn) as supervisor:
            for command in (["python3"], ["git", "status"], ["git", "status"], ["git", "status"], ["true"]):
                receipt = await supervisor.run(command)
                assert receipt.stdout == " ".join(command)
        assert children.started == [third, first, second, fourth, last]


@pytest.mark.parametrize("command", [["git"], ["git", "status", "-s"], ["status", "git"]])
async def test_a_command_that_was_not_expected_is_told_at_once_and_again(command: list[str]) -> None:
    """With what was expected and what had been started; the code under test may swallow the first."""
    children = FakeChildren()
    children.expect(["true"], script=say)
    children.expect(["git", "status"])
    async with Supervisor(spawn=children.spawn) as supervisor:
        await supervisor.run(["true"])
        with pytest.raises(UnexpectedCommand) as caught:
            await supervisor.run(command)
    text = f"not expected:\n  {' '.join(command)}\nstill expected were:\n  git status\nstarted were:\n  true"
    assert text in str(caught.value)
    with pytest.raises(UnexpectedCommand) as again:
        children.check()
    assert text in str(again.value)


async def test_one_that_never_came_is_told_at_the_end() -> None:
    """As any of the forms in which it can be expected."""
    children = FakeChildren()
    children.expect(["make", "a b", ...])
    children.expect(test_one_that_never_came_is_told_at_the_end.__eq__)
    children.expect()
    with pytest.raises(MissingCommand) as caught:
        children.check()
    told = str(caught.value).splitlines()
    assert told[0] == "a command was expected and never started:"
    assert told[1] == "  make 'a b' ..."
    assert told[2].startswith("  a command for which ")
    assert told[3:] == ["  any command", "started were:", "  none"]


async def test_leaving_the_block_checks_unless_something_else_went_wrong() -> None:
    """The first mistake is the one that is shown."""
    with pytest.raises(MissingCommand), FakeChildren() as children:
        children.expect(["never"])
    with pytest.raises(KeyError), FakeChildren() as children:  # noqa: PT012 - it is left by the error
        children.expect(["never"])
        raise KeyError


async def test_a_start_that_should_fail_was_started_all_the_same(tmp_path: Path) -> None:
    """The command came; that it could not be started is the child's affair [F6]."""
    with FakeChildren() as children:
        children.expect(["missing"]).fail_to_spawn(FileNotFoundError(2, "No such file"))
        async with Supervisor(tmp_path, spawn=children.spawn) as supervisor:
            with pytest.raises(SpawnError) as caught:
                await supervisor.start(["missing"])
    assert caught.value.receipt is not None
    assert_receipt(caught.value.receipt, process="not-started")


async def test_an_unexpected_command_leaves_no_job_and_the_supervisor_goes_on(tmp_path: Path) -> None:
    """Its failure is an AssertionError of the test's, not an outcome of a command."""
    children = FakeChildren()
    async with Supervisor(tmp_path, spawn=children.spawn) as supervisor:
        with pytest.raises(UnexpectedCommand):
            await supervisor.start(["wrong"])
        assert supervisor.jobs == ()
        children.expect(["right"], script=say)
        assert_receipt(await supervisor.run(["right"]), process="exited", stdout="right")


async def test_expectations_that_mean_nothing_are_refused() -> None:
    """Where they are written."""
    children = FakeChildren()
    with pytest.raises(ValueError, match="comes last"):
        children.expect(["git", ..., "status"])
    with pytest.raises(TypeError, match="a list of arguments, not str"):
        children.expect("git status")
    with pytest.raises(ValueError, match="script already"):
        children.expect(["git"], child=FakeChild(), script=say)
    children.check()
