"""How fast text is sanitised, beside a plain copy and beside what is usually done: `replace` and `re.sub` in turn.

Each contender gets the same 64 KiB chunks and returns text; what counts is processor time, since all are one thread.
The copy touches each byte once in cache, so it is what no sanitiser can beat. The usual pipeline decodes a chunk,
strips escapes by an expression, replaces each known value and substitutes by one expression for each rule; it is
given whole chunks and misses what they cut.
"""

from __future__ import annotations

import random
import re
import statistics
import string
import time
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, Final

from supervisor.sansio.engines.stdlib import StdlibEngine
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.rules import DEFAULT_RULES
from supervisor.sansio.sanitizer import Sanitizer

from .harness import MIB, Settings, note
from .report import Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from supervisor.sansio.engines import Engine

try:
    from supervisor.sansio.engines.hyperscan import HyperscanEngine
except ImportError:
    HyperscanEngine = None

CHUNK: Final = 64 * 1024
SIZE: Final = 8 * MIB
"""Bytes of each text for the fast contenders."""
SLOW_SHARE: Final = 16
"""The slow ones get this part of it: their speed does not depend on it."""
SECRETS: Final = 20
"""Known values, of 32 characters; each is searched for in all its encodings."""
SEED: Final = 5
USUAL_RULES: Final = (
    r"sk-[A-Za-z0-9_-]{20,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"xox[abeprs]-[A-Za-z0-9-]{10,}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+",
    r"(?i)bearer\s+[A-Za-z0-9._~+/=-]{16,}",
    r"(?i)authorization:\s*basic\s+\S+",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
    r"://[^\s/:@]+:[^\s/@]+@",
    r"(?i)(?:password|passwd|secret|token|api_?key)[\"']?\s*[:=]\s*[\"'][^\"'\n]{3,}[\"']",
    r"(?i)(?:password|passwd|secret|token|api_?key)\s*[:=]\s*[^\s\"']{6,}",
)
"""Expressions as programs of this kind have them, about one for each kind of rule that is in the pack."""


def measure(settings: Settings) -> Report:
    """Return MB/s of each contender for each text, and how ours compare with the copy and with the usual."""
    draw = random.Random(SEED)
    values = ["".join(draw.choices(string.ascii_letters + string.digits + "+/!", k=32)) for _ in range(SECRETS)]
    needles = NeedleSet.build({f"KEY_{number}": value for number, value in enumerate(values)})
    size = settings.size or (SIZE // 8 if settings.quick else SIZE)
    makers = contenders(needles)
    rates = {name: measured(makers, text[:size], settings.rounds, name) for name, text in texts(values, size).items()}
    ours = [name for name in makers if name not in {"copy", "usual"}]
    return Report(
        name="sanitise",
        title=f"Sanitising: {len(needles.values)} needles, {len(DEFAULT_RULES.rules)} rules, chunks of 64 KiB; MB/s",
        columns=("", *makers, *(f"{name} x usual" for name in ours), *(f"copy / {name}" for name in ours)),
        rows=[_row(text, rate, ours) for text, rate in rates.items()],
        facts={"rounds": str(settings.rounds), "bytes": str(size)},
        data={"megabytes_per_second": rates},
    )


def contenders(needles: NeedleSet) -> dict[str, Callable[[], Callable[[bytes], object]]]:
    """Return what makes each contender anew, by name."""
    engines: list[Engine] = [StdlibEngine(needles.values, DEFAULT_RULES.rules)]
    if HyperscanEngine is not None:
        engines.insert(0, HyperscanEngine(needles.values, DEFAULT_RULES.rules))

    def ours(engine: Engine) -> Callable[[], Callable[[bytes], object]]:
        def make() -> Callable[[bytes], object]:
            sanitizer = Sanitizer(needles, engine=engine, stream=True)
            return lambda chunk: sanitizer.feed(chunk, bulk=True)

        return make

    return {"copy": copier, "usual": lambda: usual(needles), **{engine.name: ours(engine) for engine in engines}}


def copier() -> Callable[[bytes], object]:
    """Return a copy into a buffer that stays in cache."""
    buffer = bytearray(CHUNK)

    def copy(chunk: bytes) -> None:
        buffer[: len(chunk)] = chunk

    return copy


def usual(needles: NeedleSet) -> Callable[[bytes], object]:
    """Return the pipeline that most programs have."""
    escapes = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
    controls = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
    values = [value.decode() for value in needles.values]
    rules = [re.compile(rule) for rule in USUAL_RULES]

    def sanitise(chunk: bytes) -> bytes:
        text = controls.sub("", escapes.sub("", chunk.decode("utf-8", "replace")))
        for value in values:
            text = text.replace(value, "[REDACTED]")
        for rule in rules:
            text = rule.sub("[REDACTED]", text)
        return text.encode()

    return sanitise


def texts(values: list[str], size: int) -> dict[str, bytes]:
    """Return each text by name, `size` bytes or more of it."""
    line = "2026-11-30 18:22:01 INFO worker finished step 12 of 40 in 3.5 seconds, all fine\n"
    ansi = "\x1b[32m ok \x1b[0m \x1b[1mtests/test_a.py\x1b[0m::\x1b[36mtest_one\x1b[0m \x1b[2m0.01 s\x1b[0m\r\n"
    near = (
        "sk-short task-list ghp_abc token: str password=None API_KEY=$VAR http://host:80/ eyJhbGci AKIA Bearer ${X}\n"
    )
    source = b"".join(path.read_bytes() for path in sorted(Path(tokenize.__file__).parent.glob("*.py")))
    secret = (line * (100_000 // len(line)) + f"connecting with {values[3]} now\n").encode()
    samples = {
        "clean ASCII": line.encode(),
        "dense ANSI": ansi.encode(),
        "CJK": "构建完成，共执行四十个步骤，全部通过。ログを確認してください。\n".encode(),  # noqa: RUF001 - as it is written
        "one secret per 100 KB": secret,
        "near-misses": near.encode(),
        "Python source": source,
    }
    return {name: sample * (size // len(sample) + 1) for name, sample in samples.items()}


def measured(
    makers: dict[str, Callable[[], Callable[[bytes], object]]], text: bytes, rounds: int, name: str
) -> dict[str, float]:
    """Return the median MB/s of each contender, which take turns."""
    seconds: dict[str, list[float]] = {maker: [] for maker in makers}
    for number in range(rounds + 1):
        for maker, make in makers.items():
            part = text[: max(CHUNK, len(text) // SLOW_SHARE)] if maker in {"usual", "stdlib"} else text
            chunks = [part[start : start + CHUNK] for start in range(0, len(part), CHUNK)]
            feed = make()
            began = time.process_time()
            for chunk in chunks:
                feed(chunk)
            if number:
                seconds[maker].append((time.process_time() - began) / len(part) * 1e6)
    note(f"{name} is measured")
    return {maker: 1 / statistics.median(each) for maker, each in seconds.items()}


def _row(text: str, rate: dict[str, float], ours: list[str]) -> tuple[str, ...]:
    figures = [f"{rate[name]:,.0f}" for name in rate]
    return (
        text,
        *figures,
        *(f"{rate[name] / rate['usual']:.1f}" for name in ours),
        *(f"{rate['copy'] / rate[name]:.0f}" for name in ours),
    )
