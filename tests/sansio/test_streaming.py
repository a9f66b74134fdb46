"""Streaming gives what the whole text gives, for any text, cuts, quiet points and flags, on each engine (C1).

`python tests/sansio/test_streaming.py 20000` runs the property over that many cases. `MUTANTS` are eight ways to get
the algorithm wrong; the property's own checker must find a text for each.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from supervisor.sansio.engines.stdlib import StdlibEngine
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.redactor import Redactor
from supervisor.sansio.rules import DEFAULT_RULES, Rule, keyblocks, model
from supervisor.sansio.rules.model import UNDECIDED, Secret, Text
from supervisor.sansio.spans import Union

if TYPE_CHECKING:
    from collections.abc import Callable

    from supervisor.sansio.engines import Engine

try:
    from supervisor.sansio.engines.hyperscan import HyperscanEngine
except ImportError:
    HyperscanEngine = None

CUSTOM: Final = Rule(
    name="corp-token",
    lead="(?i:corp)_[a-z]{2,4}_",
    value="[a-z0-9]",
    minimum=6,
    source="this test",
    example="corp_" + "ab_12345a",
    near_miss="corp_ab_12",
)
RULES: Final = DEFAULT_RULES.with_rules([CUSTOM])
SECRETS: Final = {
    "A": "hunter2sec9",
    "B": "sec9-zebra-77",
    "LONG": "".join(f"{number:03d}" for number in range(70)),
    "E": "密码口令密码é9",
    "Q": 'a"b\\c d/e9',
}
NEEDLES: Final = NeedleSet.build(SECRETS)
ENGINES: Final[list[Engine]] = [StdlibEngine(NEEDLES.values, RULES.rules)]
if HyperscanEngine is not None:
    ENGINES.append(HyperscanEngine(NEEDLES.values, RULES.rules))

EXAMPLES: Final = [text for rule in RULES.rules for text in (rule.example, rule.near_miss)]
FORMS: Final = [needle.value.decode() for needle in NEEDLES.needles]
CUT_KEY: Final = "-----BEGIN " + "PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n(cut)\nall is good here\n"
GLUE: Final = [
    *[CUT_KEY, "\nnot of a key, and long enough to be a line of its own\n"],
    *["\n", " ", '"', "'", "\\", "\\n", '\\"', "=", ": ", "+", "(", "&", "\t", "$VAR", ".", "@", "x", "密", "\n\n"],
    *[
        "-----END",
        "-----BEGIN",
        "-----BEGIN RSA " + "PRIVATE KEY-----",
        "Proc-Type: 4,ENC\n",
        "Version: 1\\n",
        "A" * 40,
    ],
    *["MIIEvQIBADANBg9+/=", "ProxyAuthenticationTypeTwo: x\n", "a1b2c3d4e5" * 7, '"token": "', "TOKEN=", "password: "],
    *["--token ", "?token=", "://u:", "eyJ", "Bearer ", "sk-", "ghp_", "A1b2C3d4E5", "corp_ab_", "hunter2", "sec9"],
]


def cut_of(text: str, start: int, length: int) -> str:
    """Return a part of the text, never an empty one."""
    first = start % len(text)
    return text[first : first + 1 + length % len(text)]


HARD: Final = [
    CUT_KEY.replace("(cut)", "(cut off here" * 8),
    "hunter2sec9-zebra-77",
    "https://u:" + "p4ss@sk-",
    "github_pat_" + "A1b2C3d4E5f6G7h8I9j0K1 " + "." * 34,
]
"""What few texts contain and each of some mutants needs: a cut key block, values that overlap, a lead at the hold."""
PARTS: Final = st.one_of(
    st.sampled_from(HARD),
    st.sampled_from([*EXAMPLES, *FORMS, *GLUE]),
    st.builds(cut_of, st.sampled_from([*EXAMPLES, *FORMS]), st.integers(0, 99), st.integers(0, 99)),
    st.builds(lambda text, count: text * count, st.sampled_from(GLUE), st.integers(2, 40)),
    st.text(max_size=3),
)
TEXTS: Final = st.lists(PARTS, min_size=1, max_size=9).map("".join)


def whole_text(text: bytes) -> bytes:
    """The meaning, written naively: every needle and every rule at every position, the end's prefix, then the union."""
    spans: list[tuple[int, int, int, str]] = [
        (start, order, start + len(needle.value), needle.name)
        for order, needle in enumerate(NEEDLES.needles)
        for start in range(len(text))
        if text.startswith(needle.value, start)
    ]
    for order, rule in enumerate(RULES.rules, len(NEEDLES.needles)):
        for start in range(len(text)):
            if (match := rule.trigger.match(text, start)) is None:
                continue
            verdict = rule.verdict(Text(text, final=True), start, match.end())
            if isinstance(verdict, Secret):
                assert verdict.rest is None
                spans.append((verdict.start, order, verdict.stop, rule.name))
            assert verdict is not UNDECIDED
    for start in range(len(text) - 7):
        growing = [n.name for n in NEEDLES.needles if n.value.startswith(text[start:]) and n.value != text[start:]]
        if growing:
            spans.append((start, len(NEEDLES.needles), len(text), growing[0]))
            break
    last = max((stop for _, _, stop, _ in spans), default=len(text))
    ending = [needle for needle in NEEDLES.needles if text.endswith(needle.value, 0, last)]
    if any(after.startswith(text[last:]) for needle in ending for after in needle.following):
        spans.append((last, sys.maxsize, len(text), "touches what is before it"))
    return marked(text, sorted(spans))


