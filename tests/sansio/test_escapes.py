"""Escapes are dropped whole, controls go, line ends are line feeds, and memory is bounded (contract C1, C4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.escapes import EscapeStripper

PIECES = [
    *["\x1b", "[", "]", "P", "X", "^", "_", "\\", "\x07", "\x18", "\x1a", "3", ";", "?", " ", "/", "(", "B", "m", "K"],
    *["\r", "\n", "\r\n", "\t", "\0", "\x01", "\x7f", "a", "é", "密"],
    *["\x85", "\x90", "\x98", "\x9b", "\x9c", "\x9d", "\x9e", "\x9f"],
    *["\x1b[31m", "\x1b[0m", "\x1b[m", "\x1b]0;title\x07", "\x1b]8;;http://x/\x1b\\", "\x1bPq#0\x1b\\", "\x1b(B"],
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=25)


def oracle(text: str, *, returns: bool = False) -> str:
    """The parser as a plain state machine over characters, written from the description, not from the code."""
    shown: list[str] = []
    state = "ground"
    for char in unfolded(text):
        code = ord(char)
        if char == "\x1b":
            state = "escape"
        elif char in "\x18\x1a":
            state = "ground"
        elif (code < 0x20 and char not in "\t\n\r\x07") or code == 0x7F:
            continue
        elif char == "\x07":
            state = "ground"
        else:
            state = step(state, char, shown)
    text = "".join(shown)
    while "\r\r" in text:
        text = text.replace("\r\r", "\r")
    text = text.replace("\r\n", "\n")
    return text if returns else text.replace("\r", "\n")


def unfolded(text: str) -> str:
    """Return the text with C1 introducers as seven-bit sequences and without the other C1 controls."""
    seven_bit = {chr(ord(final) + 0x40): "\x1b" + final for final in "PX[\\]^_"}
    return "".join(seven_bit.get(char, "" if 0x80 <= ord(char) < 0xA0 else char) for char in text)


TRANSITIONS = (
    ("string", "\t", "\t", "string"),
    ("string", " ", "\U0010ffff", "string"),
    ("escape", "[", "[", "parameters"),
    *(("escape", char, char, "string") for char in "]PX^_"),
    *((state, "0", "~", "ground") for state in ("escape", "intermediate")),
    *((state, " ", "/", "intermediate") for state in ("escape", "intermediate")),
    ("parameters", "0", "?", "parameters"),
    *((state, " ", "/", "csi") for state in ("parameters", "csi")),
    *((state, "@", "~", "ground") for state in ("parameters", "csi")),
)
"""State, first and last character of a range, next state; the first line that fits counts."""


def step(state: str, char: str, shown: list[str]) -> str:
    """Return the state after a character that is no cancelling or ignored control; show it if nothing swallows it."""
    for before, first, last, after in TRANSITIONS:
        if state == before and first <= char <= last:
            return after
    shown.append(char)
    return "ground"


@pytest.mark.parametrize("returns", [False, True])
@given(pieces=TEXT, data=st.data())
def test_every_cut_gives_what_a_character_machine_gives(
    *, returns: bool, pieces: list[str], data: st.DataObject
) -> None:
    """The text is the oracle's, the carry small, and each byte is shown, counted or carried."""
    text = "".join(pieces)
    stripper = EscapeStripper(returns=returns)
    shown, fed, rest = b"", 0, text
    while rest:
        size = data.draw(st.integers(min_value=1, max_value=len(rest)))
        chunk, rest = rest[:size].encode(), rest[size:]
        fed += len(chunk)
        shown += stripper.feed(chunk)
        assert stripper.pending <= 3 + returns
        assert fed == len(shown) + stripper.removed + stripper.pending
    shown += stripper.finish()
    assert shown.decode() == oracle(text, returns=returns)
    assert (stripper.pending, stripper.removed) == (0, fed - len(shown))


