"""`python -m bench [NAME...]`, from the repository's root.

A bench is a module of this package with a function `measure(Settings) -> Report`.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

from . import machine
from .harness import ROUNDS, Settings, WrongResultError, note
from .report import Report, as_json, as_markdown, as_text

BENCHES: Final = (
    "throughput",
    "shapes",
    "memory",
    "latency",
    "start",
    "imports",
    "receipts",
    "sanitise",
    "spawning",
    "fleet",
    "corpora",
)
"""Modules of this package, in the order in which they run. A new bench is a module and its name here."""
QUICK_ROUNDS: Final = 1
UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text: str) -> int:
    """Return bytes for a number with K, M, G (powers of 1024) or nothing behind. Raises: ArgumentTypeError."""
    found = re.fullmatch(r"([0-9]+)([KMG]?)(?:i?B)?", text, re.IGNORECASE)
    if found is None or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 256M")
    return int(found[1]) * UNITS[found[2].upper()]


def count(text: str) -> int:
    """Return a number above zero. Raises: ArgumentTypeError, ValueError."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least one round is needed")
    return number


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure this code beside its peers.")
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of {', '.join(BENCHES)}; all without one")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", dest="form", action="store_const", const=as_json, help="everything, unrounded")
    form.add_argument("--markdown", dest="form", action="store_const", const=as_markdown, help="for bench/README.md")
    parser.add_argument("--rounds", type=count, help=f"after the warm-up; {ROUNDS}, or {QUICK_ROUNDS} with --quick")
    parser.add_argument("--size", type=size, help="of the output, such as 256M, instead of the bench's own")
    parser.add_argument("--dir", type=Path, help="where files are written, instead of the temporary directory")
    parser.add_argument("--quick", action="store_true", help="see in seconds that it works; not for publication")
    parser.set_defaults(form=as_text)
    parsed = parser.parse_args()
    if unknown := sorted(set(parsed.names) - set(BENCHES)):
        parser.error(f"no bench is called {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    return parsed


def main() -> int:
    """Run the benches that were asked for and print the report on stdout. Returns 1 if a result was wrong."""
    parsed = arguments()
    rounds = parsed.rounds or (QUICK_ROUNDS if parsed.quick else ROUNDS)
    if rounds < ROUNDS:
        note(f"fewer than {ROUNDS} rounds: to look at, not to publish")
    reports: list[Report] = []
    with tempfile.TemporaryDirectory(prefix="spoolvisor-bench-", dir=parsed.dir) as scratch:
        where = machine.facts(Path(scratch))
        settings = Settings(Path(scratch), rounds=rounds, size=parsed.size, quick=parsed.quick)
        for name in parsed.names or BENCHES:
            try:
                reports.append(importlib.import_module(f"{__package__}.{name}").measure(settings))
            except WrongResultError as error:
                note(f"{name}: {error}")
                return 1
    print(parsed.form(where, reports))
    return 0


if __name__ == "__main__":
    sys.exit(main())
