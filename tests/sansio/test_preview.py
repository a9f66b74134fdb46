"""The part of a text that is shown at once (contract E6)."""

from __future__ import annotations

import itertools
import re
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from supervisor.limits import Limits
from supervisor.sansio.preview import Preview, PreviewText, share

TEXTS = st.text(st.sampled_from("ab\n€𝄞ß"), max_size=120)
FRAMES = st.text(st.sampled_from("abc\r\r\n€"), max_size=120).map(
    lambda text: re.sub("\r+\n?", lambda run: run[0][-1], text)
)
"""As the stripper leaves it: no two returns in a row, none before a line feed."""


def fed(text: str | bytes, max_chars: int = 40, max_bytes: int = 60, step: int | None = None) -> Preview:
    """Return a preview that was fed `text` in pieces of `step` bytes."""
    data = text.encode() if isinstance(text, str) else text
    preview = Preview(max_chars, max_bytes)
    step = step or max(1, len(data))
    for start in range(0, len(data), step):
        preview.feed(data[start : start + step])
    return preview


@given(TEXTS, st.integers(1, 60), st.integers(1, 90), st.integers(1, 40), st.integers(0, 70), st.integers(0, 100))
def test_what_is_shown_is_true_bounded_and_accounted_for(
    text: str, max_chars: int, max_bytes: int, step: int, chars: int, size: int
) -> None:
    """For every text, chunking, ceiling and budget: true ends, both bounds, and bytes that add up."""
    shown = fed(text, max_chars, max_bytes, step).render(chars, size)
    data = text.encode()
    assert text.startswith(shown.head)
    assert text.endswith(shown.tail)
    assert len(shown.head) + len(shown.tail) <= min(chars, max_chars)
    assert shown.returned_bytes == len((shown.head + shown.tail).encode()) <= min(size, max_bytes) == shown.budget_bytes
    assert shown.returned_bytes + shown.omitted_bytes == len(data)
    whole = len(text) <= min(chars, max_chars) and len(data) <= min(size, max_bytes)
    assert shown.state == ("complete" if whole else "clipped")
    assert not whole or shown.head == text


@given(TEXTS, st.lists(st.integers(0, 200), max_size=8), st.integers(1, 50), st.integers(1, 80))
def test_the_preview_does_not_depend_on_the_chunks(text: str, cuts: list[int], chars: int, size: int) -> None:
    """However the bytes were cut, the same text gives the same preview and counts (C1)."""
    data = text.encode()
    pieces = Preview(chars, size)
    borders = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(borders):
        pieces.feed(data[start:end])
    whole = fed(data, chars, size)
    assert pieces.render(chars, size) == whole.render(chars, size)
    assert (pieces.total, pieces.lines) == (len(data), text.count("\n"))
    assert pieces.ends_with_newline == (text.endswith("\n") if text else None)
    assert pieces.fits == whole.fits == (len(text) <= chars and len(data) <= size)


def collapsed(text: str) -> tuple[str, int]:
    """Return the last state of each line, and how many others there were: an oracle line by line."""
    shown: list[str] = []
    for line in text.split("\n"):
        states = line.split("\r")
        # After a return at the very end nothing was written over yet: it is a line feed like any other.
        shown.append(states[-2] + "\n" if len(states) > 1 and not states[-1] else states[-1])
    dropped = text.count("\r") - text.endswith("\r")
    return "\n".join(shown), dropped


@given(FRAMES, st.lists(st.integers(0, 400), max_size=12), st.integers(1, 50), st.integers(1, 80))
@example("€", [1], 1, 1)  # a window that is shorter than a character
def test_only_the_last_state_of_a_line_is_shown(text: str, cuts: list[int], chars: int, size: int) -> None:
    """However it was cut: the ends of the collapsed text, and counts of the whole one (E6)."""
    data, (visible, dropped) = text.encode(), collapsed(text)
    pieces = Preview(chars, size)
    borders = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(borders):
        pieces.feed(data[start:end])
    shown = pieces.render(chars, size)
    assert shown == fed(data, chars, size).render(chars, size)
    fits = len(visible) <= chars and len(visible.encode()) <= size
    assert visible.startswith(shown.head)
    assert visible.endswith(shown.tail)
    assert not fits or shown.head == visible
    assert shown.returned_bytes + shown.omitted_bytes == len(data)
    assert shown.frames_dropped == dropped
    assert shown.state == ("complete" if fits and not dropped else "clipped")
    assert pieces.fits == (fits and not dropped)
    assert (pieces.total, pieces.lines) == (len(data), text.count("\n") + text.count("\r"))
    assert pieces.ends_with_newline == (text.endswith(("\n", "\r")) if text else None)


