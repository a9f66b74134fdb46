"""Reports of secrets that a buffer's edge, a forced flush or a limit lets through (C1-C4, C7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.preview import Preview
from supervisor.sansio.sanitizer import Sanitizer
from supervisor.sinks import trimmed

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET: Final = "kT9vQ2xLmW4zR7pB" + "nY5cJ8hF"
LONG: Final = "".join(f"{number:04x}+" for number in range(600))
"""A secret of 3,000 characters."""
MARKER: Final = "[REDACTED:key]"
PARTS: Final = ["a" * 5000, SECRET[:-1], LONG[:700], "\x1b[31", "\x1b]0;" + "t" * 900, "密"]
"""Of a line without an end: what may have to be held, and escapes that do not end."""


def test_red_006_a_line_end_inside_a_secret_flushes_nothing(masked: Callable[..., str]) -> None:
    """RED-006 (buildkite/agent f2173477d (2019-10)): line ends are forced out, so that progress is seen (C3)."""
    secret = "abcdefgh\nijklmnop"
    assert masked({"key": secret}, f"10 %\n{secret}\n20 %\n") == f"10 %\n{MARKER}\n20 %\n"


@given(st.data())
def test_red_007_short_writes_before_a_match_hide_nothing(data: st.DataObject) -> None:
    """RED-007 (buildkite/agent ec1daf1a2, 789f54a9b (2019-10)): an off-by-one in the carry of several writes (C1)."""
    rest = f"x{SECRET[:5]}y{SECRET[:-1]}{SECRET}z{SECRET}".encode()
    sanitizer = Sanitizer(NeedleSet.build({"key": SECRET}))
    text = b""
    while rest:
        size = data.draw(st.integers(1, 9))
        text += sanitizer.feed(rest[:size], bulk=data.draw(st.booleans()))
        rest = rest[size:]
    text += sanitizer.finish()
    assert text.decode() == f"x{SECRET[:5]}y{SECRET[:-1]}{MARKER}z{MARKER}"


def test_red_011_a_secret_longer_than_every_buffer_is_one_marker(masked: Callable[..., str]) -> None:
    """RED-011 (gitlab-runner#28001 / 971a1da4b (2021-06)): a mask is larger than the internal buffer (C4)."""
    assert masked({"key": LONG}, "_" * 2500 + LONG + "_") == "_" * 2500 + MARKER + "_"


@pytest.mark.parametrize("limit", range(24))
def test_red_017_a_limit_cuts_between_characters(limit: int) -> None:
    """RED-017 (gitlab-runner 1ff9a3ba1 (2021-07)): a limit cuts a character, and the consumer answers 500 (E3, E6)."""
    text = "─┐é😀" * 20
    preview = Preview(100, 100)
    preview.feed(text.encode())
    shown = preview.render(100, limit)
    kept = b"".join(trimmed([text[:3].encode(), text[3:].encode()], limit))
    for piece in (kept.decode(), shown.head, shown.tail):
        assert piece in text
    assert limit - 4 < len(kept) <= limit
    assert len((shown.head + shown.tail).encode()) <= limit


def test_red_035_a_part_that_can_still_become_a_secret_is_held(sanitizer: Callable[..., Sanitizer]) -> None:
    """RED-035 (NousResearch/hermes-agent#56040): an overflow seals a chunk that ends in a credential's start (C3)."""
    stream = sanitizer(key=SECRET)
    begun = stream.feed(b"b" * 500_000 + SECRET[:3].encode())
    assert begun + stream.quiet() == b"b" * 500_000
    assert stream.held == 3
    assert stream.feed(f"{SECRET[3:]} end".encode()) + stream.finish() == f"{MARKER} end".encode()


def test_red_044_a_secret_is_held_from_its_first_character(sanitizer: Callable[..., Sanitizer]) -> None:
    """RED-044 (pocketpaw/pocketpaw#433): the beginning is shown before a minimum length is reached (C3)."""
    stream = sanitizer(key=SECRET)
    for count, char in enumerate(SECRET[:-1], 1):
        assert stream.feed(char.encode()) + stream.quiet() == b""
        assert stream.held == count
    assert stream.feed(SECRET[-1:].encode()) + stream.quiet() == MARKER.encode()


def test_red_045_an_end_shows_no_beginning(sanitizer: Callable[..., Sanitizer]) -> None:
    """RED-045 (siteboon/claudecodeui#1106): a window of len-1 forwards a part, a flush emits what was held (C7)."""
    for count in range(8, len(SECRET)):
        finished, aborted = sanitizer(key=SECRET), sanitizer(key=SECRET)
        data = f"value: {SECRET[:count]}".encode()
        assert finished.feed(data) + finished.finish() == f"value: {MARKER}".encode()
        assert aborted.feed(data) + aborted.abort() == b"value: [REDACTED:undecided]"
        assert aborted.omitted == count


def test_red_047_no_cut_is_forced_in_a_long_line(masked: Callable[..., str]) -> None:
    """RED-047 (wienerdog-ai/wienerdog#310): a forced cut at 32 KiB splits a secret (C1)."""
    for before in (32_768 - 12, 65_536 - 1, 262_144 - 12, 524_288 - 23):
        needles = NeedleSet.build({"key": SECRET})
        sanitizer = Sanitizer(needles)
        text = sanitizer.feed(f"{'q' * before}{SECRET}{'q' * 40_000}".encode(), bulk=True) + sanitizer.finish()
        assert text.decode() == f"{'q' * before}{MARKER}{'q' * 40_000}"
    assert masked({"key": SECRET}, f"{'q' * 200}{SECRET}") == f"{'q' * 200}{MARKER}"


@given(st.lists(st.sampled_from(PARTS), max_size=9))
def test_red_048_what_is_held_is_bounded_for_any_line(parts: list[str]) -> None:
    """RED-048 (buildbuddy-io/buildbuddy#10386): whole lines cannot be guaranteed with bounded memory (C4)."""
    sanitizer = Sanitizer(NeedleSet.build({"key": SECRET, "long": LONG}))
    for part in parts:
        sanitizer.feed(part.encode(), bulk=True)
        assert sanitizer.held <= 69
        sanitizer.quiet()
        assert sanitizer.held <= 69


def test_red_050_a_short_secret_at_the_edge_does_not_end_a_longer(masked: Callable[..., str]) -> None:
    """RED-050 (software-mansion/argent#864): the chunk ends in the shorter one, and the longer is not held (C6)."""
    secrets = {"short": "sk-live-", "long": "sk-live-9d3f-77"}
    assert masked(secrets, "tok sk-live-9d3f-77 end") == "tok [REDACTED:short] end"
    assert masked(secrets, "tok sk-live-9d3f end") == "tok [REDACTED:short]9d3f end"


def test_red_054_edges_of_blocks_hide_nothing(sanitizer: Callable[..., Sanitizer]) -> None:
    """RED-054 (trufflesecurity/trufflehog#1619, #1537): secrets between blocks of 10 KiB are missed (C1)."""
    block = "p" * (10_240 - len(SECRET))
    data = f"{block}pppppppppppp{f'{SECRET}{block}' * 3}".encode()  # 12 of its 24 characters before each edge
    stream = sanitizer(key=SECRET)
    blocks = [data[start : start + 10_240] for start in range(0, len(data), 10_240)]
    text = b"".join(stream.feed(block, bulk=True) for block in blocks) + stream.finish()
    assert SECRET.encode() in data
    assert text == data.replace(SECRET.encode(), MARKER.encode())
    assert stream.redactions == {"key": 3}