def marked(text: bytes, spans: list[tuple[int, int, int, str]]) -> bytes:
    """Return the text with one marker for each run of spans, sorted, that overlap or touch."""
    shown, cover = b"", -1
    for start, _, stop, name in spans:
        if start > cover:
            shown += text[max(cover, 0) : start] + f"[REDACTED:{name}]".encode()
        cover = max(cover, stop)
    return shown + text[max(cover, 0) :]


def streamed(text: str, seed: int, engine: Engine, *, end: str = "finish") -> tuple[bytes, int]:
    """Return what the text becomes in pieces that `seed` chooses, and the most that was held after a quiet point."""
    draw = random.Random(seed)
    subject = Redactor(NEEDLES, RULES, engine)
    shown, held = b"", 0
    while text:
        size = draw.choice((1, 1, 2, 3, 7, 20, 100, len(text)))
        shown += subject.feed(text[:size].encode(), bulk=draw.random() < 0.5)
        text = text[size:]
        if draw.random() < 0.4:
            shown += subject.feed(b"")
            held = max(held, subject.held)
        shown.decode()
    return shown + getattr(subject, end)(), held


def check(text: str, seed: int, engines: list[Engine] = ENGINES) -> None:
    """Raise AssertionError if any engine gives anything but the whole text's meaning, at either end."""
    expected = whole_text(text.encode())
    for engine in engines:
        assert streamed(text, seed, engine)[0] == expected, engine.name
        once = Redactor(NEEDLES, RULES, engine)
        cut = once.feed(text.encode()) + once.abort()
        assert streamed(text, seed, engine, end="abort")[0] == cut, engine.name


@given(TEXTS, st.integers(0, 2**32))
@example("see " + "ghp_" + "abc", 1)
@example('password: "a\\', 3)
def test_streaming_is_the_whole_text(text: str, seed: int) -> None:
    """Whatever the cuts, the quiet points and the flags; at a real end and at an abort; the same on each engine."""
    check(text, seed)


@pytest.mark.parametrize("text", HARD)
def test_the_hard_texts_hold(text: str) -> None:
    """With the seeds that kill the mutants, which nothing but the mutants fails."""
    for seed in range(20):
        check(text, seed)


def _no_look_at_leads(_: model.RuleSet, buffer: bytes, _start: int) -> int:
    return len(buffer)


def _leftmost_only(self: Union, buffer: bytes, base: int, spans: list[object], hold: int) -> bytes:
    kept, stop = [], -1
    for span in spans:
        if span.start >= stop:
            kept.append(span)
            stop = span.stop
    return UNION_SETTLE(self, buffer, base, kept, hold)


def _forgets_rests(*_: object) -> list[object]:
    return []


def _decides_early(self: model.Run, text: Text, lead: int, value: int) -> object:
    verdict = RUN_JUDGE(self, text, lead, value)
    return None if verdict is UNDECIDED else verdict


def _keeps_no_context(self: Redactor, *args: object) -> None:
    KEEP(self, *args)
    self._context = b""


def _holds_flat_too_late(_: Redactor, buffer: bytes, _base: int) -> int:
    return len(buffer)


def _forgets_known(self: Redactor, *args: object) -> None:
    KEEP(self, *args)
    self._known = []


def _trusts_half_a_line(text: Text, line: int) -> bool:
    return text.buffer.find(b"\n", line) < 0 or IS_OF_KEY(text, line)


UNION_SETTLE: Final = Union.settle
RUN_JUDGE: Final = model.Run.judge
KEEP: Final = Redactor._keep
IS_OF_KEY: Final = keyblocks._is_of_key
MUTANTS: Final[dict[str, tuple[object, str, Callable[..., object]]]] = {
    "a beginning of a lead is shown": (model.RuleSet, "partial", _no_look_at_leads),
    "overlaps are dropped, as by a leftmost-first search": (Union, "settle", _leftmost_only),
    "a value that goes on is forgotten": (Redactor, "_extended", _forgets_rests),
    "a short value is decided before it is complete": (model.Run, "judge", _decides_early),
    "a lead that was committed is forgotten": (Redactor, "_keep", _keeps_no_context),
    "nothing is held in bulk": (Redactor, "_flat", _holds_flat_too_late),
    "a span in the held text is forgotten": (Redactor, "_keep", _forgets_known),
    "a line of a key is judged by its beginning": (keyblocks, "_is_of_key", _trusts_half_a_line),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_each_mutant_is_killed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker finds a counterexample for it: among the hard texts, or else without a hint what to look for."""
    monkeypatch.setattr(*MUTANTS[name])

    @settings(max_examples=4000, phases=[Phase.generate], database=None, derandomize=True, deadline=None)
    @given(TEXTS, st.integers(0, 2**32))
    def survives(text: str, seed: int) -> None:
        check(text, seed, ENGINES[:1])

    with pytest.raises(AssertionError):  # noqa: PT012 - whichever finds it first
        for text in HARD:
            for seed in range(20):
                check(text, seed, ENGINES[:1])
        survives()


def main() -> None:
    """Run the property over as many cases as the first argument says."""
    quiet = list(HealthCheck)
    settings(max_examples=int(sys.argv[1]), deadline=None, database=None, suppress_health_check=quiet)(
        test_streaming_is_the_whole_text
    )()


if __name__ == "__main__":
    main()