def test_a_progress_bar_is_its_last_state() -> None:
    """Three thousand states are one line, whether the return comes before a state or after it."""
    for form in ("\rprogress {}/3000", "progress {}/3000\r"):
        text = "start\n" + "".join(form.format(number) for number in range(1, 3001)) + "\ndone\n"
        text = text.replace("\r\n", "\n")
        shown = fed(text, 1000, 2000, step=7).render(1000, 2000)
        assert shown.head == "start\nprogress 3000/3000\ndone\n"
        assert shown.frames_dropped == text.count("\r")


def test_a_long_state_does_not_push_out_what_was_before_it() -> None:
    """Once it is written over, the lines before it are the tail again, whatever its length."""
    text = "before\n" * 30 + "x" * 5000 + "\rlast"
    for step in (1, 100, 10_000):
        shown = fed(text, 100, 100, step=step).render(100, 100)
        assert shown.tail == "before\n" * 10 + "last"
        assert shown.head == "before\n" * 3


def test_the_head_is_a_quarter_and_the_tail_the_rest() -> None:
    """Of 40 characters without a line end, 10 are the beginning and 30 the end."""
    shown = fed("".join(chr(ord("0") + i % 75) for i in range(1000)), 40, 1000).render(40, 1000)
    assert (len(shown.head), len(shown.tail)) == (10, 30)


def test_the_tail_gets_what_the_head_did_not_need() -> None:
    """A head that is cut at its line leaves the rest of its quarter to the tail."""
    shown = fed("12345678\n" + "x" * 1000, 40, 1000).render(40, 1000)
    assert shown.head == "12345678\n"
    assert shown.tail == "x" * 31


def test_a_cut_moves_to_the_border_of_a_line_only_if_one_is_near() -> None:
    """The head may lose a quarter of itself and the tail an eighth, not more: a long line is shown cut."""
    near = fed("12345678\n" + "x" * 1000 + "\n" + "y" * 30, 40, 1000).render(40, 1000)
    assert near.head == "12345678\n"
    assert near.tail == "y" * 30
    far = fed("123\n" + "x" * 1000 + "\n" + "y" * 20, 40, 1000).render(40, 1000)
    assert far.head == "123\nxxxxxx"
    assert far.tail == "x" * 9 + "\n" + "y" * 20


def test_the_end_of_a_huge_output_is_its_true_end() -> None:
    """The last error of many megabytes is shown, and the beginning too (B2)."""
    preview = Preview(8000, 16384)
    preview.feed(b"BEGIN\n")
    for _ in range(64):
        preview.feed(b"x" * 262_143 + b"\n")
    preview.feed(b"END\n")
    shown = preview.render(8000, 16384)
    assert shown.head.startswith("BEGIN\n")
    assert shown.tail.endswith("x\nEND\n")
    assert shown.omitted_bytes == 64 * 262_144 + 10 - shown.returned_bytes
    assert preview.lines == 66


def test_the_tail_is_whole_after_any_number_of_small_feeds() -> None:
    """The window is moved now and then, and never so far that what can be shown is lost."""
    preview, text = Preview(40, 40), ""
    for number in range(400):
        piece = str(number % 10)
        preview.feed(piece.encode())
        text += piece
        shown = preview.render(40, 40)
        assert len(shown.head) + len(shown.tail) == min(40, len(text))
        assert text.endswith(shown.tail)


def test_a_text_of_just_the_ceiling_is_complete() -> None:
    """One byte more is clipped, whether the characters or the bytes are what is full."""
    assert fed("x" * 60, 100, 60).render(100, 60) == PreviewText("complete", "x" * 60, "", 60, 60, 0)
    assert fed("x" * 61, 100, 60).render(100, 60).state == "clipped"
    assert fed("𝄞" * 10, 10, 100).render(10, 100) == PreviewText("complete", "𝄞" * 10, "", 40, 100, 0)
    assert fed("𝄞" * 11, 10, 100).render(10, 100).state == "clipped"


def test_memory_depends_on_the_ceiling_only() -> None:
    """Neither many small feeds nor large ones make the windows grow (B3)."""
    preview = Preview(1000, 2000)
    for _ in range(20_000):
        preview.feed(b"0123456789")
    preview.feed(b"x" * 10_000_000)
    for _ in range(1_000):
        preview.feed(b"0123456789")
    kept = sum(sys.getsizeof(getattr(preview, window)) for window in ("_head", "_tail", "_line"))
    assert kept < 10 * 2000 + 300


