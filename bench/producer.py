"""The command whose output is captured: faster than any of its readers, and with a known hash."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Shape = Literal["lines", "chatty", "single", "coloured", "cjk"]
LINE_BYTES: Final = 80
BLOCK_BYTES: Final = LINE_BYTES * 13107
"""What the compiled producer writes at once, and the period of its output but for its first line."""
SOURCE: Final = Path(__file__).with_name("producer.c")
COLOUR: Final = re.compile(rb"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Producer:
    """A command that writes `size` bytes in lines of 80, without a shell around it where there is a C compiler."""

    argv: tuple[str, ...]
    size: int
    kind: str


@dataclass(frozen=True, slots=True)
class Text:
    """What is to be found in a file: its size in bytes and its sha256."""

    size: int
    sha256: str


def make_producer(scratch: Path, size: int, shape: Shape = "lines") -> Producer:
    """Return a producer of `size` bytes, rounded down to whole lines; a compiled one is put into `scratch`.

    `chatty` makes a write for each line, `single` writes one line, `coloured` has ten escapes in each line, `cjk`
    twenty characters of three bytes.

    Raises: subprocess.CalledProcessError if there is a compiler that cannot compile it, LookupError for a shape other
    than lines if there is none.
    """
    size -= size % LINE_BYTES
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        if shape != "lines":
            raise LookupError("no C compiler here")
        line = "compiling src/module.c with options --level 3 --output build/obj/mod.o".ljust(LINE_BYTES - 1, ".")
        return Producer(("sh", "-c", f"yes '{line}' | head -c {size}"), size, "yes | head: no C compiler here")
    program = scratch / "producer"
    if not program.exists():
        subprocess.run([compiler, "-O2", "-o", program, SOURCE], check=True)
    writes = "80 byte" if shape == "chatty" else "1 MiB"
    return Producer((str(program), str(size), shape), size, f"compiled C, {writes} writes")


def digest_of(producer: Producer) -> str:
    """Return the sha256 of what the producer writes. Raises: as `text_of`."""
    return text_of(producer).sha256


def text_of(producer: Producer, *, stripped: bool = False) -> Text:
    """Return what the producer writes, read by nothing but this loop; `stripped`: without its colours.

    Raises: subprocess.CalledProcessError, AssertionError: it failed, or wrote another number of bytes.
    """
    digest, size, kept = hashlib.sha256(), 0, 0
    with subprocess.Popen(producer.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while data := process.stdout.read(BLOCK_BYTES):  # whole lines
            size += len(data)
            text = COLOUR.sub(b"", data) if stripped else data
            kept += len(text)
            digest.update(text)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, producer.argv)
    assert size == producer.size, f"the producer wrote {size} bytes instead of {producer.size}"
    return Text(kept, digest.hexdigest())
