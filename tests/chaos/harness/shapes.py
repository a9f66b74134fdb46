"""The commands that a chaos run starts: what each prints, and how it ends if nobody interferes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

SECRET: Final = "Vq7Zt2mXw9LcR4bKd8Hs3NfJ6yPgT5uE"
"""Known to every supervisor by its value; never in a file but for raw copies."""
VARIABLE: Final = "Hx4TnB8wKq2ZsV6yRm9LcJ3fPd7GtE5u"
"""Known by the credential's name of the variable that carries it."""
MARKER: Final = "[REDACTED:CHAOS_SECRET]"
FOREVER: Final = 60
"""Seconds that no run waits for."""


@dataclass(frozen=True)
class Shape:
    """A command, and what is known of its end."""

    name: str
    command: list[str]
    code: int | None = None
    """How it exits if nobody interferes; None: it does not end by itself."""
    stdout: str | None = None
    """All of its text; None: nobody knows."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    missing: bool = False
    """It cannot be started."""
    leaves: bool = False
    """It leaves processes behind when it exits by itself."""
    writes: tuple[bytes, ...] = ()
    """What the caller writes to its stdin, before its end of file."""


def _sh(name: str, script: str, code: int | None = None, stdout: str | None = None, **more: Any) -> Shape:  # noqa: ANN401
    return Shape(name, ["sh", "-c", script], code, stdout, **more)


def quick(dice: Random) -> Shape:
    """Ends at once."""
    code = dice.choice([0, 0, 1, 3, 255])
    return _sh("quick", f"exit {code}", code, "")


def lines(dice: Random) -> Shape:
    """A burst of lines."""
    count, code = dice.choice([1, 40, 3000, 60_000]), dice.choice([0, 4])
    return _sh("lines", f"seq 1 {count}; exit {code}", code, "".join(f"{number}\n" for number in range(1, count + 1)))


def line(dice: Random) -> Shape:
    """One line without an end."""
    count = dice.choice([10, 70_000, 2_000_000])
    return _sh("line", f"head -c {count} /dev/zero | tr '\\0' '.'", 0, "." * count)


def both(dice: Random) -> Shape:
    """Two streams at a time."""
    count = dice.choice([20, 5000])
    text = "".join(f"{number}\n" for number in range(1, count + 1))
    return _sh("both", f"seq 1 {count} >&2 & seq 1 {count}; wait; exit 2", 2, text)


def complaint(_: Random) -> Shape:
    """Output on stderr alone."""
    return _sh("complaint", "echo broken >&2; exit 7", 7, "")


def binary(dice: Random) -> Shape:
    """Bytes that are no text."""
    return _sh("binary", f"head -c {dice.choice([100, 90_000, 600_000])} /dev/urandom; exit 5", 5)


def characters(dice: Random) -> Shape:
    """A character whose bytes come apart."""
    rest = dice.choice([0, 0.02, 0.1])
    return _sh(
        "characters", f"printf 'h\\303'; sleep {rest}; printf '\\251\\342\\202'; sleep {rest}; printf '\\254'", 0, "hé€"
    )


def secret(dice: Random) -> Shape:
    """A known value whose parts come apart."""
    at, rest = dice.randrange(1, len(SECRET)), dice.choice([0, 0.02, 0.1])
    times = dice.choice([1, 200])
    first, second = SECRET[:at], SECRET[at:]
    body = f"printf %s {first}; [ $i = 0 ] && sleep {rest}; echo {second}; i=$((i+1))"
    script = f"i=0; while [ $i -lt {times} ]; do {body}; done"
    return _sh("secret", script, 0, f"{MARKER}\n" * times, options={"record_command": False})


def variable(_: Random) -> Shape:
    """A value that only its variable's name gives away, in the text of an error too."""
    return _sh("variable", 'echo "key $CHAOS_API_TOKEN"; echo "$CHAOS_API_TOKEN" >&2; exit 1', 1)


def argument(_: Random) -> Shape:
    """A known value as an argument and in the label."""
    return Shape("argument", ["sh", "-c", 'echo "$1"', "sh", SECRET], 0, f"{MARKER}\n", {"label": f"with {SECRET}"})


def sleeping(_: Random) -> Shape:
    """Says a word, and nothing more."""
    return _sh("sleeping", f"echo ready; exec sleep {FOREVER}")


def stubborn(_: Random) -> Shape:
    """Ignores SIGTERM, and so does its child."""
    return _sh("stubborn", f"trap '' TERM; echo ready; sleep {FOREVER} & while :; do sleep 0.05; done")


def talking(_: Random) -> Shape:
    """Writes until somebody ends it."""
    return _sh("talking", "while :; do echo word; sleep 0.01; done")


def flood(_: Random) -> Shape:
    """Writes as fast as it can until somebody ends it."""
    return Shape("flood", ["yes"])


def stopped(_: Random) -> Shape:
    """Stops itself."""
    return _sh("stopped", "echo ready; kill -STOP $$; exit 6")


def suicide(dice: Random) -> Shape:
    """Ends by a signal of its own."""
    return _sh("suicide", f"echo last; kill -{dice.choice([6, 9, 15])} $$", None, "last\n")


def holder(dice: Random) -> Shape:
    """Leaves a descendant that holds the pipes, silent or writing, in the group or out of it."""
    busy = dice.choice([f"exec sleep {FOREVER}", "while :; do echo late; sleep 0.01; done"])
    before = dice.choice(["", "setsid "])
    return _sh("holder", f"{before}sh -c '{busy}' & echo hi; exit 3", 3, leaves=True)


def daemon(dice: Random) -> Shape:
    """Leaves a descendant that closed its output."""
    before = dice.choice(["", "setsid ", "nohup "])
    return _sh("daemon", f"{before}sleep {FOREVER} >/dev/null 2>&1 & echo hi; exit 3", 3, "hi\n", leaves=True)


def mute(_: Random) -> Shape:
    """Closes its output long before it ends."""
    return _sh("mute", "echo hi; exec >&- 2>&-; sleep 0.2; exit 4", 4, "hi\n")


def reader(dice: Random) -> Shape:
    """Gives back its stdin, which is given at once."""
    text = "word\n" * dice.choice([0, 1, 100_000])
    return Shape("reader", ["cat"], 0, text, {"stdin": text.encode()})


def writer(dice: Random) -> Shape:
    """Gives back its stdin, which its caller writes piece by piece."""
    pieces = tuple(b"piece %d\n" % number * 100 for number in range(dice.randrange(8)))
    return Shape("writer", ["cat"], 0, b"".join(pieces).decode(), writes=pieces)


def deaf(_: Random) -> Shape:
    """Does not read what it is given."""
    return _sh("deaf", "exit 0", 0, "", options={"stdin": b"x" * 300_000})


def missing(dice: Random) -> Shape:
    """Cannot be started."""
    if dice.random() < 0.5:
        return Shape("missing", ["/no/such/command"], missing=True)
    return Shape("missing", ["sh", "-c", "exit 0"], missing=True, options={"cwd": "/no/such/directory"})


SHAPES: Final[tuple[Callable[[Random], Shape], ...]] = (
    *(quick, lines, line, both, complaint, binary, characters, secret, variable, argument),
    *(sleeping, stubborn, talking, flood, stopped, suicide, holder, daemon, mute, reader, writer, deaf, missing),
)
