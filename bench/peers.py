"""What somebody would write or take instead, each run in an interpreter of its own: `python -m bench.peers NAME`.

Each copies what a command prints into a file, and times itself from the command's start to the file's end, imports left
out. None of them decodes, strips, redacts, hashes or previews. Where a peer is not installed, its row says so.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .harness import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT: Final = Path(__file__).parent.parent
READ_BYTES: Final = 256 * 1024
NAME: Final = "file"
GPTME: Final = "gptme's background reader (keeps a tail)"


def run(name: str, argv: Sequence[str], directory: Path) -> float:
    """Return the seconds of one run, which leaves `file` in the directory. Raises: WrongResultError if it failed."""
    command = [sys.executable, "-m", f"{__package__}.peers", name, str(directory / NAME), *argv]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise WrongResultError(f"{name} failed")
    return float(json.loads(done.stdout))


def missing(name: str) -> str | None:
    """Return the distribution that a peer needs and that is not installed."""
    needed = NEEDS.get(name)
    if needed is not None:
        try:
            importlib.metadata.version(needed)
        except importlib.metadata.PackageNotFoundError:
            return needed
    return None


def _communicate(file: Path, argv: Sequence[str]) -> float:
    async def work() -> None:
        process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE)
        output, _ = await process.communicate()
        file.write_bytes(output)  # noqa: ASYNC240 - what people write

    return _timed(lambda: asyncio.run(work()))


def _stream_reader(file: Path, argv: Sequence[str]) -> float:
    async def work() -> None:
        process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE, limit=READ_BYTES)
        assert process.stdout is not None
        with file.open("wb") as opened:
            while data := await process.stdout.read(READ_BYTES):
                opened.write(data)
        await process.wait()

    return _timed(lambda: asyncio.run(work()))


def _anyio(file: Path, argv: Sequence[str]) -> float:
    import anyio  # noqa: PLC0415 - it may be absent

    async def work() -> None:
        async with await anyio.open_process(list(argv), stderr=None) as process:
            assert process.stdout is not None
            with file.open("wb") as opened:
                async for data in process.stdout:
                    opened.write(data)
            await process.wait()

    return _timed(lambda: anyio.run(work))


def _trio(file: Path, argv: Sequence[str]) -> float:
    import trio  # noqa: PLC0415 - it may be absent

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            process = await nursery.start(lambda **given: _trio_process(trio, argv, given))
            with file.open("wb") as opened:
                async for data in process.stdout:
                    opened.write(data)

    return _timed(lambda: trio.run(work))


async def _trio_process(trio: Any, argv: Sequence[str], given: dict[str, Any]) -> None:  # noqa: ANN401 - a module
    await trio.run_process(list(argv), stdout=subprocess.PIPE, **given)


def _threads(file: Path, argv: Sequence[str]) -> float:
    def work() -> None:
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
            reader = threading.Thread(target=_drain, args=(process.stdout, file))
            reader.start()
            reader.join()

    return _timed(work)


def _drain(pipe: Any, file: Path) -> None:  # noqa: ANN401 - an IO of whichever kind
    with file.open("wb") as opened:
        while data := pipe.read(READ_BYTES):
            opened.write(data)


def _gptme(file: Path, argv: Sequence[str]) -> float:
    """Its reader keeps the last million characters only, so the file is that tail: it is checked for being one."""
    from gptme.tools import shell_background  # noqa: PLC0415 - it may be absent

    def work() -> None:
        job = shell_background.start_background_job("exec " + subprocess.list2cmdline(argv))
        while not job.is_output_complete():
            time.sleep(0.001)  # it offers no other way to wait
        file.write_text(job.get_output()[0])

    return _timed(work)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


PEERS: Final[dict[str, Callable[[Path, Sequence[str]], float]]] = {
    "asyncio, communicate, then a file": _communicate,
    "asyncio, StreamReader to a file": _stream_reader,
    "anyio to a file": _anyio,
    "trio to a file": _trio,
    "Popen and a thread to a file": _threads,
    GPTME: _gptme,
}
NEEDS: Final = {
    "anyio to a file": "anyio",
    "trio to a file": "trio",
    GPTME: "gptme",
}
TAIL_ONLY: Final = frozenset({GPTME})


def main() -> None:
    """Run the peer and print its seconds."""
    name, file, *argv = sys.argv[1:]
    print(json.dumps(PEERS[name](Path(file), argv)))


if __name__ == "__main__":
    main()
