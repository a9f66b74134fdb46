"""How many durable receipts a second a conversation gives: what many short jobs wait for beside their commands.

One receipt is a whole capture without a child: directory, spool, launch record, one kilobyte of text, data and names
synced, receipt written, synced and named. The peer is the same promise made one after the other in plain Python: write
and fsync the data, rename it, fsync the directory, write and fsync the receipt, rename it, fsync both directories. Jobs
that end at the same time share the disk's commits, and that is what is compared, on this disk and on one whose every
sync takes 10 ms longer, as disks without a cache that keeps its promise have it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from supervisor import Limits
from supervisor.storage import Files, LocalStorage

from .harness import Settings, WrongResultError, note
from .report import Report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from supervisor.storage import Conversation

RECEIPTS: Final = 256
QUICK_RECEIPTS: Final = 64
AT_ONCE: Final = (1, 16, 64)
SLOW_SECONDS: Final = 0.010
TEXT: Final = b"x" * 1023 + b"\n"
RECEIPT: Final = b"{" + b" " * 1020 + b"}\n"


class SlowFiles(Files):
    """A disk whose syncs take 10 ms longer, as many at once as there are."""

    def sync_file(self, descriptor: int) -> None:
        """Sync, later."""
        time.sleep(SLOW_SECONDS)
        super().sync_file(descriptor)

    def sync_directory(self, descriptor: int) -> None:
        """Sync, later."""
        time.sleep(SLOW_SECONDS)
        super().sync_directory(descriptor)


def measure(settings: Settings) -> Report:
    """Return receipts a second. Raises: WrongResultError."""
    count = QUICK_RECEIPTS if settings.quick else RECEIPTS
    disks: dict[str, tuple[Files, float, int]] = {
        "this disk": (Files(), 0.0, count),
        "syncs 10 ms longer": (SlowFiles(), SLOW_SECONDS, count // 8),
    }
    rates: dict[str, dict[str, list[float]]] = {disk: {} for disk in disks}
    for number in range(settings.rounds + 1):
        for disk, (files, delay, receipts) in disks.items():
            contenders: dict[str, Callable[[Path], float]] = {"serial": partial(serial, receipts=receipts, delay=delay)}
            for at_once in AT_ONCE:
                contenders[f"ours, {at_once} at once"] = partial(ours, files=files, receipts=receipts, at_once=at_once)
            for name, run in contenders.items():
                rate = _once(settings.scratch / "run", run)
                if number:
                    rates[disk].setdefault(name, []).append(rate)
                note(f"{f'round {number}' if number else 'warm-up'}: {disk}: {name}: {rate:.0f} receipts/s")
    return Report(
        name="receipts",
        title="Receipts: durable receipts a second in one conversation",
        columns=("", "median receipts/s", "min-max", "relative to serial"),
        rows=[_row(disk, name, found) for disk, found in rates.items() for name in found],
        facts={"rounds": str(settings.rounds), "receipts a round": str(count)},
        data={"receipts_per_second": rates},
    )


def serial(directory: Path, receipts: int, delay: float) -> float:
    """Return the receipts a second of a loop that makes them one after the other."""

    def synced(number: int) -> None:
        time.sleep(delay)
        os.fsync(number)

    parent = os.open(directory, os.O_RDONLY)
    began = time.perf_counter()
    for index in range(receipts):
        name = f"capture-{index}"
        os.mkdir(name, 0o700, dir_fd=parent)
        inner = os.open(name, os.O_RDONLY, dir_fd=parent)
        for live, final, text in (("stdout.live", "stdout.log", TEXT), ("receipt.tmp", "receipt.json", RECEIPT)):
            number = os.open(live, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=inner)
            os.write(number, text)
            synced(number)
            os.close(number)
            os.rename(live, final, src_dir_fd=inner, dst_dir_fd=inner)
            synced(inner)
        synced(parent)
        os.close(inner)
    seconds = time.perf_counter() - began
    os.close(parent)
    return receipts / seconds


def ours(directory: Path, files: Files, receipts: int, at_once: int) -> float:
    """Return the receipts a second of as many tasks as are at work at once."""
    rate = asyncio.run(_ours(directory, files, receipts, at_once))
    found = len(list(directory.glob("tool-outputs/captures/*/receipt.json")))
    if found != receipts:
        raise WrongResultError(f"{found} receipts lie there instead of {receipts}")
    return rate


async def _ours(directory: Path, files: Files, receipts: int, at_once: int) -> float:
    conversation = await LocalStorage(files).open(directory, limits=Limits(), durability="barrier")
    left = iter(range(receipts))

    async def work() -> None:
        for index in left:
            await _receipt(conversation, f"capture-{index}")

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    seconds = time.perf_counter() - began
    await conversation.close()
    return receipts / seconds


async def _receipt(conversation: Conversation, capture_id: str) -> None:
    capture = await conversation.create_capture(capture_id, ("stdout",))
    await capture.record_launch(RECEIPT)
    await capture.reservation.take(len(TEXT))
    await capture.spools["stdout"].write([TEXT])
    sealed = await capture.seal()
    outcome = await capture.publish(RECEIPT)
    if not (sealed.barrier and outcome.durable):
        raise WrongResultError(f"no barrier: {sealed.error or outcome.error}")


def _once(directory: Path, run: Callable[[Path], float]) -> float:
    directory.mkdir(mode=0o700)
    try:
        os.sync()
        return run(directory)
    finally:
        shutil.rmtree(directory)


def _row(disk: str, name: str, found: dict[str, list[float]]) -> tuple[str, ...]:
    rates, base = found[name], found["serial"]
    ratio = statistics.median(mine / its for mine, its in zip(rates, base, strict=True))
    return (f"{name}, {disk}", f"{statistics.median(rates):.0f}", f"{min(rates):.0f}-{max(rates):.0f}", f"{ratio:.2f}")