def test_an_empty_text() -> None:
    """It is complete, has no lines, and nobody can say how its last line ends."""
    preview = fed("")
    assert preview.render(0, 0) == PreviewText("complete", "", "", 0, 0, 0)
    assert (preview.total, preview.lines, preview.ends_with_newline, preview.fits) == (0, 0, None, True)


def test_an_empty_feed_changes_nothing() -> None:
    """A quiet pipe feeds nothing, and it does not end a line."""
    preview = fed("a\n")
    preview.feed(b"")
    assert preview.ends_with_newline is True


def test_a_character_that_is_not_complete_yet_is_not_text_yet() -> None:
    """While the rest of it is held back, the preview is whole without it, and clipped ones do not count it."""
    half = "ab€".encode()[:-1]
    assert fed(half).render(40, 60) == PreviewText("complete", "ab", "", 2, 60, 0)
    shown = fed(b"x" * 100 + half).render(40, 60)
    assert shown.tail.endswith("xab")
    assert shown.omitted_bytes == 102 - shown.returned_bytes


def test_nothing_is_shown_of_a_text_without_a_budget() -> None:
    """All of it is omitted, and counted."""
    assert fed("abc").render(0, 100) == PreviewText("clipped", "", "", 0, 60, 3)
    assert fed("abc").render(100, 0) == PreviewText("clipped", "", "", 0, 0, 3)


def limits(stdout: int, stderr: int, size: int) -> Limits:
    """Return limits with these ceilings."""
    return Limits(preview_stdout_chars=stdout, preview_stderr_chars=stderr, preview_bytes=size)


def both(out: str, err: str, bounds: Limits) -> tuple[Preview, Preview]:
    """Return the previews of two streams of one job, as a job makes them."""
    return (
        fed(out, bounds.preview_stdout_chars, bounds.preview_bytes),
        fed(err, bounds.preview_stderr_chars, bounds.preview_bytes),
    )


@given(
    out=TEXTS,
    err=TEXTS,
    out_chars=st.integers(1, 80),
    err_chars=st.integers(1, 80),
    size=st.integers(1, 120),
    failed=st.booleans(),
)
def test_both_previews_together_stay_within_the_bytes(
    out: str, err: str, out_chars: int, err_chars: int, size: int, *, failed: bool
) -> None:
    """Whatever the streams hold: each within its characters, together within the bytes, each in its budget."""
    bounds = limits(out_chars, err_chars, size)
    stdout, stderr = share(*both(out, err, bounds), bounds, failed=failed)
    assert stderr is not None
    assert stdout.returned_bytes + stderr.returned_bytes <= size
    assert len(stdout.head + stdout.tail) <= out_chars
    assert len(stderr.head + stderr.tail) <= err_chars
    if len((out + err).encode()) <= size and len(out) <= out_chars and len(err) <= err_chars:
        assert (stdout.state, stderr.state) == ("complete", "complete")


def test_on_failure_stderr_is_served_first() -> None:
    """It gets what it can use up to its ceiling, and stdout the rest."""
    bounds = limits(100, 60, 80)
    stdout, stderr = share(*both("o" * 200, "e" * 200, bounds), bounds, failed=True)
    assert stderr is not None
    assert (stderr.returned_bytes, stdout.returned_bytes) == (60, 20)


def test_on_success_stdout_is_served_first_and_stderr_has_its_share() -> None:
    """80 bytes by ceilings of 100 and 60 characters: stderr is sure of 30, stdout takes 50."""
    bounds = limits(100, 60, 80)
    stdout, stderr = share(*both("o" * 200, "e" * 200, bounds), bounds, failed=False)
    assert stderr is not None
    assert (stdout.returned_bytes, stderr.returned_bytes) == (50, 30)


def test_on_success_each_takes_what_the_other_leaves() -> None:
    """A share that is not needed is not kept free."""
    bounds = limits(100, 60, 80)
    stdout, stderr = share(*both("o" * 200, "e" * 10, bounds), bounds, failed=False)
    assert stderr is not None
    assert (stdout.returned_bytes, stderr.returned_bytes) == (70, 10)
    stdout, stderr = share(*both("o" * 25, "e" * 200, bounds), bounds, failed=False)
    assert stderr is not None
    assert (stdout.returned_bytes, stderr.returned_bytes) == (25, 55)


@pytest.mark.parametrize("failed", [True, False])
def test_a_merged_stream_has_all_the_bytes(*, failed: bool) -> None:
    """There is no stderr to share with (B7)."""
    bounds = limits(100, 60, 80)
    stdout, stderr = share(fed("o" * 200, 100, 80), None, bounds, failed=failed)
    assert stderr is None
    assert stdout.returned_bytes == 80
