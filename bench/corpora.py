"""What the rules find where nothing is secret, and what they miss where something was planted.

The texts without secrets: the standard library's source without its tests, an installer's log, this repository's
history without the paths that hold examples on purpose, the output of a part of its tests, and the variables of a clean
shell. Each rule's example, and a value without a format of its own in each spelling of an assignment, are planted in
those texts. A redaction in the former or a value left in the latter makes the run fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from supervisor.matching import fastest
from supervisor.sansio.engines.stdlib import engine_for
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.rules import DEFAULT_RULES
from supervisor.sansio.sanitizer import Sanitizer

from .harness import Settings, WrongResultError, note
from .report import Report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from supervisor.sansio.engines import Engine

ROOT: Final = Path(__file__).parent.parent
CHUNK: Final = 64 * 1024
NOTHING: Final = NeedleSet.build()
PLANTED_EVERY: Final = 40
"""Lines of a text between two planted ones."""
EXAMPLES: Final = ("tests", "docs", "bench", "README.md", "supervisor/sansio/rules")
"""Paths of the repository that show secrets on purpose."""
DOCUMENTED: Final = b"geheim$parole"
"""An example password in the documentation of `urllib.request`."""
VALUES: Final = {
    "generated": "kX9vQ2" + "mT7zR4wB8nL5cJ",
    "hex": "9f86d081" + "884c7d659a2feaa0c55ad015",
    "UUID": "1a2b3c4d-" + "5e6f-7a8b-9c0d-1e2f3a4b5c6d",
    "base64": "3q2+7wAA" + "EjRWeJq83vAPHi08S1pp/A==",
}
SPELLINGS: Final = {
    "shell": "API_KEY={}",
    "export": "export API_KEY={}",
    "declare -x": 'declare -x API_KEY="{}"',
    "after a semicolon": "cd /tmp; TOKEN={}",
    "indented": "    password = {}",
    "diff": "+DB_PASSWORD={}",
    "JSON": '{{"user": "a", "client_secret": "{}", "n": 1}}',
    "JSON in a string": '{{"body": "{{\\"access_token\\": \\"{}\\"}}"}}',
    "YAML": "  api_key: {}",
    "YAML, quoted": "- password: '{}'",
    "TOML": 'auth_token = "{}"',
    "Python": 'client = Client(api_key="{}")',
    "Python, environment": 'os.environ["SECRET_KEY"] = "{}"',
    "form": "user=a&password={}&x=1",
    "flag": "login --token={} --verbose",
    "flag, apart": "login --api-key {} --verbose",
    "flag, quoted": "login --password '{}'",
    "header": "X-Api-Key: {}",
    "bearer": "Authorization: Bearer {}",
    "basic": "Authorization: Basic {}",
    "address": "postgres://app:{}@db.internal/app",
}
BODY: Final = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
"""What a key block hides."""
HIDDEN: Final = {"private-key": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "url-password": "s3cr3t-pw"}
"""What is secret of the examples that do not end with it."""
NO_ADDRESS: Final = frozenset({"base64"})
"""A slash ends a password in an address."""


def measure(settings: Settings) -> Report:
    """Return both counts for each text. Raises: WrongResultError if either is not zero."""
    rows: list[tuple[str, ...]] = []
    wrong: list[str] = []
    for name, text in corpora(settings.scratch):
        found = sanitised(text)[1]
        planted = [line for number, line in enumerate(plants()) if not settings.quick or number % 10 == 0]
        missed = misses(text, planted)
        note(f"{name} is searched")
        rows.append((name, f"{len(text):,}", str(sum(found.values())), str(len(planted)), str(len(missed))))
        wrong += [f"{name}: {count} x {rule}" for rule, count in found.items()]
        wrong += [f"{name}: missed {spelling}" for spelling in missed]
    if wrong:
        raise WrongResultError("; ".join(wrong))
    return Report(
        name="corpora",
        title=f"Corpora: {len(DEFAULT_RULES.rules)} rules",
        columns=("", "bytes", "redactions without secrets", "planted", "missed"),
        rows=rows,
        facts={"engine": _engine().name},
        data={"rows": rows},
    )


@cache
def _engine() -> Engine:
    return fastest((), DEFAULT_RULES) or engine_for(NOTHING)


def sanitised(text: bytes) -> tuple[bytes, dict[str, int]]:
    """Return the text as a stream becomes it by rules alone, and its redactions."""
    sanitizer = Sanitizer(NOTHING, engine=_engine())
    chunks = (text[start : start + CHUNK] for start in range(0, len(text), CHUNK))
    shown = b"".join(sanitizer.feed(chunk, bulk=True) for chunk in chunks)
    return shown + sanitizer.finish(), sanitizer.redactions


def plants() -> Iterator[tuple[str, str, str]]:
    """Yield what is planted: its name, the line, and what must not be left of it."""
    for rule in DEFAULT_RULES.rules:
        if not rule.commits_lead:
            for spelling, form in SPELLINGS.items():
                yield f"{rule.name} as {spelling}", form.format(rule.example), rule.example[rule.longest_lead + 4 :]
        yield f"{rule.name} alone", f"see {rule.example} there", HIDDEN.get(rule.name, rule.example[-6:])
    for kind, value in VALUES.items():
        for spelling, form in SPELLINGS.items():
            if spelling != "address" or kind not in NO_ADDRESS:
                yield f"{kind} as {spelling}", form.format(value), value[3:]


def misses(text: bytes, planted: list[tuple[str, str, str]]) -> list[str]:
    """Return the names of what is left after it was planted between the lines of the text, each by itself."""
    lines = text.split(b"\n")
    left: list[str] = []
    for number, (name, line, secret) in enumerate(planted):
        first = number * PLANTED_EVERY % max(1, len(lines) - 2 * PLANTED_EVERY)
        before, after = lines[first : first + PLANTED_EVERY], lines[first + PLANTED_EVERY : first + 2 * PLANTED_EVERY]
        shown, _ = sanitised(b"\n".join([*before, line.encode(), *after]))
        # The end of an example may be a text's own, such as the digits of a test's name.
        if shown.count(secret.encode()) > b"\n".join([*before, *after]).count(secret.encode()):
            left.append(name)
    return left


def corpora(scratch: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the texts that this machine can produce, by name."""
    library = Path(sysconfig.get_path("stdlib"))
    sources = [
        path for path in sorted(library.rglob("*.py")) if not {"site-packages", "test", "tests"} & set(path.parts)
    ]
    source = b"\n".join(path.read_bytes() for path in sources)
    yield "standard library", b"\n".join(line for line in source.split(b"\n") if DOCUMENTED not in line)
    install = ["-m", "pip", "install", "-v", "--no-deps", "--no-build-isolation", "--target", str(scratch / "target")]
    yield "pip install -v", output([sys.executable, *install, str(ROOT)])
    if shutil.which("git"):
        history = ["git", "-C", str(ROOT), "log", "-p", "--", ".", *(f":!{path}" for path in EXAMPLES)]
        yield "git log -p", output(history)
    tests = ["-m", "pytest", "-v", "-p", "no:cacheprovider", "tests/storage", "tests/course"]
    yield "test output", output([sys.executable, *tests])
    clean = {
        "PATH": os.environ["PATH"],
        "HOME": "/home/user",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "USER": "user",
    }
    shell = "env; export -p; set"
    yield "clean shell", output([shutil.which("bash") or "sh", "-c", shell], clean)


def output(command: list[str], environment: dict[str, str] | None = None) -> bytes:
    """Return what the command prints, whatever its code."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # tests end process groups
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout
