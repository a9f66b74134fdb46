"""Known values alone: the union of all occurrences, whatever the cuts, the quiet points and the flags (C1-C7)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from supervisor.sansio.engines.stdlib import engine_for
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.redactor import SCAN_BYTES, Redactor
from supervisor.sansio.rules import NO_RULES

LONG = "".join(f"{number:03d}" for number in range(70))
UNEVEN = "é" + "".join(f"{number:03d}" for number in range(33))
SECRETS = {
    "A": "hunter2sec9",
    "B": "sec9-zebra-77",
    "C": "abababababab",
    "D": "11abcdef99",
    "E": "密码口令密码é9",
    "LONG": LONG,
    "UNEVEN": UNEVEN,
}
NEEDLES = NeedleSet.build(SECRETS)
PARTS = st.sampled_from(
    [
        *SECRETS.values(),
        *(value[:-1] for value in SECRETS.values()),
        *(value[3:] for value in SECRETS.values()),
        LONG[:64],
        LONG[:70],
        LONG[:130],
        LONG[64:128],
        LONG[-64:],
        LONG[-69:],
        "hunter2",
        "sec9",
        "ab",
        "1",
        "é",
        "密",
        " ",
        "\n",
        "x",
        "plain text",
    ]
)
TEXTS = st.lists(PARTS, max_size=8).map("".join)


def redactor(needles: NeedleSet = NEEDLES) -> Redactor:
    """A new one for these needles."""
    return Redactor(needles, NO_RULES, engine_for(needles, NO_RULES))


def whole_text(text: bytes, needles: NeedleSet = NEEDLES) -> tuple[bytes, Counter[str]]:
    """The meaning at a real end, written naively: each needle at each position, the end's prefix, then the union."""
    spans = [
        (start, start + len(needle.value), order, needle.name)
        for order, needle in enumerate(needles.needles)
        for start in range(len(text))
        if text.startswith(needle.value, start)
    ]
    for start in range(len(text) - 7):
        end = text[start:]
        orders = [o for o, n in enumerate(needles.needles) if n.value.startswith(end) and n.value != end]
        if orders:
            spans.append((start, len(text), orders[0], needles.needles[orders[0]].name))
            break
    last = max((end for _, end, _, _ in spans), default=len(text))
    ending = [needle for needle in needles.needles if text.endswith(needle.value, 0, last)]
    if any(after.startswith(text[last:]) for needle in ending for after in needle.following):
        spans.append((last, len(text), 0, "touches what is before it"))
    return marked(text, spans)


def marked(text: bytes, spans: list[tuple[int, int, int, str]]) -> tuple[bytes, Counter[str]]:
    """Return the text with one marker for each run of spans that overlap or touch."""
    hidden = [False] * len(text)
    joined = [False] * (len(text) + 1)
    for start, end, _, _ in spans:
        hidden[start:end] = [True] * (end - start)
        joined[start + 1 : end] = [True] * (end - start - 1)
    shown, counts = bytearray(), Counter[str]()
    for position, byte in enumerate(text):
        if not hidden[position]:
            shown.append(byte)
        elif position == 0 or not hidden[position - 1]:
            name = min((start, order, name) for start, _, order, name in spans if start == position)[2]
            shown += f"[REDACTED:{name}]".encode()
            counts[name] += 1
    return bytes(shown), counts


def fed(subject: Redactor, text: str, data: st.DataObject) -> bytes:
    """Feed `text` in pieces of whole characters, with bulk flags and quiet points as drawn."""
    decided = b""
    while text:
        size = data.draw(st.integers(min_value=1, max_value=len(text)))
        chunk, text = text[:size], text[size:]
        decided += subject.feed(chunk.encode(), bulk=data.draw(st.booleans()))
        decided.decode()
        assert subject.held <= 63
        if data.draw(st.booleans()):
            decided += subject.feed(b"")
    return decided


@given(TEXTS, st.data())
def test_the_text_is_that_of_the_whole_for_every_cut(text: str, data: st.DataObject) -> None:
    """Cuts, quiet points and bulk flags change nothing, markers are counted once, and pieces are whole characters."""
    subject = redactor()
    shown = fed(subject, text, data) + subject.finish()
    expected, counts = whole_text(text.encode())
    assert shown == expected
    assert subject.redactions == counts
    assert (subject.held, subject.omitted) == (0, 0)


@given(st.text("ab", min_size=0, max_size=40), st.data())
def test_needles_that_overlap_themselves_and_each_other(text: str, data: st.DataObject) -> None:
    """An alphabet of two letters, so that nearly every position is undecided."""
    needles = NeedleSet.build({"A": "abaababaab", "B": "babbabbaba", "C": "abababab", "D": "aabaabaaab"})
    subject = redactor(needles)
    assert fed(subject, text, data) + subject.finish() == whole_text(text.encode(), needles)[0]


@given(TEXTS, st.data())
@example("see hunter2", None)
def test_an_abort_shows_what_a_quiet_pipe_would_and_a_marker(text: str, data: st.DataObject | None) -> None:
    """Not more and not less, whatever came before; the marker merges with one that it touches (contract C7)."""
    subject = redactor()
    decided = subject.feed(text.encode()) if data is None else fed(subject, text, data)
    raw = text.encode()
    undecided = NEEDLES.partial(raw)
    border = len(raw) - undecided
    spans = [
        (start, start + len(needle.value), order, needle.name)
        for order, needle in enumerate(NEEDLES.needles)
        for start in range(border)
        if raw.startswith(needle.value, start)
    ]
    covered = max([border, *(end for _, end, _, _ in spans)])
    if undecided:
        spans.append((border, len(raw), 999, "undecided"))
    expected, counts = marked(raw, spans)
    del counts["undecided"]
    assert decided + subject.abort() == expected
    assert subject.redactions == counts
    assert (subject.held, subject.omitted) == (0, len(raw) - covered)


