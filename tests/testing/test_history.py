"""A real command recorded once, and the fake that does the same for ever after."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor import PIPE, SpawnError, Supervisor
from supervisor.sansio.exits import Exited, Signalled
from supervisor.testing import History, Recorder, VirtualClock, assert_receipt, record
from supervisor.testing.history import Closed, Ended, Wrote

if TYPE_CHECKING:
    from pathlib import Path

SHELL: Final = ("sh", "-c")
STREAMS: Final = st.sampled_from(["stdout", "stderr"])
CHUNKS: Final = st.one_of(st.binary(max_size=20), st.text(max_size=10).map(str.encode))
STATUSES: Final = st.one_of(st.integers(0, 255).map(Exited), st.integers(1, 31).map(Signalled))


def plain(*outputs: bytes, status: Exited | Signalled = Exited(0)) -> History:  # noqa: B008 - a value
    """Return the history of a command that wrote these to stdout, a second each, and ended."""
    wrote = tuple(Wrote(float(number), "stdout", data) for number, data in enumerate(outputs))
    end = float(len(outputs))
    return History(("x",), False, (*wrote, Closed(end, "stdout"), Closed(end, "stderr"), Ended(end, status)))  # noqa: FBT003


@pytest.mark.asyncio
async def test_a_command_is_recorded_and_does_it_again(tmp_path: Path) -> None:
    """Output of both streams, in bytes that are no text too, and the exit: receipts of both are alike."""
    history = await record([*SHELL, r"echo out; echo err >&2; printf '\377'; exit 3"])
    assert (history.output(), history.output("stderr"), history.status) == (b"out\n\xff", b"err\n", Exited(3))
    assert [type(moment) for moment in history.moments[-3:]] == [Closed, Closed, Ended]
    again = History.parse(history.to_json())
    assert again == history
    async with Supervisor(tmp_path, spawn=again.child().spawn) as supervisor:
        receipt = await supervisor.run(["whatever"])
    assert_receipt(receipt, process="exited", code=3, capture="complete", stdout="out\n\ufffd", stderr="err\n")


@pytest.mark.asyncio
async def test_a_descendant_that_holds_the_pipes_is_recorded_as_one(tmp_path: Path) -> None:
    """Its streams never end; in the replay they are held too, and the drain window passes [F2]."""
    history = await record([*SHELL, "sleep 60 & echo left; kill -TERM $$"], drain_timeout=0.05)
    assert history.status == Signalled(signal.SIGTERM)
    assert not [moment for moment in history.moments if isinstance(moment, Closed)]
    child = history.child()
    async with Supervisor(tmp_path, spawn=child.spawn) as supervisor:
        receipt = await supervisor.run(["whatever"], drain_timeout=0.05)
    assert_receipt(receipt, signal=15, capture="partial", capture_reason="drain-timeout", survivors=(child.pid + 1,))
    assert receipt.stdout == "left\n"


@pytest.mark.asyncio
async def test_a_merged_stream_is_recorded_as_one(tmp_path: Path) -> None:
    """In the order of writing, and it ends in the replay before the exit [B7]."""
    history = await record([*SHELL, "echo a; echo b >&2; echo c"], merge=True)
    assert (history.streams, history.output()) == (("stdout",), b"a\nb\nc\n")
    async with Supervisor(tmp_path, spawn=history.child().spawn) as supervisor:
        assert_receipt(await supervisor.run(["x"], merge=True), stdout="a\nb\nc\n", capture="complete", survivors=())


@pytest.mark.asyncio
async def test_recording_says_what_went_wrong_and_leaves_nothing() -> None:
    """No program, no end, a cancellation; a second child of one recorder, and one that never started."""
    with pytest.raises(SpawnError):
        await record(["/nonexistent/program"])
    with pytest.raises(TimeoutError):
        await record(["sleep", "60"], time_limit=0.05)
    recording = asyncio.create_task(record(["sleep", "60"]))
    await asyncio.wait({recording}, timeout=0.05)
    recording.cancel()
    await asyncio.wait({recording})
    assert recording.cancelled()
    recorder = Recorder()
    with pytest.raises(RuntimeError, match="no exit"):
        recorder.history()
    async with Supervisor(spawn=recorder.spawn) as supervisor:
        await supervisor.run(["true"])
        with pytest.raises(AssertionError, match="records one child"):
            await supervisor.run(["true"])
    assert recorder.history().status == Exited(0)


@pytest.mark.asyncio
async def test_a_recorder_sees_what_the_supervisor_sees_and_no_end_that_it_made(tmp_path: Path) -> None:
    """A stream that the supervisor cut did not end."""
    recorder = Recorder()
    async with Supervisor(tmp_path, spawn=recorder.spawn) as supervisor:
        receipt = await supervisor.run([*SHELL, "echo a; exec 2>&-; sleep 60 & exit 4"], drain_timeout=0.05)
        assert_receipt(receipt, code=4, capture="partial", stdout="a\n")
        assert receipt.process is not None
        for pid in receipt.process.survivors or ():
            os.kill(pid, signal.SIGKILL)
    history = recorder.history()
    assert [moment.stream for moment in history.moments if isinstance(moment, Closed)] == ["stderr"]


@pytest.mark.asyncio
async def test_times_are_data_and_kept_to_only_on_a_clock() -> None:
    """Without one it is over at once; with one each chunk comes at its second."""
    history = plain(b"a", b"b", b"c")
    clock = VirtualClock()
    async with Supervisor(spawn=history.child(clock=clock).spawn, clock=clock) as supervisor:
        job = await supervisor.start(["x"])
        for text in ("a", "ab", "abc"):
            await clock.settle()
            assert job.receipt.stdout == text
            await clock.advance(1)
        assert_receipt(await job.wait(), process="exited", stdout="abc")
    async with Supervisor(spawn=history.child().spawn, clock=clock) as supervisor:
        assert_receipt(await supervisor.run(["x"]), stdout="abc")
    assert clock.now() == 3


@pytest.mark.asyncio
async def test_a_replay_reads_its_stdin_and_can_be_ended() -> None:
    """More than a pipe holds; and TERM ends it as any fake child."""
    clock = VirtualClock()
    history = plain(b"a", b"b")
    child = history.child(clock=clock)
    async with Supervisor(spawn=child.spawn, clock=clock) as supervisor:
        job = await supervisor.start(["x"], stdin=PIPE)
        await job.write(b"x" * 300_000)
        await job.write_eof()
        await clock.settle()
        assert len(child.stdin_received) == 300_000
        assert_receipt(await job.terminate(), process="cancelled", signal=15, stdout="a")


@given(
    st.lists(
        st.one_of(st.builds(Wrote, st.floats(0, 9), STREAMS, CHUNKS), st.builds(Closed, st.floats(0, 9), STREAMS))
    ),
    st.builds(Ended, st.floats(0, 9), STATUSES),
    st.booleans(),
)
def test_every_history_survives_its_json(moments: list[Wrote | Closed], ended: Ended, merge: bool) -> None:  # noqa: FBT001
    """Bytes that are no text, any time, either end."""
    history = History(("a", "é b"), merge, tuple(sorted([*moments, ended], key=lambda moment: moment.at)))
    assert History.parse(history.to_json()) == history


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": 2, "command": [], "merge": false, "moments": []}',
        '{"schema": 1, "command": [], "merge": false, "moments": []}',
        '{"schema": 1, "command": [], "merge": false, "moments": [{"at": 1, "stream": "stdin", "text": ""}]}',
        '{"schema": 1, "command": [], "merge": false, "moments": [{"at": 1, "stream": "stdout", "base64": "?"}]}',
        '{"schema": 1, "command": [], "merge": false, "moments": [{"at": 1, "code": 0}, {"at": 0}]}',
    ],
)
def test_what_is_no_history_is_refused(text: str) -> None:
    """With a ValueError, whatever is wrong."""
    with pytest.raises(ValueError, match=r".+"):
        History.parse(text)


def test_a_history_has_one_exit_in_the_order_of_time() -> None:
    """One that was made by hand is held to it."""
    ended = Ended(1.0, Exited(0))
    with pytest.raises(ValueError, match="one exit"):
        History((), False, (ended, ended))  # noqa: FBT003
    with pytest.raises(ValueError, match="order of time"):
        History((), False, (ended, Closed(0.5, "stdout")))  # noqa: FBT003