@pytest.mark.parametrize("reset", ["\x1b[0m", "\x1b[m"])
@given(pieces=TEXT, cut=st.integers(0, 60))
def test_a_text_full_of_resets_gives_the_same(reset: str, pieces: list[str], cut: int) -> None:
    """Where they are taken out together, what stands between them is told apart as before: also what is malformed."""
    text = reset * 120 + reset.join(pieces) + "\x1b]0;title\x1b[3"[: cut % 12]
    stripper = EscapeStripper()
    shown = stripper.feed(text.encode())
    assert len(text.encode()) == len(shown) + stripper.removed + stripper.pending
    assert (shown + stripper.finish()).decode() == oracle(text)


def test_a_reset_does_not_join_what_it_cuts() -> None:
    """The rest of a sequence that a reset breaks off is text."""
    raw = b"\x1b[3\x1b[0m1mtext " * 400
    assert EscapeStripper().feed(raw) == b"1mtext " * 400


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[1;31mred\x1b[0m", b"red"),
        (b"\x1b[38:2:1:2:3mx\x1b[?25l\x1b[2 q\x1b[!p", b"x"),
        (b"a\x1b]0;title\x07b\x1b]2;t\x1b\\c", b"abc"),
        (b"\x1bPq#0;2;0\x1b\\x\x1b_Gf=100;AAAA\x1b\\y\x1b^pm\x1b\\z\x1bXsos\x1b\\", b"xyz"),
        (b"\x1b(B\x1b)0\x1b#8\x1b%G\x1b=\x1b7text\x1bc", b"text"),
        (b"\xc2\x9b31mred\xc2\x9d0;t\xc2\x9cx\xc2\x85y", b"redxy"),
        (b"\x1bPtmux;\x1b\x1b]52;c;AAAA\x07\x1b\\x", b"x"),
        (b"se\x1b[\x003\x011mcret", b"secret"),
        (b"\x1b[3\x18x\x1b[3\x1ay", b"xy"),
        (b"\x1b[3\x1b[1mx", b"x"),
        (b"\x1b[3\xc3\xa9", b"\xc3\xa9"),
        (b"\x1b]0;stray\nthe log goes on\n", b"\nthe log goes on\n"),
        (b"\x1b]0;stray\rthe log goes on\n", b"\nthe log goes on\n"),
        (b"a\0b\x07c\x08d\x7fe\tf\n", b"abcde\tf\n"),
        (b"10%\r20%\r\r\r\n30%\r\n\n", b"10%\n20%\n30%\n\n"),
        (b"\r\x1b[K\n", b"\n"),
        (b"caf\xc3\xa9 \xc2\xa9\n", b"caf\xc3\xa9 \xc2\xa9\n"),
    ],
)
def test_what_is_shown(raw: bytes, shown: bytes) -> None:
    """Kinds of sequences and controls as programs write them; nothing of them is left, and no text is lost."""
    stripper = EscapeStripper()
    assert stripper.feed(raw) + stripper.finish() == shown
    assert stripper.removed == len(raw) - len(shown)


def test_clean_text_passes_as_the_same_object() -> None:
    """The common case copies nothing; a two-byte character that begins like a C1 control is clean too."""
    for data in (b"plain\ttext\n", "© café\n".encode()):
        assert EscapeStripper().feed(data) is data


def test_a_progress_line_is_shown_at_its_carriage_return() -> None:
    r"""Nothing waits for what follows `\r`, and what follows is joined."""
    stripper = EscapeStripper()
    assert stripper.feed(b"50%\r") == b"50%\n"
    assert stripper.pending == 0
    assert [stripper.feed(data) for data in (b"\r", b"\x1b[K", b"\n", b"\n")] == [b"", b"", b"", b"\n"]


