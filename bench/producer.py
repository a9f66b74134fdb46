"""The command whose output is captured: faster than any of its readers, and with a known hash."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LINE_BYTES: Final = 80
SOURCE: Final = Path(__file__).with_name("producer.c")
READ_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Producer:
    """A command that writes `size` bytes in lines of 80, without a shell around it where there is a C compiler."""

    argv: tuple[str, ...]
    size: int
    kind: str


def make_producer(scratch: Path, size: int) -> Producer:
    """Return a producer of `size` bytes, rounded down to whole lines; a compiled one is put into `scratch`.

    Raises: subprocess.CalledProcessError if there is a compiler that cannot compile it.
    """
    size -= size % LINE_BYTES
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        line = "compiling src/module.c with options --level 3 --output build/obj/mod.o".ljust(LINE_BYTES - 1, ".")
        return Producer(("sh", "-c", f"yes '{line}' | head -c {size}"), size, "yes | head: no C compiler here")
    program = scratch / "producer"
    subprocess.run([compiler, "-O2", "-o", program, SOURCE], check=True)
    return Producer((str(program), str(size)), size, "compiled C, 1 MiB writes")


def digest_of(producer: Producer) -> str:
    """Return the sha256 of what the producer writes, read by nothing but this loop.

    Raises: subprocess.CalledProcessError, AssertionError: it failed, or wrote another number of bytes.
    """
    digest, size = hashlib.sha256(), 0
    with subprocess.Popen(producer.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while data := process.stdout.read(READ_BYTES):
            digest.update(data)
            size += len(data)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, producer.argv)
    assert size == producer.size, f"the producer wrote {size} bytes instead of {producer.size}"
    return digest.hexdigest()
