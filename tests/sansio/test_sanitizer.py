"""The three stages together: what is committed, and what is told about it (contract B8, C1-C8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.engines.stdlib import StdlibEngine
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.sanitizer import Sanitizer, sanitise_text

NEEDLES = NeedleSet.build({"A": "hunter2sec9", "U": "ключ密码9é!", "L": "first-line-abc\nsecond-line-def"})
PARTS = st.sampled_from(
    [
        b"hunter2",
        b"sec9",
        b"hunter2sec9",
        "ключ".encode(),
        "密码9é!".encode(),
        b"first-line-abc",
        b"second-line-def",
        b"\r",
        b"\n",
        b"\x1b",
        b"\x1b[31m",
        b"[0m",
        b"\x1b]0;t",
        b"\x07",
        b"\x00",
        b"\xe5",
        b"\xaf\x86",
        b"\xff",
        b" x ",
    ]
)


@given(st.lists(PARTS, max_size=14).map(b"".join), st.booleans(), st.data())
def test_the_text_depends_on_no_cut_flag_or_quiet_point(raw: bytes, whole: bool, data: st.DataObject) -> None:  # noqa: FBT001
    """Any chunks give what one chunk gives, at either end, and every figure agrees (contract C1)."""
    once = Sanitizer(NEEDLES)
    expected = once.feed(raw) + (once.finish() if whole else once.abort())
    pieces, shown = Sanitizer(NEEDLES), b""
    rest = raw
    while rest:
        size = data.draw(st.integers(min_value=1, max_value=len(rest)))
        shown += pieces.feed(rest[:size], bulk=data.draw(st.booleans()))
        rest = rest[size:]
        assert pieces.held <= 69
        if data.draw(st.booleans()):
            shown += pieces.quiet()
    shown += pieces.finish() if whole else pieces.abort()
    assert shown == expected
    for fact in ("held", "omitted", "replaced", "controls_removed", "redactions", "representation"):
        assert getattr(pieces, fact) == getattr(once, fact), fact
    assert pieces.held == 0


@given(st.lists(PARTS, max_size=14).map(b"".join), st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]), st.data())
def test_a_stream_gives_the_same_text_in_any_encoding_and_cut(raw: bytes, encoding: str, data: st.DataObject) -> None:
    """Its carriage returns stand for line feeds, and a byte order mark is all that UTF-16 needs (facts 4)."""
    text = raw.decode("utf-8", "replace")
    plain = Sanitizer(NEEDLES)
    expected = plain.feed(text.encode()) + plain.finish()
    stream, shown = Sanitizer(NEEDLES, stream=True), b""
    rest = text.encode() if encoding == "utf-8" else ("\ufeff" + text).encode(encoding)
    while rest:
        size = data.draw(st.integers(min_value=1, max_value=len(rest)))
        shown += stream.feed(rest[:size], bulk=data.draw(st.booleans()))
        rest = rest[size:]
        assert stream.held <= 70
        if data.draw(st.booleans()):
            shown += stream.quiet()
    shown += stream.finish()
    assert shown.replace(b"\r", b"\n") == expected
    assert (stream.held, stream.redactions) == (0, plain.redactions)
    assert stream.encoding == encoding


@pytest.mark.parametrize("end", ["finish", "abort"])
def test_a_return_that_ends_a_stream_is_in_its_text(end: str) -> None:
    """Nothing is written over the line any more, however the stream ended."""
    stream = Sanitizer(NEEDLES, stream=True)
    assert (stream.feed(b"10 \r20 \r"), stream.held) == (b"10 \r20 ", 1)
    assert (getattr(stream, end)(), stream.held, stream.omitted) == (b"\r", 0, 0)


@given(st.binary(max_size=60))
def test_committed_text_is_utf8_without_controls(raw: bytes) -> None:
    """Whatever the bytes are (contract B8)."""
    sanitizer = Sanitizer(NEEDLES)
    text = (sanitizer.feed(raw) + sanitizer.finish()).decode()
    assert not any((ord(char) < 32 and char not in "\t\n") or 0x7F <= ord(char) < 0xA0 for char in text)


def test_each_stage_undoes_what_would_hide_a_secret_from_the_next() -> None:
    """A colour change, NULs as UTF-16 has them, a cut character: all give the plain value."""
    for raw in (b"hunt\x1b[31mer2\x1b[0msec9", "hunter2sec9".encode("utf-16-le"), b"hunter2\xc2\x85sec9"):
        sanitizer = Sanitizer(NEEDLES)
        assert sanitizer.feed(raw) + sanitizer.finish() == b"[REDACTED:A]", raw


def test_the_facts() -> None:
    """Each count is of its own kind."""
    sanitizer = Sanitizer(NEEDLES)
    text = sanitizer.feed(b"\xff \x1b[1mhunter2sec9\r\nhunter2")
    assert text == "\ufffd [REDACTED:A]\n".encode()
    assert (sanitizer.replaced, sanitizer.controls_removed, sanitizer.held) == (1, 5, 7)
    assert (sanitizer.redactions, sanitizer.omitted) == ({"A": 1}, 0)
    assert (sanitizer.encoding, sanitizer.policy, sanitizer.representation) == ("utf-8", "default/2", "redacted")
    assert sanitizer.finish() == b"hunter2"


def test_redactions_are_a_copy() -> None:
    """A receipt keeps what it was given."""
    sanitizer = Sanitizer(NEEDLES)
    sanitizer.redactions["x"] = 1
    assert sanitizer.redactions == {}


def test_all_that_is_carried_counts_as_held() -> None:
    """An unfinished character or sequence is undecided too; at a real end neither leaves anything behind."""
    for raw, held, end in (
        (b">\xe5\xaf", 2, "\ufffd".encode()),
        (b">\x1b[3", 2, b""),
        (b">hunter2s", 8, b"[REDACTED:A]"),
    ):
        sanitizer = Sanitizer(NEEDLES)
        assert sanitizer.feed(raw) == b">"
        assert sanitizer.held == held
        assert (sanitizer.finish(), sanitizer.held, sanitizer.omitted) == (end, 0, 0)


@pytest.mark.parametrize(
    ("raw", "shown", "omitted"),
    [
        (b"see hunter2s", b"see [REDACTED:undecided]", 8),
        (b"see hunter2sec9hunt", b"see [REDACTED:A]", 4),
        (b"see hunter2sec9", b"see [REDACTED:A]", 0),
        (b"all decided\n", b"all decided\n", 0),
        (b"cut \xe5\xaf", b"cut ", 2),
        (b"cut \x1b[3", b"cut ", 0),
    ],
)
def test_an_abort_leaves_a_marker_for_the_undecided(raw: bytes, shown: bytes, omitted: int) -> None:
    """It merges with a marker that it touches; a cut character is dropped and counted; a cut sequence is no text."""
    sanitizer = Sanitizer(NEEDLES)
    assert sanitizer.feed(raw, bulk=True) + sanitizer.abort() == shown
    assert (sanitizer.omitted, sanitizer.held) == (omitted, 0)


def test_without_redaction_the_other_stages_still_run() -> None:
    """The text is decoded and stripped, nothing is held, and the policy says so, also after `use`."""
    sanitizer = Sanitizer(NEEDLES, redact=False)
    sanitizer.use(NEEDLES)
    assert sanitizer.feed(b"\x1b[1mhunter2sec9 hunt") == b"hunter2sec9 hunt"
    assert (sanitizer.policy, sanitizer.representation, sanitizer.held) == ("none", "decoded", 0)


def test_the_caller_may_bring_an_engine() -> None:
    """Any that finds what the oracle finds; without redaction one of nothing."""
    engine = StdlibEngine(NEEDLES.values)
    assert Sanitizer(NEEDLES, engine=engine).feed(b"hunter2sec9.") == b"[REDACTED:A]."
    nothing = StdlibEngine((), ())
    assert Sanitizer(NEEDLES, engine=nothing, redact=False).feed(b"hunter2sec9.") == b"hunter2sec9."


def test_values_added_while_running_are_found() -> None:
    """In what is not committed yet (contract C5)."""
    sanitizer = Sanitizer(NeedleSet.build())
    assert sanitizer.feed(b"hunter2sec9 ") == b"hunter2sec9 "
    sanitizer.use(NEEDLES)
    assert sanitizer.feed(b"hunter2sec9 ") == b"[REDACTED:A] "


def test_a_binary_stream_is_labelled_and_its_text_is_unchanged() -> None:
    """The label settles at the end (contract B8)."""
    sanitizer = Sanitizer(NEEDLES)
    assert sanitizer.feed(b"banner\n") == b"banner\n"
    assert sanitizer.representation == "redacted"
    assert sanitizer.feed(b"\0\0\0\0hunter2sec9\n") == b"[REDACTED:A]\n"
    assert sanitizer.representation == "binary"


@pytest.mark.parametrize("end", ["finish", "abort"])
def test_nothing_is_fed_after_the_end(end: str) -> None:
    """That would be our own fault."""
    sanitizer = Sanitizer(NEEDLES)
    getattr(sanitizer, end)()
    with pytest.raises(AssertionError):
        sanitizer.feed(b"a")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("curl -H 'hunter2sec9'", "curl -H '[REDACTED:A]'"),
        ("\x1b[31mlabel\x07\n", "label\n"),
        ("lone \ud800 and \udcff", "lone \ufffd\ufffd\ufffd and \ufffd\ufffd\ufffd"),
        ("argument \udcff", "argument \ufffd"),
        ("cut hunter2s", "cut [REDACTED:A]"),
        ("", ""),
    ],
)
def test_labels_and_arguments_pass_the_same_stages(text: str, shown: str) -> None:
    """One shot, for any string (contract C8)."""
    assert sanitise_text(text, NEEDLES) == shown
