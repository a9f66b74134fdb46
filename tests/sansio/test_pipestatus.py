"""What bash is told to report, and which reports are believed. That bash does is tests/acceptance/test_pipestatus."""

from __future__ import annotations

import pytest

from supervisor.sansio.pipestatus import MOST_MEMBERS, REPORT_BYTES, codes, prelude


@pytest.mark.parametrize(
    ("report", "code", "told"),
    [
        (b"1,0,1,end,", 1, (1, 0, 1)),
        (b"0,end,\n\n\n", 0, (0,)),
        (b"1,0,end,", 0, (1, 0)),
        (b"3,1,0,end,", 1, (3, 1, 0)),  # pipefail
        (b"0,1,end,", 0, (0, 1)),  # behind `!`
        (b"0,0,end,", 1, (0, 0)),
        (b"1,0,end,", 1, (1, 0)),
        (b"141,255,end,", 255, (141, 255)),
    ],
)
def test_a_report_that_explains_the_code_is_told(report: bytes, code: int, told: tuple[int, ...]) -> None:
    """The code is the last member's, the last one that failed, or the opposite of either."""
    assert codes(report, code) == told


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (b"", 0),
        (b"1,0,", 0),
        (b"1,0,en", 0),
        (b"0,1,end,", 3),
        (b"0,end,", 127),
        (b" 0,end,", 0),
        (b"-1,end,", 0),
        (b"0000,end,", 0),
        (b"1,256,end,", 1),
        (b"end,", 0),
        (b"0,\xff,end,", 0),
        (b"0," * (MOST_MEMBERS + 1) + b"end,", 0),
    ],
)
def test_any_other_is_none(report: bytes, code: int) -> None:
    """Unknown is null: cut, forged, too long, or of a pipeline that did not give the code."""
    assert codes(report, code) is None


def test_a_prelude_is_no_report_and_leaves_room_for_one() -> None:
    """What was never replaced says nothing, and the longest report fits its place."""
    text = prelude("/proc/1/fd/9", 1, None)
    assert codes(text, 0) is None
    assert len(text) == REPORT_BYTES
    assert b"unset BASH_ENV" in text
    longest = b"255," * MOST_MEMBERS + b"end,"
    assert len(longest) <= REPORT_BYTES
    assert codes(longest, 255) == (255,) * MOST_MEMBERS


def test_a_variable_that_was_given_is_set_again_and_its_file_read() -> None:
    """Any text, unquotable and undecodable ones too; an empty one names no file."""
    text = prelude("/p", 1, '/it\'s "$HOME" \udcff')
    assert b"export BASH_ENV='/it'\"'\"'s \"$HOME\" \xff'" in text
    assert b'builtin . "/it\'s \\"$HOME\\" \xff"' in text
    assert b"builtin . " not in prelude("/p", 1, "")
    assert len(prelude("/p", 1, "x" * 5000)) > REPORT_BYTES
