"""One measurement in an interpreter of its own: what a run leaves in memory is not where the next one starts."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from supervisor.sansio.needles import credential_values

from .harness import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

ROOT: Final = Path(__file__).parent.parent


def run(module: str, order: dict[str, Any], directory: Path) -> dict[str, float]:
    """Return the figures of `python -m <module>`, which calls `answer`. Raises: WrongResultError; stderr says what."""
    environment = {name: value for name, value in os.environ.items() if name not in credential_values(os.environ)}
    command = [sys.executable, "-m", module, json.dumps({**order, "directory": str(directory)})]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise WrongResultError(f"{order} came to nothing right")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def run_in(directory: Path, module: str, order: dict[str, Any]) -> dict[str, float]:
    """Do what `run` does, in a directory that is made for it and removed. Raises: WrongResultError."""
    directory.mkdir(mode=0o700)
    try:
        return run(module, order, directory)
    finally:
        shutil.rmtree(directory)


def factory_of(loop: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes that loop."""
    if loop == "uvloop":
        import uvloop  # noqa: PLC0415 -- a run on asyncio's own loop does without it

        return uvloop.new_event_loop
    return asyncio.new_event_loop


def answer(measure: Callable[[dict[str, Any]], Coroutine[Any, Any, dict[str, float]]]) -> None:
    """Do what the first argument says, on the loop that it names, and print the figures."""
    order = json.loads(sys.argv[1])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A job that lives has some eight descriptors: its pipes, its pidfd, and those of its capture's files.
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with asyncio.Runner(loop_factory=factory_of(order["loop"])) as runner:
        print(json.dumps(runner.run(measure(order))))
