"""The pure half of one stream: what is decided, and where each byte is booked (contract B5, B6, B9, C7, D3, D8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.preview import Preview
from supervisor.sansio.sanitizer import Sanitizer
from supervisor.sansio.stream import Stream, Verdict

if TYPE_CHECKING:
    from supervisor.sansio.words import CaptureReason

SECRET = b"hunter2-hunter2"


def stream() -> Stream:
    """Return a stream that knows one secret."""
    return Stream("stdout", Sanitizer(NeedleSet.build({"TOKEN": SECRET})), Preview(100, 1000))


def shown(subject: Stream) -> str:
    """Return the preview's text."""
    return subject.preview.render(100, 1000).head


def test_fed_text_is_decided_shown_and_accepted() -> None:
    """The whole way of a few bytes, from the pipe to the disk."""
    subject = stream()
    subject.observe(6)
    assert subject.ledger.pending == 6
    text = subject.feed(b"h\x07\xffi\n!", bulk=False)
    assert text == b"h\xef\xbf\xbdi\n!"
    assert shown(subject) == "h\ufffdi\n!"
    subject.committed(len(text))
    counts = subject.ledger.snapshot()
    assert (counts.observed, counts.accepted, counts.pending, counts.discarded) == (6, 6, 0, 0)
    assert (counts.committed, counts.uncommitted, counts.held) == (len(text), 0, 0)
    assert subject.verdict() == Verdict("complete", None)


def test_what_is_written_over_is_in_the_text_and_not_in_the_preview() -> None:
    """One line for each state on disk, the last state alone in the preview, and as many bytes in both accounts."""
    subject = Stream("stdout", Sanitizer(NeedleSet.build(), stream=True), Preview(100, 1000))
    subject.observe(16)
    text = subject.feed(b"10%\r20%\r30%\r\nx\r", bulk=False) + subject.finish(whole=True)
    assert text == b"10%\n20%\n30%\nx\n"
    assert (shown(subject), subject.preview.frames_dropped) == ("30%\nx\n", 2)
    assert (subject.preview.total, subject.preview.lines, subject.ledger.uncommitted) == (len(text), 4, len(text))


def test_held_text_is_counted_until_it_is_decided() -> None:
    """Fed is accepted, also while the text waits: only the representation is held (B6)."""
    subject = stream()
    subject.observe(14)
    assert subject.feed(b"= hunter2-hunt", bulk=True) == b""
    assert subject.ledger.held == 14
    assert subject.quiet() == b"= "
    assert subject.ledger.held == 12
    assert subject.ledger.accepted == 14
    assert shown(subject) == "= "


@pytest.mark.parametrize(("whole", "rest"), [(True, b"[REDACTED:TOKEN]"), (False, b"[REDACTED:undecided]")])
def test_the_end_decides_what_was_held(whole: bool, rest: bytes) -> None:  # noqa: FBT001 -- a parameter of the test
    """A real end applies the whole-text rule, a cut one leaves a marker (C7); nothing stays held."""
    subject = stream()
    subject.observe(12)
    assert subject.feed(b"hunter2-hunt", bulk=False) == b""
    assert subject.finish(whole=whole) == rest
    assert subject.ledger.held == 0
    assert shown(subject).encode() == rest


def test_after_retention_bytes_are_discarded_and_still_shown() -> None:
    """Sanitiser and preview go on, so that the last error is in the preview's tail (B5)."""
    subject = stream()
    subject.observe(9)
    subject.feed(b"kept", bulk=False)
    subject.committed(4)
    assert subject.retaining
    subject.end_retention("no-space")
    assert not subject.retaining
    assert subject.feed(b"shown", bulk=False) == b"shown"
    counts = subject.ledger.snapshot()
    assert (counts.accepted, counts.discarded, counts.committed, counts.uncommitted) == (4, 5, 4, 5)
    assert shown(subject) == "keptshown"
    assert subject.verdict() == Verdict("partial", "no-space")


def test_the_first_reason_stays() -> None:
    """Later ones change nothing (A3)."""
    subject = stream()
    subject.end_retention("job-limit")
    subject.end_retention("drain-timeout")
    assert subject.verdict() == Verdict("partial", "job-limit")


