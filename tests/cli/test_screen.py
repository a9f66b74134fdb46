"""A screen by itself: order, fresh lines, errors, and a reader that never comes."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from supervisor.cli.screen import Screen

SECONDS = 30.0


@pytest.mark.asyncio
async def test_pieces_come_out_in_the_order_of_the_calls() -> None:
    """Also those of several tasks, each of which waits for its own."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb"):
        screen = Screen(writing)
        await asyncio.gather(*(screen.write(b"%d " % number) for number in range(50)))
        assert os.read(pipe.fileno(), 65536) == b"".join(b"%d " % number for number in range(50))
        await end(screen)


@pytest.mark.asyncio
async def test_lines_begin_on_a_fresh_one() -> None:
    """One line feed where the last piece had none, and none where it had."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb"):
        screen = Screen(writing)
        await screen.write_lines(b"first\n")
        await screen.write(b"abc")
        await screen.write(b"")
        await screen.write_lines(b"gap\n", b"then")
        await screen.write_lines(b"last\n")
        assert os.read(pipe.fileno(), 65536) == b"first\nabc\ngap\nthen\nlast\n"
        await end(screen)


@pytest.mark.asyncio
async def test_a_stuck_reader_blocks_nothing_but_its_writer() -> None:
    """The loop goes on, the wait can be cancelled, and the text is there for a reader that comes late."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        with os.fdopen(writing, "wb"):
            screen = Screen(writing)
            stuck = asyncio.ensure_future(screen.write(b"x" * 2**20))
            other, own = os.pipe()  # a second screen proves that time passes for others
            with os.fdopen(other, "rb") as free, os.fdopen(own, "wb"):
                second = Screen(own)
                assert await second.write(b"free")
                assert os.read(free.fileno(), 10) == b"free"
                await end(second)
            assert not stuck.done()
            stuck.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stuck
            assert len(await asyncio.to_thread(pipe.read, 2**20)) == 2**20
            await end(screen)
        assert pipe.read() == b""


@pytest.mark.asyncio
async def test_after_an_error_nothing_is_tried_again() -> None:
    """A reader that has gone is an error once; later pieces are dropped at once."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb"):
        screen = Screen(writing)
        assert not await screen.write(b"x")
        assert isinstance(screen.error, BrokenPipeError)
        assert not await screen.write(b"y")
        await end(screen)


def test_a_loop_that_is_gone_is_no_error_of_the_thread() -> None:
    """The thread of a screen that was given up ends without a word when its write comes back at last."""
    reading, writing = os.pipe()

    async def give_up() -> None:
        screen = Screen(writing)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(screen.write(b"x" * 2**20), 0.01)
        screen.close()

    asyncio.run(give_up())
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb"):
        assert len(pipe.read(2**20)) == 2**20
        for thread in screens():
            thread.join(SECONDS)
    assert not screens()


@pytest.mark.asyncio
async def test_a_screen_that_was_never_used_has_no_thread() -> None:
    """Nor does closing it make one."""
    Screen(2).close()
    assert not screens()


def screens() -> list[threading.Thread]:
    """Return the live threads of screens."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("screen ")]


async def end(screen: Screen) -> None:
    """Close the screen and wait for its thread."""
    screen.close()
    assert screen._thread is not None
    await asyncio.to_thread(screen._thread.join, SECONDS)
    assert not screen._thread.is_alive()