def test_returns_are_told_apart_from_line_ends_by_what_follows() -> None:
    r"""A `\r` at the end waits for that; a run is one, also across sequences; the last one of a stream is none."""
    stripper = EscapeStripper(returns=True)
    assert stripper.feed(b"dos\r\n50%\r") == b"dos\n50%"
    assert stripper.pending == 1
    assert [stripper.feed(data) for data in (b"", b"\r", b"\x1b[K", b"60%\r\r")] == [b"", b"", b"", b"\r60%"]
    assert [stripper.feed(data) for data in (b"\n", b"x\r\r\r", b"y\r\x1b[3")] == [b"\n", b"x", b"\ry"]
    assert (stripper.pending, stripper.finish(), stripper.pending) == (3, b"\r", 0)
    assert EscapeStripper(returns=True).feed(b"a\r\r\rb\r\r\nc") == b"a\rb\nc"


def test_the_caller_may_tell_what_is_clean() -> None:
    """Its word is taken, where nothing is carried."""
    stripper = EscapeStripper()
    assert stripper.feed(b"a\x07b", lambda _: True) == b"a\x07b"
    assert stripper.feed(b"a\x07b", lambda _: False) == b"ab"
    stripper.feed(b"\x1b[")
    assert stripper.feed(b"1m", lambda _: True) == b""


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b]8;id=1;https://e.x/?a=b\x1b\\the link\x1b]8;;\x1b\\ after", b"the link after"),
        (b"\x1b]8;;https://e.x/\x07the link\x1b]8;;\x07", b"the link"),
        (b"\x1b[?1049h\x1b[22;0;0t\x1b[2J\x1b[1;1Hfull screen\x1b[?1049l\x1b[23;0;0t\x1b[?1l\x1b>", b"full screen"),
        (b"\x1b[?2004h\x1b[?25l\x1b[s\x1b[10A\x1b[2Kx\x1b[u\x1b[?25h\x1b[?2004l\x1bM\x1bD", b"x"),
    ],
)
def test_links_keep_their_text_and_screen_switching_leaves_nothing(raw: bytes, shown: bytes) -> None:
    """OSC 8, the alternate screen, cursor motion, bracketed paste: of each only what is read stays."""
    assert EscapeStripper().feed(raw) == shown


@pytest.mark.parametrize("opening", [b"\x1b]0;", b"\x1b[", b"\x1b[1 ", b"\x1b(", b"\r", b"\x1bP"])
@pytest.mark.parametrize("filling", [b";;;;", b"    ", b"\r\r\r\r", b"\0\0\0\0", b"\x1b\x1b\x1b\x1b"])
def test_a_sequence_without_an_end_needs_no_memory(opening: bytes, filling: bytes) -> None:
    """The carry stays at three bytes however much is swallowed, and text after it is found again (contract C4)."""
    stripper = EscapeStripper()
    stripper.feed(opening)
    for _ in range(64):
        stripper.feed(filling * 4096)
        assert stripper.pending <= 3
    assert stripper.feed(b"\x18\nnext\n").endswith(b"next\n")


@pytest.mark.parametrize("whole", [b"\x1b[1 3x", b"\x1b( [1mx", b"\x1b[1;2 !qx", b"\x1b]0;[1m\x07x", b"\x1b  \x1b[1mx"])
def test_the_carry_keeps_the_state(whole: bytes) -> None:
    """Parameters are not allowed after an intermediate, nor an opening: a cut there must not forget it."""
    at_once = EscapeStripper().feed(whole)
    for cut in range(1, len(whole)):
        stripper = EscapeStripper()
        assert stripper.feed(whole[:cut]) + stripper.feed(whole[cut:]) == at_once, cut


def test_an_unfinished_sequence_is_dropped_and_counted_at_the_end() -> None:
    """It is never shown."""
    stripper = EscapeStripper()
    assert stripper.feed(b"a\x1b[31;4") == b"a"
    assert stripper.pending == 2
    assert stripper.finish() == b""
    assert (stripper.pending, stripper.removed) == (0, 6)


def test_nothing_is_fed_after_the_end() -> None:
    """That would be our own fault."""
    stripper = EscapeStripper()
    stripper.finish()
    with pytest.raises(AssertionError):
        stripper.feed(b"a")
