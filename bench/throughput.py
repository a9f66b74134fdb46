"""How fast a large output gets into a file: lines of 80 bytes from a child that no reader keeps up with.

Ours decodes, strips, searches for three known values, previews and writes, and hashes where it says so; the peers only
write. `tee` is the measure, since it is what people use to keep an output and see it too. A barrier means that the
bytes are on the disk, so its peer is `tee` followed by `sync` of the file.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import machine, ours, peers
from .harness import MIB, Contender, Run, Settings, WrongResultError, check_file, check_room, compare
from .producer import Producer, Text, make_producer, text_of
from .report import Report

if TYPE_CHECKING:
    from .harness import Timings

SIZE: Final = 1024 * MIB
QUICK_SIZE: Final = 32 * MIB
BASE: Final = "cmd | tee file >/dev/null"
SYNCED: Final = "cmd | tee file >/dev/null; sync file"
SCRIPT: Final = "script -O file -c cmd"
DUCT: Final = "con-duct run cmd"
SLOW: Final = frozenset({SCRIPT, *peers.TAIL_ONLY})
"""Those that would take minutes: they get a part of the output, and their seconds are multiplied."""
PART: Final = 8
SHELL: Final = {
    "cmd > file": "exec {} > file",
    "cmd | cat > file": "{} | cat > file",
    BASE: "{} | tee file > /dev/null",
    SYNCED: "{} | tee file > /dev/null; sync file",
}
"""By name, as `sh` gets them, with the command for the braces."""
DURABILITIES: Final[dict[str, ours.Durability]] = {"no barrier": "none", "barrier": "barrier"}


def measure(settings: Settings) -> Report:
    """Return the table. Raises: WrongResultError."""
    size = settings.size or (QUICK_SIZE if settings.quick else SIZE)
    check_room(settings.scratch, 2 * size)
    producer = make_producer(settings.scratch, size)
    text = text_of(producer)
    part = make_producer(settings.scratch, size // PART)
    part_text = text_of(part)
    absent = _absent()

    def check(contender: Contender, run: Run) -> None:
        if contender.name == SCRIPT:
            _check_script(run.file, part_text)
        elif contender.name in peers.TAIL_ONLY:
            _check_tail(run.file, part)
        else:
            check_file(run.file, text.size, text.sha256)

    found = [each for each in contenders(producer, part, text) if each.name not in absent]
    timings = compare(found, settings, check)
    base, synced = timings[BASE], timings[SYNCED]
    rows = [_row(timing, base, synced, producer.size) for timing in timings.values()]
    rows += [(name, f"absent: {why}", "", "", "", "") for name, why in absent.items()]
    return Report(
        name="throughput",
        title=f"Throughput: {producer.size / MIB:.0f} MiB of 80-byte lines into a file",
        columns=("", "median s", "min-max s", "MB/s", "wall relative to tee", "to tee and sync"),
        rows=rows,
        facts={"producer": producer.kind, **ours.engine_facts(), "rounds": str(settings.rounds)},
        data={
            "bytes": text.size,
            "sha256": text.sha256,
            "absent": absent,
            "rows": [
                {"name": row.name, "seconds": row.seconds, "median": row.median, "ratio_to_tee": row.ratio(base)}
                for row in timings.values()
            ],
        },
    )


def contenders(producer: Producer, part: Producer, text: Text) -> list[Contender]:
    """Return the peers and ours, in the order in which each round runs them."""
    found = [Contender(name, partial(run_shell, producer, script)) for name, script in SHELL.items()]
    found += [Contender(SCRIPT, partial(_run_script, part)), Contender(DUCT, partial(_run_duct, producer))]
    for name in peers.PEERS:
        found.append(Contender(name, partial(_run_peer, name, part if name in SLOW else producer)))
    return found + [
        Contender(f"ours, {name}", partial(_run_ours, order, text)) for name, order in _orders(producer.argv).items()
    ]


def loops() -> tuple[ours.Loop, ...]:
    """Return the loops that ours runs on here."""
    return ours.LOOPS if machine.uvloop_version() else ours.LOOPS[:1]


def _orders(argv: tuple[str, ...]) -> dict[str, ours.Order]:
    orders: dict[str, ours.Order] = {}
    for loop in loops():
        orders[f"redaction, no digest, no barrier ({loop})"] = ours.Order(argv, loop, "none", digest=False)
        orders[f"no redaction, no digest, no barrier ({loop})"] = ours.Order(argv, loop, "none", "none", digest=False)
        for name, durability in DURABILITIES.items():
            orders[f"redaction, digest, {name} ({loop})"] = ours.Order(argv, loop, durability)
    return orders


def _absent() -> dict[str, str]:
    """Return which contenders cannot run here, and why."""
    absent = {name: f"{needed} is not installed" for name in peers.PEERS if (needed := peers.missing(name))}
    if shutil.which("script") is None:
        absent[SCRIPT] = "util-linux's script is not installed"
    if _duct() is None:
        absent[DUCT] = "con-duct is not installed"
    return absent


def run_shell(producer: Producer, script: str, directory: Path) -> Run:
    """Run a script of `sh` that leaves `file`, with the producer for its braces."""
    command = ["sh", "-c", script.format(shlex.join(producer.argv))]
    return _timed(command, directory, directory / "file")


def _run_script(producer: Producer, directory: Path) -> Run:
    command = ["script", "--quiet", "--log-out", "file", "--command", shlex.join(producer.argv)]
    run = _timed(command, directory, directory / "file")
    return Run(run.seconds * PART, run.file)


def _run_duct(producer: Producer, directory: Path) -> Run:
    duct = _duct()
    assert duct is not None
    command = [duct, "run", "--quiet", "--output-prefix", "log_", *producer.argv]
    return _timed(command, directory, directory / "log_stdout")


def _duct() -> str | None:
    return shutil.which("con-duct", path=str(Path(sys.executable).parent)) or shutil.which("con-duct")


def _timed(command: list[str], directory: Path, file: Path) -> Run:
    began = time.perf_counter()
    subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return Run(time.perf_counter() - began, file)


def _run_peer(name: str, producer: Producer, directory: Path) -> Run:
    seconds = peers.run(name, producer.argv, directory)
    return Run(seconds * PART if name in SLOW else seconds, directory / peers.NAME)


def _run_ours(order: ours.Order, text: Text, directory: Path) -> Run:
    outcome = ours.checked(order, text, directory)
    return Run(outcome.seconds, outcome.file)


def _check_script(file: Path, text: Text) -> None:
    r"""Return if the file is the text between its own first and last line, with `\r\n` for each line end."""
    digest, left, carry = hashlib.sha256(), text.size, b""
    with file.open("rb") as opened:
        opened.readline()
        while left and (data := opened.read(MIB)):
            joined = (carry + data).replace(b"\r\n", b"\n")
            carry = b"\r" if joined.endswith(b"\r") else b""
            part = joined.removesuffix(b"\r")[:left]
            digest.update(part)
            left -= len(part)
    if left or digest.hexdigest() != text.sha256:
        raise WrongResultError(f"{file.name} of script is not what was produced")


def _check_tail(file: Path, producer: Producer) -> None:
    """Return if the file is the end of the text, however little of it."""
    tail = file.read_bytes()
    with subprocess.Popen([*producer.argv], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        last = b""
        while data := process.stdout.read(MIB):
            last = (last + data)[-len(tail) :]
    if not tail or tail != last:
        raise WrongResultError(f"{file.name} is no end of what was produced")


def _row(timings: Timings, base: Timings, synced: Timings, size: int) -> tuple[str, ...]:
    name = f"`{timings.name}`" if "cmd" in timings.name else timings.name
    return (
        f"{name}, from 1/{PART} of it" if timings.name in SLOW else name,
        f"{timings.median:.2f}",
        f"{min(timings.seconds):.2f}-{max(timings.seconds):.2f}",
        f"{size / timings.median / 1e6:.0f}",
        f"{timings.ratio(base):.2f}",
        f"{timings.ratio(synced):.2f}",
    )
