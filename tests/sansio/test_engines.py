"""Each engine finds every occurrence and every lead, by whichever way it chose (facts part 4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.engines.stdlib import StdlibEngine, cheapest_stride, engine_for
from supervisor.sansio.escapes import nothing_to_strip
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.rules import DEFAULT_RULES, NO_RULES

try:
    from supervisor.sansio.engines.hyperscan import HyperscanEngine
except ImportError:
    HyperscanEngine = None

ENGINES = [StdlibEngine, *([HyperscanEngine] if HyperscanEngine else [])]
RULES = DEFAULT_RULES.rules


def occurrences(needles: list[bytes], buffer: bytes, start: int) -> set[tuple[int, int, int]]:
    """The definition: each needle at each position."""
    return {
        (position, position + len(needle), index)
        for index, needle in enumerate(needles)
        for position in range(start, len(buffer))
        if buffer.startswith(needle, position)
    }


def needles_of(alphabet: str, smallest: int, largest: int) -> st.SearchStrategy[list[bytes]]:
    """Distinct needles of these lengths."""
    texts = st.text(alphabet, min_size=smallest, max_size=largest).map(str.encode)
    return st.lists(texts, max_size=30, unique=True)


@given(
    st.one_of(needles_of("ab", 8, 12), needles_of("ab", 19, 64), needles_of("abcdef0123", 8, 64)),
    st.data(),
)
def test_all_occurrences_are_found_and_no_others(needles: list[bytes], data: st.DataObject) -> None:
    """Overlapping ones too, at any phase of the words, from any start; none twice."""
    parts = st.sampled_from([*needles, b"-", b"a", b"ab", b"abcde"]) | st.binary(max_size=40)
    buffer = b"".join(data.draw(st.lists(parts, max_size=12)))
    start = data.draw(st.integers(min_value=0, max_value=len(buffer)))
    for engine in ENGINES:
        found = engine(needles).scan(buffer, start).occurrences
        assert len(found) == len(set(found))
        assert set(found) == occurrences(needles, buffer, start)


PARTS = st.sampled_from(
    [part for rule in RULES for part in (rule.example, rule.near_miss, rule.example[:6], rule.example[4:])]
    + ["token", "_", "=", ": ", '"', " ", "\n", "api", "sk-", "eyJ", "--", "://", "a:", "@", "x1", "密"]
)
RULE_ENGINES = [engine((), RULES) for engine in ENGINES]


@given(st.lists(PARTS, max_size=8).map("".join))
def test_all_leads_are_found_and_no_others(text: str) -> None:
    """Wherever a trigger matches, and once: the definition, tried at every position."""
    buffer = text.encode()
    expected = {
        (*match.span(), index)
        for index, rule in enumerate(RULES)
        for position in range(len(buffer))
        if (match := rule.trigger.match(buffer, position))
    }
    for engine in RULE_ENGINES:
        found = engine.scan(buffer, len(buffer)).leads
        assert len(found) == len(set(found))
        assert set(found) == expected, engine.name


@given(st.text(alphabet=[*map(chr, range(0xA1)), "Â", "密"], max_size=20))
def test_all_engines_agree_about_controls(text: str) -> None:
    """What one calls clean the stripper may pass on."""
    data = text.encode()
    clean = not any((ord(char) < 32 and char not in "\t\n") or 0x7F <= ord(char) < 0xA0 for char in text)
    assert nothing_to_strip(data) is clean
    assert [engine.is_clean(data) for engine in RULE_ENGINES] == [clean] * len(RULE_ENGINES)


@pytest.mark.parametrize("engine", ENGINES)
def test_without_anything_to_search_nothing_is_found(engine: type[StdlibEngine]) -> None:
    """An engine can be built from nothing."""
    empty = engine(())
    assert empty.scan(b"text \0\n", 0) == ([], [])
    assert empty.name in {"hyperscan", "stdlib"}


@pytest.mark.parametrize("length", [8, 10, 11, 14, 15, 18, 19, 22, 23, 34, 35, 38, 39, 64])
def test_each_needle_is_found_at_each_phase(length: int) -> None:
    """For sets of one length, which choose different strides, and at the very end of the buffer too."""
    needles = [bytes(65 + (index * 7 + at * at) % 57 for at in range(length)) for index in range(40)]
    needles = list(dict.fromkeys(needles))
    engine = StdlibEngine(needles)
    for phase in range(35):
        index = phase % len(needles)
        buffer = b"." * phase + needles[index]
        assert (phase, phase + length, index) in engine.scan(buffer, 0).occurrences


def test_a_needle_that_overlaps_itself_is_found_at_each_position() -> None:
    """The search goes on one byte after a start, not after an end."""
    assert StdlibEngine([b"abababab"]).scan(b"ab" * 6, 1).occurrences == [(2, 10, 0), (4, 12, 0)]


def test_the_second_look_loses_nothing() -> None:
    """All needles share their coarse words, so all are named at once; those that occur are still all found."""
    needles = [*(b"0123" * 7 + b"%02d" % number for number in range(30)), b"0123" * 4 + b"abcd"]
    assert cheapest_stride([len(needle) for needle in needles]) == 16  # so the last is too short for eight-byte words
    buffer = b".." + b"0123" * 7 + b"07" + b"0123" * 7 + b"29" + b"0123" * 4 + b"abcd"
    assert set(StdlibEngine(needles).scan(buffer, 0).occurrences) == occurrences(needles, buffer, 0)


@pytest.mark.parametrize(
    ("lengths", "stride"),
    [([], 0), ([20, 30], 0), ([8] * 10, 0), ([8] * 20, 4), ([12] * 20, 8), ([20] * 20, 16), ([64] * 100, 32)],
)
def test_the_stride_is_the_cheapest(lengths: list[int], stride: int) -> None:
    """A few needles are searched for directly; many by the widest stride that they allow."""
    assert cheapest_stride(lengths) == stride


def test_streams_of_one_set_share_an_engine() -> None:
    """Building one costs milliseconds; it is forgotten with its set."""
    needles = NeedleSet.build({"A": "alpha-secret-1"})
    assert engine_for(needles) is engine_for(needles)
    assert engine_for(NeedleSet.build({"A": "alpha-secret-1"})) is not engine_for(needles)
    assert engine_for(needles, NO_RULES) is engine_for(needles, NO_RULES) is not engine_for(needles)