@pytest.mark.parametrize("bulk", [False, True])
def test_only_what_may_grow_into_a_needle_is_held_on_quiet(*, bulk: bool) -> None:
    """A prompt is visible at once; a needle's beginning is not."""
    subject = redactor()
    decided = subject.feed(b"Password: ", bulk=bulk) + subject.feed(b"")
    assert (decided, subject.held) == (b"Password: ", 0)
    decided = subject.feed(b"see hunter2", bulk=bulk) + subject.feed(b"")
    assert (decided, subject.held) == (b"see ", 7)
    assert subject.feed(b"!") == b"hunter2!"


def test_bulk_holds_flat() -> None:
    """63 bytes, without a look at what they are; fewer where no needle is that long."""
    subject = redactor()
    assert subject.feed(b"." * 100, bulk=True) == b"." * 37
    short = redactor(NeedleSet.build({"A": "密码口令密码é9"}))
    short.feed(b"." * 100, bulk=True)
    assert short.held == max(map(len, NeedleSet.build({"A": "密码口令密码é9"}).values)) - 1
    assert redactor(NeedleSet.build()).feed(b"." * 100, bulk=True) == b"." * 100


def test_bulk_returns_whole_characters() -> None:
    """The flat hold begins at a character, wherever 63 bytes before the end are."""
    for length in range(1, 10):
        subject = redactor()
        text = "密" * 40 + "." * length
        decided = subject.feed(text.encode(), bulk=True)
        assert text.startswith(decided.decode())
        assert 60 < subject.held <= 63


def test_a_secret_inside_another_changes_nothing() -> None:
    """The union is the outer one, to its end."""
    subject = redactor(NeedleSet.build({"INNER": "inner-value", "OUTER": "xx-inner-value-yy"}))
    assert subject.feed(b"<xx-inner-value-yy><inner-value>") == b"<[REDACTED:OUTER]><[REDACTED:INNER]>"


def test_touching_secrets_give_one_marker_also_across_a_quiet_point() -> None:
    """The second begins exactly where the first one's marker ended."""
    subject = redactor()
    shown = [subject.feed(data) for data in (b"<11abcdef99", b"", b"11abcd", b"", b"ef99", b">")]
    assert b"".join(shown) == b"<[REDACTED:D]>"
    assert subject.redactions == {"D": 1}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see hunter2s", "see [REDACTED:A]"),
        ("see hunter2", "see hunter2"),
        (LONG[:5], LONG[:5]),
        (LONG[:8], "[REDACTED:LONG]"),
        (LONG[:65], "[REDACTED:LONG]"),
        (LONG[:132], "[REDACTED:LONG]"),
        (LONG[:64] + "x", "[REDACTED:LONG]x"),
        (LONG + "\n", "[REDACTED:LONG]\n"),
        (LONG[:64] + LONG[128:130], "[REDACTED:LONG]" + LONG[128:130]),
        ("11abcdef99" + LONG[64:66], "[REDACTED:D]" + LONG[64:66]),
    ],
)
def test_a_beginning_of_a_known_value_is_masked_at_the_end(text: str, shown: str) -> None:
    """8 bytes or more of it, those of a long value counted from its first piece (contract C7)."""
    subject = redactor()
    assert (subject.feed(text.encode()) + subject.finish()).decode() == shown


def test_needles_added_while_running_apply_to_what_is_held() -> None:
    """What was returned stays as it is (contract C2, C5)."""
    subject = redactor()
    assert subject.feed(b"new-secret-1 hunter2") == b"new-secret-1 "
    more = NeedleSet.build({"NEW": "new-secret-1", "H": "hunter2!new"})
    subject.use(more, engine_for(more, NO_RULES))
    assert subject.feed(b"!new new-secret-1.") == b"[REDACTED:H] [REDACTED:NEW]."


@pytest.mark.parametrize("chunk", [1, SCAN_BYTES + 1])
def test_ten_mebibytes_of_partial_matches_need_no_memory(chunk: int) -> None:
    """The hold is at most 63 bytes, no text is lost, and what is fed at once is searched in slices (contract C4)."""
    total = 10 * 1024 * 1024 if chunk > 1 else 20_000
    near = (b"hunter2sec" + b"abababababa" + LONG[:63].encode()) * (total // 84)
    subject = redactor()
    size = 0
    for start in range(0, len(near), chunk):
        size += subject.feed(near[start : start + chunk], bulk=True).count(b"hunter2sec")
        assert subject.held <= 63
    assert subject.redactions == {}


@pytest.mark.parametrize("bulk", [False, True])
def test_a_secret_across_slices_is_found(*, bulk: bool) -> None:
    """The border between two searched slices is a cut like any other."""
    text = b"." * (SCAN_BYTES - 5) + b"hunter2sec9" + b"." * SCAN_BYTES
    subject = redactor()
    shown = subject.feed(text, bulk=bulk) + subject.finish()
    assert shown == text.replace(b"hunter2sec9", b"[REDACTED:A]")


@pytest.mark.parametrize("end", ["finish", "abort"])
def test_nothing_is_fed_after_the_end(end: str) -> None:
    """That would be our own fault."""
    subject = redactor()
    getattr(subject, end)()
    with pytest.raises(AssertionError):
        subject.feed(b"a")