def test_a_boundary_that_nobody_knows_is_a_failure() -> None:
    """What a write that never came back has kept cannot be trusted (D8)."""
    subject = stream()
    subject.end_retention("writer-stuck")
    assert subject.verdict() == Verdict("failed", "writer-stuck")


def test_a_muted_stream_keeps_and_shows_nothing() -> None:
    """Its bytes are counted and discarded, the sanitiser included (B9)."""
    subject = stream()
    subject.mute()
    subject.observe(20)
    assert subject.feed(SECRET, bulk=False) == b""
    assert subject.feed(b"plain", bulk=True) == b""
    counts = subject.ledger.snapshot()
    assert (counts.observed, counts.accepted, counts.discarded) == (20, 0, 20)
    assert counts.uncommitted == 0
    assert subject.preview.total == 0
    assert subject.verdict() == Verdict("disabled", None)


def test_a_stream_whose_code_failed_has_failed_for_good() -> None:
    """What is pending is dropped, what comes later is counted, and the earlier reason does not soften it (B5)."""
    subject = stream()
    subject.observe(30)
    subject.feed(b"hunter2-hu", bulk=False)
    assert subject.ledger.held == 10
    subject.end_retention("job-limit")
    subject.distrust()
    assert not subject.trusted
    counts = subject.ledger.snapshot()
    assert (counts.accepted, counts.pending, counts.discarded, counts.held) == (10, 0, 20, 0)
    subject.observe(5)
    counts = subject.ledger.snapshot()
    assert (counts.observed, counts.pending, counts.discarded) == (35, 0, 25)
    assert counts.settled
    assert subject.verdict() == Verdict("failed", "internal")


@pytest.mark.parametrize("missing", ["pending", "held", "uncommitted"])
def test_a_stream_with_bytes_missing_and_no_reason_is_never_complete(missing: str) -> None:
    """That would be a lie, so it is a defect of ours (D3)."""
    subject = stream()
    subject.observe(4)
    if missing != "pending":
        subject.feed(b"hunt" if missing == "held" else b"text", bulk=False)
    assert getattr(subject.ledger, missing) == 4
    with pytest.raises(AssertionError, match="stdout ended with bytes missing"):
        subject.verdict()


STEPS = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=30),
        st.sampled_from([SECRET, SECRET[:9], SECRET[9:], b"\x1b[1m", "\u20ac".encode()[:2]]),
        st.sampled_from(["quiet", "job-limit", "io-error", "distrust", "write"]),
    ),
    max_size=25,
)


@given(STEPS, st.booleans())
def test_every_byte_has_its_account_at_every_moment(steps: list[bytes | str], whole: bool) -> None:  # noqa: FBT001
    """`observed = accepted + pending + discarded`, and the text's accounts add up to the text (B6)."""
    subject = stream()
    fed = decided = 0
    first: CaptureReason | None = None
    for step in (*steps, "end"):
        text = b""
        if isinstance(step, bytes):
            subject.observe(len(step))
            fed += len(step)
            assert subject.ledger.pending == (len(step) if subject.trusted else 0)
            text = subject.feed(step, bulk=len(step) % 2 == 0) if subject.trusted else b""
        elif step == "write":
            subject.committed(subject.ledger.uncommitted if subject.retaining else 0)
        elif step == "distrust":
            subject.distrust()
            first = first or "internal"
        elif step == "quiet":
            text = subject.quiet() if subject.trusted else b""
        elif step == "end":
            text = subject.finish(whole=whole) if subject.trusted else b""
        else:
            reason: CaptureReason = "job-limit" if step == "job-limit" else "io-error"
            subject.end_retention(reason)
            first = first or reason
        decided += len(text)
        counts = subject.ledger.snapshot()
        assert counts.observed == fed == counts.accepted + counts.pending + counts.discarded
        assert counts.committed + counts.uncommitted == decided == subject.preview.total
        assert counts.held == (subject.sanitizer.held if subject.trusted else 0)
        assert subject.reason == first
    assert subject.ledger.snapshot().settled
    assert subject.retaining or subject.verdict().state in {"partial", "failed"}
